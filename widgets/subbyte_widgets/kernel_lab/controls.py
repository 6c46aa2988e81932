"""The controls of the laboratory: which values they offer, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets

from subbyte.families.mma.config import DUPLICATE_AWARE, LAYOUTS

SWITCHES: dict[str, tuple[Any, ...]] = {
    "duplicate_aware": DUPLICATE_AWARE,
    "register_packing": (True, False),
    "layout": tuple(reversed(LAYOUTS)),
}

HELP = {
    "blk_row_warps": "warps of a block side by side along the output pixels",
    "blk_col_warps": "warps of a block side by side along the output channels",
    "warp_row_tiles": "output pixels of one warp (each for 8 images)",
    "warp_col_tiles": "groups of 8 output channels of one warp",
    "chunk": "blocks of 32 input channels fetched together",
    "reorder_inner": "0: all kernel rows fetched together; 1: one kernel row at a time",
    "duplicate_aware": "none: the lowered tile is copied; shared: each pixel once; full: and once into registers",
    "register_packing": "pack the 4-bit outputs in registers, or through shared memory",
    "layout": "order of the activations in memory; nhwcnc keeps 8 images of 32 channels together",
}


def options(values: Sequence[Any], value: Any) -> list[tuple[str, Any]]:
    """The choices of a knob, ``value`` among them whatever the space offers."""
    offered = [*values] if value in values else sorted([*values, value])
    return [(str(v).lower() if isinstance(v, bool) else str(v), v) for v in offered]


def dropdown(name: str) -> ipywidgets.Dropdown:
    """The control of one knob or switch, still empty."""
    return ipywidgets.Dropdown(
        description=name,
        tooltip=HELP.get(name, ""),
        style={"description_width": "130px"},
        layout=ipywidgets.Layout(width="250px"),
    )
