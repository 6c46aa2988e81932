"""What lets a view run wherever a plain widget does: VS Code, Colab, Voila. One module that imports nothing and asks
for nothing but its model and its element, and nothing to install in JupyterLab."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import subbyte_widgets
from subbyte_widgets._base import View

VIEWS = [one for name in subbyte_widgets.__all__ if isinstance(one := getattr(subbyte_widgets, name), type)
         and issubclass(one, View)]  # fmt: skip
LARGEST = 60_000
"""Bytes of a view's module and style together: they travel once for each displayed view."""
# Colab and VS Code show each output in a frame of another origin; nothing of the page around it can be reached.
OUT_OF_REACH = ("localStorage", "sessionStorage", "indexedDB", "document.cookie", "window.parent", "window.top",
                "jupyterapp", "require(", "requirejs", "fetch(", "XMLHttpRequest", "WebSocket", "Worker(", "eval(",
                "importScripts", "widget_manager", "navigator.serviceWorker", "document.querySelector(",
                "document.getElementById(")  # fmt: skip
MODEL = {"get", "set", "save_changes", "on", "off", "send"}


def problems(module: str) -> list[str]:
    """What keeps a module from running in a host that knows only a model and an element."""
    found = [f"reaches for {name}" for name in OUT_OF_REACH if name in module]
    if re.search(r"^\s*import[\s{*\"']|\bimport\(", module, re.MULTILINE):
        found.append("imports another module")
    if len(re.findall(r"^export ", module, re.MULTILINE)) != 1 or "export default {" not in module:
        found.append("does not export its render function, and only that")
    unknown = set(re.findall(r"\bmodel\.(\w+)\(", module)) - MODEL
    return found + [f"uses model.{name}" for name in sorted(unknown)]


def module_of(view: type[View]) -> str:
    return str(view._esm.read_text(encoding="utf-8") if isinstance(view._esm, Path) else view._esm)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_a_view_is_one_module_that_needs_nothing_else(view: type[View]) -> None:
    module = module_of(view)
    style = str(view._css.read_text(encoding="utf-8") if isinstance(view._css, Path) else view._css)
    assert not problems(module)
    assert len(module) + len(style) < LARGEST
    assert "@import" not in style
    assert not re.search(r"url\((?!#)", style)
    # A theme's colours are asked for with a colour to fall back on: other hosts do not define them.
    assert not re.findall(r"var\(--jp-[\w-]+\)", style + module)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("import { x } from './y.js';", "imports"),
        ("const x = await import('d3');", "imports"),
        ("fetch('data.json');", "fetch"),
        ("localStorage.setItem('a', 1);", "localStorage"),
        ("model.widget_manager.create_view();", "widget_manager"),
        ("model.create_view();", "model.create_view"),
        ("export const x = 1;", "only that"),
    ],
)
def test_a_module_that_needs_more_is_refused(change: str, words: str) -> None:
    assert words in " ".join(problems(f"{change}\n{module_of(VIEWS[0])}"))
