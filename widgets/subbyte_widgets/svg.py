"""Small pieces for writing SVG text: escaping, the colours, and the style of pictures that stand alone."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7")
"""Six colours told apart with every common colour blindness (yellow and black left out: they vanish on a theme)."""

INK = ("#ffffff", "#111111", "#111111", "#111111", "#111111", "#111111")
"""The text colour with the best contrast on each of them."""

_THEME = re.compile(r"var\((--[\w-]+),\s*([^()]+)\)")


def element(tag: str, content: str | Iterable[str] = "", **attributes: object) -> str:
    """One element; ``_`` in an attribute name becomes ``-``, a trailing one is dropped (``class_``)."""
    parts = [_attribute(name, value) for name, value in attributes.items() if value is not None]
    inner = content if isinstance(content, str) else "".join(content)
    opening = f"<{tag}{''.join(parts)}"
    return f"{opening}>{inner}</{tag}>" if inner else f"{opening}/>"


@lru_cache(maxsize=4096, typed=True)  # most attributes of a picture come again in it
def _attribute(name: str, value: object) -> str:
    if isinstance(value, float):
        shown = f"{value:.2f}".rstrip("0").rstrip(".")
    else:
        shown = str(value) if isinstance(value, int) else html.escape(str(value))
    return f' {name.rstrip("_").replace("_", "-")}="{shown}"'


def text(x: float, y: float, words: object, class_: str = "t", **attributes: object) -> str:
    """A line of text with its baseline at ``y``."""
    return element("text", html.escape(str(words), quote=False), x=float(x), y=float(y), class_=class_, **attributes)


def standalone(svg: str, style: str | Path) -> str:
    """``svg`` with its style inside, theme variables replaced by their light values, on a white ground."""
    css = style.read_text(encoding="utf-8") if isinstance(style, Path) else style
    css = _THEME.sub(lambda found: found[2].strip(), css)
    opening, rest = svg.split(">", 1)
    width, height = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening)[0]
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return f'{opening} width="{width}" height="{height}"><style>{html.escape(css, quote=False)}</style>{ground}{rest}'


def sentence_svg(words: str) -> str:
    """A picture that is one sentence: what to show when there is nothing to draw."""
    return standalone(element("svg", text(12, 26, words), xmlns="http://www.w3.org/2000/svg", viewBox="0 0 760 44"), "")
