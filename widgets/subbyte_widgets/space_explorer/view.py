"""The space explorer: a landscape as parallel coordinates and as a map over two knobs, and why the rest is rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.analysis.landscape_view import (
    KnobEffect,
    LandscapeMap,
    index_of,
    knob_effects,
    landscape_map,
    landscape_points,
    shared_by_fastest,
)
from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.records.landscape import Landscape
from subbyte.records.landscape import landscape as landscape_named
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import PACKED, View, packed, refuse_unknown, script
from subbyte_widgets._selection import Choice
from subbyte_widgets.space_explorer.maps import all_maps, as_text
from subbyte_widgets.space_explorer.picture import effects_svg, explorer_svg, in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent


class SpaceExplorer(View):
    """Draws a landscape: every configuration as a line over its knobs, two knobs as a map, the effect of each.

    ``landscape``: a :class:`~subbyte.records.landscape.Landscape`, a file, a shipped name or a workload. The browser
    writes ``selected`` (index of a configuration, -1 for none), ``x``, ``y`` (knobs of the map), ``statistic``
    (``best`` or ``median`` over the other knobs) and ``brush`` (drag along an axis: the lines outside fade). ``config``
    follows ``selected``; a ``selection`` is synchronized in both directions, so that the configuration opens in other
    views.
    """

    follows_at_once = True
    _esm = script(HERE / "lines.js", HERE / "cells.js", HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("title", "points", "maps", "effects", "fastest", "x", "y", "statistic", "selected", "brush")

    title = traitlets.Unicode("").tag(sync=True)
    points: traitlets.Dict[str, Any] = traitlets.Dict(help="Knobs, digits, times and reasons, in columns").tag(
        **{**PACKED, "to_json": lambda points, _view: packed(as_text(points))}
    )
    maps: traitlets.Dict[str, Any] = traitlets.Dict(help="The map of every two knobs, by 'x|y'").tag(**PACKED)
    effects = traitlets.Unicode("", help="Picture of the effect of each knob").tag(**PACKED)
    fastest = traitlets.Unicode("", help="Which knobs the fastest share").tag(sync=True)
    x = traitlets.Unicode("", help="Knob across").tag(sync=True)
    y = traitlets.Unicode("", help="Knob down").tag(sync=True)
    statistic = traitlets.Enum(("best", "median"), "best").tag(sync=True)
    selected = traitlets.Int(-1, help="Index of the selected configuration, -1 for none").tag(sync=True)
    brush: traitlets.Dict[str, Any] = traitlets.Dict(
        help="What the lines are kept by: least and greatest digit of a knob, or microseconds of 'time'"
    ).tag(sync=True)
    config = traitlets.Instance(Configuration, allow_none=True, help="The selected configuration")

    def __init__(self, landscape: Landscape | ConvWorkload | str | Path | None = None, **options: Any) -> None:
        self.landscape: Landscape | None = None
        self._given: Landscape | None = None
        self.record: tuple[KnobEffect, ...] = ()
        refuse_unknown(type(self), options)
        super().__init__()
        if landscape is not None:
            self.show(landscape)
        self._given = self.landscape
        for name, value in options.items():
            setattr(self, name, value)

    def turn_to(self, choice: Choice) -> None:
        """Mark the selected configuration; for another workload, switch to its landscape if one is known."""
        asked = choice.workload
        if self.landscape is None or self.landscape.workload.spec != asked.spec or self.error:
            self.show(self._given if self._given and self._given.workload.spec == asked.spec else asked)
        if self.landscape is not None and not self.error:
            self.selected, self.note = index_of(self.landscape, choice.config), ""
            if self.selected < 0 and not choice.configuration:
                self.selected = self.landscape.best[0]
                self.note = f"Marked is the best of this landscape. Best of all: {choice.config.key}, of another space."

    def show(self, landscape: Landscape | ConvWorkload | str | Path) -> None:
        """Draw another landscape; errors are shown in the view."""
        try:
            found = landscape if isinstance(landscape, Landscape) else landscape_named(landscape)
            points, effects = landscape_points(found), knob_effects(found)
            names = list(points.knobs)
            maps = all_maps(found, names)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        self.landscape, self.record = found, effects
        reasons = sorted(set(points.reasons))
        places = {reason: place for place, reason in enumerate(reasons)}
        with self.hold_sync():
            self.selected, self.title, self.brush = -1, points.title(), {}
            self.points = {
                "size": points.size, "knobs": {name: list(values) for name, values in points.knobs.items()},
                "constant": list(points.constant),
                "index": list(points.indices), "reasons": reasons, "refused": points.refused,
                "digits": ["".join(format(digit, "x") for digit in digits) for digits in points.digits],
                "time": [None if time is None else float(f"{time:.5g}") for time in points.microseconds],
                "reason": [places[reason] for reason in points.reasons],
            }  # fmt: skip
            self.maps, self.effects, self.fastest = maps, effects_svg(effects), shared_by_fastest(found)
            # the two knobs that decide most
            self.x, self.y = sorted((effect.knob for effect in effects[:2]), key=names.index)
            self.alternative, self.error = in_words(points, effects), ""
            self.selected = found.best[0]

    @property
    def map(self) -> LandscapeMap:
        """The chosen map. Raises InvalidInput for knobs that do not exist, or for the same knob twice."""
        if self.landscape is None:
            raise InvalidInput("nothing is shown yet: give a landscape")
        return landscape_map(self.landscape, self.x, self.y)

    @traitlets.validate("selected")
    def _keep_inside(self, proposal: Any) -> int:
        size = int(self.landscape.header["space"]["size"]) if self.landscape else 0
        return proposal.value if 0 <= proposal.value < size else -1

    @traitlets.observe("selected")
    def _follow(self, _change: Any) -> None:
        chosen = self.landscape is not None and self.selected >= 0
        self.config = self.landscape.config(self.selected) if chosen and self.landscape else None
        if self.landscape is not None and self.config is not None:
            self.write_selection(workload=self.landscape.workload, configuration=self.config)

    @traitlets.validate("x", "y")
    def _a_knob(self, proposal: Any) -> str:
        if self.landscape is not None and proposal.value not in (knobs := self.landscape.header["space"]["knobs"]):
            raise InvalidInput(f"unknown knob {proposal.value!r}: {did_you_mean(proposal.value, knobs)}")
        return str(proposal.value)

    def to_svg(self) -> str:
        """Lines, the chosen map and the effects, as a self-contained picture."""
        self.catch_up()
        if self.error or self.landscape is None:
            return sentence_svg(self.error or "no landscape yet")
        points = landscape_points(self.landscape)
        shown = self.map if self.x != self.y else None
        return standalone(explorer_svg(points, shown, self.statistic, self.record, self.selected), HERE / "view.css")
