"""Spaces of earlier versions, as the headers of records describe them: the meaning of an index is frozen.

Their value lists come from the header. An index is a mixed-radix number over the knobs of that time, whose values are
translated; today's kernels among them are valid, each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, shown
from subbyte.families.wgmma import second, translate
from subbyte.families.wgmma.check import hopeless, why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.former import FormerConfig, RetiredConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.space import digest_of
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.listed import Enumerated, ListedTable, listed
from subbyte.workload import ConvWorkload

FORMER = {"warpgroup": "wgmma", "warpgroup-small": "wgmma-small"}
"""Kinds of spaces of earlier versions, with their replacements."""


@dataclass(frozen=True)
class FormerSpace(ListedTable):
    """The space of a record of the first versions. Index = mixed radix over ``knobs``, first knob fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, tuple[int, ...]]
    kind: str
    fixed: Mapping[str, Any]
    """The switches of every configuration of the space."""
    recorded_hash: str = ""
    """The hash in the record's header: it was computed with rules that no longer exist."""

    def config(self, index: int) -> Configuration:
        """The configuration with this index. Raises InvalidInput when it is not an integer or out of range."""
        return self._today(self._recorded(index))

    def _recorded(self, index: int) -> Configuration:
        """The recorded configuration at an index."""
        return RetiredConfig(**self.values_at(index), **self.fixed)

    def _today(self, recorded: Configuration) -> Configuration:
        return translate.today(recorded) if isinstance(recorded, FormerConfig) else recorded

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that does not belong to this space."""
        given, usual = self._fields(config), self._usual
        index, weight = 0, 1
        for name, value in given.items():
            choices = self.knobs.get(name, (usual[name],))
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
        for name, choices in self.knobs.items():
            index += choices.index(given.get(name, choices[0])) * weight
            weight *= len(choices)
        return index

    @property
    def _usual(self) -> dict[str, Any]:
        """The value of every field that no knob sets."""
        return RetiredConfig(**self.fixed).to_dict()

    def _fields(self, config: Configuration) -> dict[str, Any]:
        """The fields under which a configuration was recorded. Raises InvalidInput for one of another family."""
        if isinstance(config, WgmmaConfig):
            stages = WgmmaPlan(self.workload, config, self.arch).stages
            config = translate.before(config, stages, self.workload.stride > 1)
        if not isinstance(config, RetiredConfig):
            raise InvalidInput(f"configuration {shown(config)}: expected one of the wgmma family")
        return config.to_dict()

    def plan(self, which: int | Configuration) -> WgmmaPlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput, and Unsupported for one that
        can no longer be built."""
        config = self.config(which) if not isinstance(which, Configuration) else which
        if isinstance(config, FormerConfig):
            raise config.unsupported(str(translate.refused(config)))
        assert isinstance(config, WgmmaConfig)
        return WgmmaPlan(self.workload, config, self.arch)

    def check(self, which: int | Configuration) -> str | None:
        """Why a configuration cannot be built ("kind: details"; "retired: ..." if it once could), None when it can."""
        config = which if isinstance(which, Configuration) else self.config(which)
        if isinstance(config, FormerConfig):
            return translate.refused(config)
        assert isinstance(config, WgmmaConfig)
        plan = WgmmaPlan(self.workload, config, self.arch)
        other = None if isinstance(which, Configuration) else self._other_index(which, plan)
        return other or why_not(plan)

    def _other_index(self, index: int, plan: WgmmaPlan) -> str | None:
        """Why an index has no meaning of its own: another one stands for this kernel."""
        recorded = self._recorded(index)
        assert isinstance(recorded, RetiredConfig)
        if recorded.bulk_weights and recorded.ring != plan.stages:
            return f"stages: bulk_weights keeps every row: ring must be {plan.stages}"
        if recorded.joined and recorded.flatten != (self.workload.stride > 1):
            return "tile: joined groups of images need a 1x1 kernel with stride 1 or flatten"
        return None

    @property
    def base(self) -> dict[str, Any]:
        """The fields of the first configuration, by the names of the knobs."""
        return self._recorded(0).to_dict()

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may. Cheap."""
        return hopeless(self.workload, self.arch)

    @cached_property
    def _enumerated(self) -> Enumerated:
        if self.hopeless is not None:
            return (), {self.hopeless.split(":")[0]: len(self)}
        valid, rejected = [], Counter[str]()
        for index in range(len(self)):
            reason = self.check(index)
            if reason is None:
                valid.append(index)
            else:
                rejected[reason.split(":")[0]] += 1
        return tuple(valid), dict(rejected)

    @cached_property
    def index_hash(self) -> str:
        """Hexadecimal digest of the meaning of an index: workload, architecture, knobs and switches."""
        return digest_of(self)

    @property
    def hash(self) -> str:
        """The record's hash; without one, the digest of the meaning of an index."""
        return self.recorded_hash or self.index_hash


@dataclass(frozen=True)
class SecondSpace(FormerSpace):
    """The space of a record of version 2, whose lists had the knobs of both kernels side by side, like today's."""

    def _recorded(self, index: int) -> Configuration:
        return second.then({**self.values_at(index), **self.fixed})

    @property
    def _usual(self) -> dict[str, Any]:
        return {**second.USUAL, **self.fixed}

    def _fields(self, config: Configuration) -> dict[str, Any]:
        if isinstance(config, PipelineConfig):
            config = second.before(config)
        if not isinstance(config, second.Then):
            raise InvalidInput(f"configuration {shown(config)}: expected one of the wgmma family")
        return {second.CHOICE: 0, **config.to_dict()}

    def check(self, which: int | Configuration) -> str | None:
        """Why a configuration cannot be built ("kind: details"; "retired: ..." if it once could), None when it can."""
        return (None if isinstance(which, Configuration) else self._meaningless(which)) or super().check(which)

    def _meaningless(self, index: int) -> str | None:
        """Why an index has no meaning of its own: a knob of the other kernel is not at its first value."""
        recorded = self._recorded(index)
        other = "with" if isinstance(recorded, SingleTileConfig) else "without"
        for name, value in self.values_at(index).items():
            if name not in (second.CHOICE, *recorded.rows) and value != self.knobs[name][0]:
                return f"same program: {name} has no meaning {other} multicast; leave it at {self.knobs[name][0]}"
        return None

    def _other_index(self, index: int, plan: WgmmaPlan) -> str | None:
        return None
