"""Helpers for writing SVG text: escaping, the colours, and the style of self-contained pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from subbyte.html import attribute
from subbyte.html import text as escaped

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7")
"""Six colours that are distinguishable with every common colour blindness (yellow and black left out: they vanish on a
theme)."""

INK = ("#ffffff", "#111111", "#111111", "#111111", "#111111", "#111111")
"""The text colour with the best contrast on each of them."""

_THEME = re.compile(r"var\((--[\w-]+),\s*([^()]+)\)")


def element(tag: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """One element around ``content``, which is SVG already; ``_`` in an attribute name becomes ``-``, a trailing one is
    dropped (``class_``)."""
    parts = [attribute(name, value) for name, value in attributes.items() if value is not None]
    inner = content if isinstance(content, str) else "".join(content)
    opening = f"<{tag}{''.join(parts)}"
    return f"{opening}>{inner}</{tag}>" if inner else f"{opening}/>"


def text(x: float, y: float, words: object, class_: str = "t", **attributes: object) -> str:
    """A line of text with its baseline at ``y``."""
    return element("text", escaped(words, quotes=False), x=float(x), y=float(y), class_=class_, **attributes)


def title(words: object) -> str:
    """The tooltip of an element; it is the element's first child."""
    return element("title", escaped(words, quotes=False))


def standalone(svg: str, style: str | Path) -> str:
    """``svg`` with its style included, theme variables replaced by their light values, on a white background."""
    css = style.read_text(encoding="utf-8") if isinstance(style, Path) else style
    css = _THEME.sub(lambda found: found[2].strip(), css)
    opening, rest = svg.split(">", 1)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening)[0]
    ground = element("rect", width=width, height=height, fill="#ffffff")
    style_text = element("style", escaped(css, quotes=False))
    return f'{opening} width="{width}" height="{height}">{style_text}{ground}{rest}'


def sentence_svg(words: str) -> str:
    """A picture that is one sentence: what to show when there is nothing to draw."""
    return standalone(element("svg", text(12, 26, words), xmlns="http://www.w3.org/2000/svg", viewBox="0 0 760 44"), "")
