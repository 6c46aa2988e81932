"""The controls of the laboratory: which values they offer, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ipywidgets

from subbyte.families import Space, space
from subbyte.families.registry import family_of
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload import ConvWorkload


def space_around(workload: ConvWorkload, arch: str, config: Configuration) -> Space:
    """The first space of the configuration's family. Raises InvalidInput."""
    return space(workload, arch, next(iter(family_of(config).kinds)))


def offered(around: Space, config: Configuration) -> dict[str, tuple[Value, ...]]:
    """The values of each knob of a space that the configuration has, then those of each of its switches."""
    knobs = {name: values for name, values in around.knobs.items() if name in config.rows}
    return knobs | {name: row.values.listed for name, row in config.rows.items() if row.switch}


def options(values: Sequence[Any], value: Any) -> list[tuple[str, Any]]:
    """The choices of a knob, ``value`` among them whatever the space offers."""
    offered = [*values] if value in values else sorted([*values, value])
    return [(str(v).lower() if isinstance(v, bool) else str(v), v) for v in offered]


def dropdown(name: str, meaning: str) -> ipywidgets.Dropdown:
    """The control of one knob or switch, still empty."""
    return ipywidgets.Dropdown(
        description=name,
        tooltip=meaning,
        style={"description_width": "130px"},
        layout=ipywidgets.Layout(width="250px"),
    )
