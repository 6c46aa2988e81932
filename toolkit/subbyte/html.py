"""The only place where text becomes HTML or SVG: anything that is not :class:`Markup` is text, and is escaped.

A name in a record may come from someone else's file. No f-string elsewhere writes a tag; ``tools/house_rules.py``
checks that.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from html import escape

VOID = ("img", "br", "meta", "circle", "path", "rect")
"""Elements written without an end tag: void elements, and shapes."""


class Markup(str):
    """HTML or SVG that was made here and is used without escaping."""

    __slots__ = ()


def text(value: object, quotes: bool = True) -> Markup:
    """A value as text of a page: nothing in it is taken for a tag or, with ``quotes``, for the end of an attribute."""
    return value if isinstance(value, Markup) else Markup(escape(str(value), quote=quotes))


def join(*content: object) -> Markup:
    """Concatenate the parts. Text is escaped, None left out."""
    return Markup("".join(text(one) for one in content if one is not None))


@lru_cache(maxsize=4096, typed=True)  # most attributes of a picture occur many times in it
def attribute(name: str, value: object) -> str:
    """One attribute with the blank before it; ``_`` in the name becomes ``-``, a trailing one is dropped. Floats have
    at most two decimals."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else escape(str(value))
    return f' {name.rstrip("_").replace("_", "-")}="{shown}"'


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """One element, such as ``element("p", "a < b", class_="note")``; attributes that are None are left out."""
    parts = (attribute(name, value) for name, value in attributes.items() if value is not None)
    opening = f"<{tag}{''.join(parts)}"
    if tag in VOID and not content:
        return Markup(f"{opening}/>")
    return Markup(f"{opening}>{join(*content)}</{tag}>")


def table(
    rows: Iterable[Iterable[object]], head: Iterable[object] = (), caption: object = None, *, upright: bool = False
) -> Markup:
    """A table: cells are values, or whole ``td`` elements as :class:`Cell`; ``upright``: the first cell of each row is
    its head."""
    lines = []
    for row in rows:
        cells = list(row)
        first = [element("th", cell) for cell in cells[: int(upright)]]
        lines.append(element("tr", *first, *(_cell(cell) for cell in cells[len(first) :])))
    heads = [element("th", one) for one in head]
    return element(
        "table",
        element("caption", caption) if caption else None,
        element("thead", element("tr", *heads)) if heads else None,
        element("tbody", *lines),
    )


class Cell(Markup):
    """A ``td`` element with attributes, for :func:`table`."""

    __slots__ = ()


def cell(value: object, **attributes: object) -> Cell:
    """A cell of a table with attributes."""
    return Cell(element("td", value, **attributes))


def _cell(value: object) -> Markup:
    return value if isinstance(value, Cell) else element("td", value)


def picture(source: str, alternative: object) -> Markup:
    """An image no wider than its page, with a text alternative."""
    return element("img", style="max-width:100%", alt=alternative, src=source)


def page(title: object, style: str, *content: object) -> Markup:
    """A whole page that loads nothing from elsewhere. ``style`` is CSS written in this package."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("title", title),
        element("meta", name="viewport", content="width=device-width"),
        element("style", Markup(style)),
    )
    body = element("body", *(join(one, "\n") for one in content))
    return Markup(f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n")
