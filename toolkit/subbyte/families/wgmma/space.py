"""The spaces of wgmma kernels: the knobs of both kernels side by side; ``multicast`` selects the kernel.

``multicast`` 0 is the kernel with a pipeline, n > 0 the one with a single tile iteration. A knob that is meaningless
for the selected kernel must be at the first value of its list: every other combination is the same program. The kernels
for 2:4 weights and for block-sparse weights have their own spaces.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.base import Space
from subbyte.families.wgmma.blocks.config import BlocksConfig
from subbyte.families.wgmma.check import hopeless, why_not
from subbyte.families.wgmma.config import SWITCH_VALUES, WgmmaConfig
from subbyte.families.wgmma.enumeration import LATER, LOAD_ORDER, Enumeration
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.skipping import BY_SPACE, SKIPPING
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.families.wgmma.values import Values, searched_values, small_values
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.listed import Enumerated, ListedTable, listed
from subbyte.workload import ConvWorkload

WGMMA, SMALL = "wgmma", "wgmma-small"
KINDS = {
    WGMMA: "all knobs of both dense kernels", SMALL: "a part that can be measured whole",
    **{one.space: f"the kernel on {one.weights} weights" for one in SKIPPING},
}  # fmt: skip
"""Kinds of spaces."""
SPACE_VERSION = 4
"""Raised when other indices become valid: a test compares sample layers (``tests/golden/spaces.json``)."""
CHOICE, RESIDENT, LIVE_PAIRS = "multicast", "resident", "live_pairs"
LIST_LIMIT = 1_000_000
"""With at most this many combinations, searches hold all valid configurations."""
LISTED = 600_000
"""With at most this many combinations, a space's valid configurations are found one by one for its digest."""
OWN: Mapping[type[WgmmaConfig], frozenset[str]] = {
    kind: frozenset(kind.rows) for kind in (PipelineConfig, SingleTileConfig, SparseConfig, BlocksConfig)
}  # fmt: skip
"""Knobs that are meaningful for each kernel."""


@dataclass(frozen=True)
class WgmmaSpace(ListedTable):
    """All listed configurations for a workload. Index = mixed radix over ``knobs``, first knob fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, Values]
    kind: str = WGMMA
    fixed: Mapping[str, Any] = field(default_factory=lambda: held_switches({}))
    """The switches of every configuration of the space."""

    def config(self, index: int) -> WgmmaConfig:
        """The configuration with this index. Raises InvalidInput when it is not an integer or out of range."""
        return self._made(self.values_at(index))

    def _made(self, values: Mapping[str, Any]) -> WgmmaConfig:
        return kernel_of(values)(**own_values(values), **self.fixed)

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that does not belong to this space."""
        if type(config) not in self._kinds_listed:
            expected = " or ".join(f"a {kind.__name__}" for kind in self._kinds_listed)
            raise InvalidInput(f"configuration {shown(config)}: expected {expected}")
        assert isinstance(config, WgmmaConfig)
        given = config.to_dict()
        if isinstance(config, PipelineConfig):
            given[CHOICE] = 0
        kinds: tuple[type[WgmmaConfig], ...] = (SingleTileConfig, *(one.kind for one in SKIPPING))
        default = {name: value for kind in reversed(kinds) for name, value in kind().to_dict().items()}
        default |= {CHOICE: 0, **self.fixed}
        for name, value in given.items():
            choices = self.knobs.get(name, (default[name],))
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
        index, weight = 0, 1
        for name, choices in self.knobs.items():
            index += choices.index(given.get(name, choices[0])) * weight
            weight *= len(choices)
        return index

    def plan(self, which: int | Configuration, /) -> WgmmaPlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, WgmmaConfig) else self.config(cast(int, which))
        return WgmmaPlan(self.workload, config, self.arch)

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a configuration cannot be built ("kind: details"), None when it can."""
        if not isinstance(which, WgmmaConfig):
            values = self.values_at(cast(int, which))
            own = OWN[type(self._made(values))]
            for name, value in values.items():
                if name not in own and name != CHOICE and value != self.knobs[name][0]:
                    other = "without" if not values.get(CHOICE) else "with"
                    return f"same program: {name} has no meaning {other} {CHOICE}; leave it at {self.knobs[name][0]}"
        return why_not(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built; None when some may. Cheap."""
        reason = hopeless(self.workload, self.arch)
        own = BY_SPACE.get(self.kind)
        return reason or (own.other_weights(self.workload) if own else None)

    @cached_property
    def listed(self) -> bool:
        """For searches: its valid configurations are found as quickly as those of a smaller space, and can be held in
        memory."""
        return self._asked <= LIST_LIMIT < len(self)

    @cached_property
    def _asked(self) -> int:
        """Number of configurations whose rules are checked, over both kernels, without knobs that few rules read."""
        varied = ([name for name in self._varied(kind) if name not in LOAD_ORDER] for kind in self._kinds)
        return sum(prod(len(self.knobs[name]) for name in names) for names in varied)

    @property
    def _kinds(self) -> list[type[WgmmaConfig]]:
        if self.kind in BY_SPACE:
            return [BY_SPACE[self.kind].kind]
        return [PipelineConfig, SingleTileConfig] if any(self.knobs.get(CHOICE, ())) else [PipelineConfig]

    @property
    def _kinds_listed(self) -> list[type[WgmmaConfig]]:
        """The kernels whose configurations have an index, or could."""
        own = BY_SPACE.get(self.kind)
        return [own.kind] if own else [PipelineConfig, SingleTileConfig]

    def _varied(self, kind: type[WgmmaConfig]) -> list[str]:
        return [name for name in self.knobs if name in OWN[kind]]

    @cached_property
    def _enumerated(self) -> Enumerated:
        if self.hopeless is not None:
            return (), {self.hopeless.split(":")[0]: len(self)}
        valid, refused = list[int](), Counter[str]()
        for kind in self._kinds:
            varied = self._varied(kind)
            later = [[name for name in varied if name in names] for names in LATER]
            first = self._places([name for name in varied if not any(name in names for names in later)])
            chosen = [place for place in first if kind is not SingleTileConfig or place[1][CHOICE]]
            found = Enumeration(self.workload, self.arch, kind, self.fixed).run([chosen, *map(self._places, later)])
            valid += found.valid
            refused += found.refused
        same = len(self) - len(valid) - sum(refused.values())
        return tuple(sorted(valid)), dict(refused + Counter({"same program": same}))

    def _places(self, names: list[str]) -> list[tuple[int, dict[str, Any]]]:
        """Every choice of values of some knobs, with its contribution to an index."""
        counts = [len(values) for values in self.knobs.values()]
        weights = dict(zip(self.knobs, accumulate([1, *counts], mul), strict=False))
        digits = [list(enumerate(self.knobs[name])) for name in names]
        return [
            (
                sum(place * weights[name] for name, (place, _) in zip(names, chosen, strict=True)),
                {name: value for name, (_, value) in zip(names, chosen, strict=True)},
            )
            for chosen in product(*digits)
        ]

    @cached_property
    def index_hash(self) -> str:
        """Hexadecimal digest of the meaning of an index: workload, architecture, knobs and switches."""
        return digest_of(self)

    @cached_property
    def hash(self) -> str:
        """Hexadecimal digest of the meaning of an index and of the constraints: of the valid indices or, if there are
        too many to find one by one, of the version of the rules."""
        return digest_of(self, list(self.valid)) if self._asked <= LISTED else self.rules_hash

    @property
    def rules_hash(self) -> str:
        """The same based on the version of the rules, even if there are few valid indices: known without finding
        them."""
        return digest_of(self, SPACE_VERSION)


