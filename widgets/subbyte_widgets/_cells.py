"""Closes what a cell displayed before it was run again: its output is gone, and open widgets would be kept forever."""

from __future__ import annotations

from typing import Any

import ipywidgets
from IPython.core.getipython import get_ipython
from ipywidgets.widgets.widget import _instances

_shown: dict[str, tuple[str, list[Any]]] = {}
"""For each cell its latest run and the widgets that this run has displayed."""


def running_cell() -> tuple[str, str]:
    """Which cell is running, and which run of it this is; empty if the page does not say, as in scripts."""
    kernel = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return "", ""
    request = kernel.get_parent("shell") or {}
    return str(request.get("metadata", {}).get("cellId", "")), str(request.get("header", {}).get("msg_id", ""))


def page_without_views() -> bool:
    """Whether the running cell is on a page of JupyterLab on which no view has been displayed yet."""
    return bool(running_cell()[0]) and not _shown


def displayed(widget: ipywidgets.Widget) -> None:
    """Note that the running cell displays ``widget``; close what an earlier run of this cell displayed.

    A widget stays open while another cell displays it, while it is part of another widget, and while it runs.
    """
    cell, run = running_cell()
    if not cell:
        return
    before, widgets = _shown.get(cell, (run, []))
    if before != run:
        _shown[cell] = (run, [widget])
        for old in widgets:
            if old is not widget:
                close(old)
    elif all(known is not widget for known in widgets):
        _shown[cell] = (run, [*widgets, widget])


def close(widget: ipywidgets.Widget) -> None:
    """Close ``widget`` with everything inside it, unless it is still in use."""
    parts = tree(widget)
    elsewhere = [one for _, shown in _shown.values() for one in shown]
    boxes = [one for one in list(_instances.values()) if isinstance(one, ipywidgets.Box)]
    inside = [child for box in boxes if all(box is not part for part in parts) for child in box.children]
    used = [*elsewhere, *inside]
    if any(part is one for part in parts for one in used) or any(getattr(part, "running", False) for part in parts):
        return
    for part in parts:
        part.close()


def tree(widget: ipywidgets.Widget) -> list[ipywidgets.Widget]:
    """``widget``, its children, and the layouts and styles that belong to them."""
    parts = [widget]
    for child in getattr(widget, "children", ()):
        parts += tree(child)
    return parts + [one for one in (getattr(widget, "layout", None), getattr(widget, "style", None))
                    if isinstance(one, ipywidgets.Widget)]  # fmt: skip


def opened(widget: ipywidgets.Widget) -> None:
    """Open ``widget`` again when it was closed and is displayed after all, with everything inside it."""
    for part in reversed(tree(widget)):
        if part.comm is None:
            part.__dict__.pop("_repr_mimebundle_", None)  # closing hides it
            part.open()
