"""The valid configurations of a wgmma space, without checking every rule for every configuration.

A rule reads few knobs, and the knobs read last vary fastest: what a rule says before reading any of them holds
for all their values. Rules are therefore evaluated on a schedule that records such reads (:func:`watching`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.shared.reasons import first_reason
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.pipeline import rules as pipeline_rules
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import OF_THE_LAYER, Rule
from subbyte.families.wgmma.schedule import Schedule
from subbyte.families.wgmma.single import rules as single_rules
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.skipping import SKIPPING
from subbyte.workload import ConvWorkload

LOAD_ORDER = ("weights_ahead", "parameters", "early_start")
"""Knobs of a single tile iteration that only one rule reads, which is checked last."""
LATER: tuple[tuple[str, ...], ...] = (
    ("consumers_m", "m_iterations", "tiles_m", "cluster_split_k", "channel_groups"),
    ("unroll", "live_pairs", "in_flight"), ("stages",), ("load_ahead", "producer_registers"), LOAD_ORDER,
    ("dependent_launch",),
)  # fmt: skip
"""Knobs that only later rules read, or none: step by step, after all others."""
MEANINGS = {"parameters": ("late_parameters", "early_parameters")}
"""Of these, knobs whose values set several fields of the schedule."""
KERNEL_RULES: Mapping[type[WgmmaConfig], tuple[Rule, ...]] = {
    PipelineConfig: tuple(rule for rule in pipeline_rules.RULES if rule not in OF_THE_LAYER),
    SingleTileConfig: tuple(
        rule for rule in (*single_rules.RULES, single_rules.order_of_loads) if rule not in OF_THE_LAYER
    ),
    **{
        one.kind: tuple(rule for rule in one.rules if rule not in OF_THE_LAYER and rule is not one.weights_rule)
        for one in SKIPPING
    },
}
"""For each kernel, the rules that a configuration can violate, in the order in which they are checked."""

Place = tuple[int, dict[str, Any]]
"""The contribution of a choice of some knobs' values to an index, and the values."""


def watching(knobs: Iterable[str]) -> type[Schedule]:
    """A schedule that records in ``read`` when a field determined by one of these knobs is read."""

    def watched(name: str) -> property:
        def value(schedule: Schedule) -> Any:
            vars(schedule)["read"] = True
            return vars(schedule)[name]

        return property(value)

    return type("Watched", (Schedule,), {name: watched(name) for knob in knobs for name in MEANINGS.get(knob, (knob,))})


@dataclass
class Found:
    """Valid indices in no particular order, and the number of refused ones by kind of reason."""

    valid: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class Enumeration:
    """Enumerates the choices for one kernel, step by step. ``fixed`` holds the switches of the space."""

    def __init__(self, workload: ConvWorkload, arch: Arch, kind: type[WgmmaConfig], fixed: Mapping[str, Any]) -> None:
        self.workload, self.arch, self.kind, self.fixed = workload, arch, kind, fixed
        self.found = Found()

    def run(self, steps: Sequence[Sequence[Place]]) -> Found:
        """Check every choice; the first step holds the knobs that are not in ``LATER``, the others are its steps."""
        given = {name: value for places in steps if len(places) == 1 for name, value in places[0][1].items()}
        varied = [places for places in steps if len(places) != 1] or [[(0, {})]]
        behind = [[knob for places in varied[number:] if places for knob in places[0][1]]
                  for number in range(1, len(varied) + 1)]  # fmt: skip
        self.watched = [watching(knobs) if knobs else None for knobs in behind]
        self._step(varied, 0, 0, given, KERNEL_RULES[self.kind])
        return self.found

    def _step(
        self, steps: Sequence[Sequence[Place]], number: int, index: int, chosen: dict[str, Any], rules: Sequence[Rule]
    ) -> None:
        rest = steps[number + 1 :]
        for offset, more in steps[number]:
            values = {**chosen, **more}
            reason, left = self._ask(rules, values, self.watched[number])
            if reason is not None:
                self.found.refused[reason.split(":")[0]] += prod(map(len, rest))
            elif left:
                self._step(steps, number + 1, index + offset, values, left)
            else:
                self.found.valid += sums(index + offset, rest)

    def _ask(
        self, rules: Sequence[Rule], values: Mapping[str, Any], watched: type[Schedule] | None
    ) -> tuple[str | None, Sequence[Rule]]:
        """The first reason that holds whatever the unknown fields are, and the rules that need to know them."""
        plan = WgmmaPlan(self.workload, self.kind(**values, **self.fixed), self.arch)
        if watched is None:
            return first_reason(rules, plan), ()
        schedule = object.__new__(watched)
        seen = vars(schedule)
        seen.update(vars(plan.knobs), read=False)
        vars(plan)["knobs"] = schedule
        for number, rule in enumerate(rules):
            reason = rule(plan)
            if seen["read"]:
                return None, rules[number:]
            if reason is not None:
                return reason, ()
        return None, ()


def sums(index: int, steps: Sequence[Sequence[Place]]) -> list[int]:
    """The indices of all choices that follow one."""
    found = [index]
    for places in steps:
        found = [one + offset for one in found for offset, _ in places]
    return found