def kernel_of(values: Mapping[str, Any]) -> type[PipelineConfig] | type[SingleTileConfig]:
    """The configuration of the kernel that the values of a space's knobs select. Raises InvalidInput."""
    if RESIDENT in values:
        return SparseConfig
    if LIVE_PAIRS in values:
        return BlocksConfig
    if CHOICE not in values:
        return PipelineConfig if set(values) <= OWN[PipelineConfig] else SingleTileConfig
    return SingleTileConfig if SingleTileConfig.rows[CHOICE].parse(values[CHOICE]) else PipelineConfig


def own_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that are meaningful for it."""
    own = OWN[kernel_of(values)]
    return {name: value for name, value in values.items() if name in own}


def digest_of(space: Space, *more: Any) -> str:
    """Hexadecimal digest of the meaning of a space's indices, and of ``more``."""
    knobs = {name: list(values) for name, values in space.knobs.items()}
    data = [space.workload.spec, space.arch.name, space.kind, knobs, dict(space.fixed), *more]
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def wgmma_space(workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, Any] | None = None) -> WgmmaSpace:
    """The space of a workload; ``fixed`` are switches to turn off. Raises InvalidInput for a knob among them, and for
    the small space of a 1x1 kernel."""
    if kind in BY_SPACE:
        return WgmmaSpace(workload, arch, BY_SPACE[kind].searched(workload), kind, held_switches(fixed or {}))
    if kind == SMALL and workload.r == 1:
        raise InvalidInput(f"the {SMALL} space of {workload}: it is made for kernels of several rows; use {WGMMA}")
    lists = small_values(workload) if kind == SMALL else searched_values(workload)
    return WgmmaSpace(workload, arch, lists, kind, held_switches(fixed or {}))


def held_switches(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """All switches, with those in ``fixed`` set. Raises InvalidInput for anything that is not a switch."""
    for name in fixed:
        if name not in SWITCH_VALUES:
            raise InvalidInput(f"{name!r} cannot be fixed in a wgmma space: {did_you_mean(name, SWITCH_VALUES)}")
    base = PipelineConfig().with_values(fixed)
    return {name: getattr(base, name) for name in SWITCH_VALUES}
