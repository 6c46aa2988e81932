"""The controls of the laboratory: which values they offer, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets

from subbyte.families.registry import usual
from subbyte.spaces.knob import Knob

ROWS: Mapping[str, Knob] = usual().configurations[0].rows
SWITCHES: dict[str, tuple[Any, ...]] = {name: row.values.listed for name, row in ROWS.items() if row.switch}


def options(values: Sequence[Any], value: Any) -> list[tuple[str, Any]]:
    """The choices of a knob, ``value`` among them whatever the space offers."""
    offered = [*values] if value in values else sorted([*values, value])
    return [(str(v).lower() if isinstance(v, bool) else str(v), v) for v in offered]


def dropdown(name: str) -> ipywidgets.Dropdown:
    """The control of one knob or switch, still empty."""
    return ipywidgets.Dropdown(
        description=name,
        tooltip=ROWS[name].meaning,
        style={"description_width": "130px"},
        layout=ipywidgets.Layout(width="250px"),
    )
