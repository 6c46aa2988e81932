"""The space of the warpgroup family: like :class:`subbyte.families.mma.space.Space`, with the knobs of WarpgroupConfig.

The value lists follow the workload: tile widths that leave few columns unused, segments that its rows divide into, and
for 1x1 kernels passes over the output channels instead of tiles of rows.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.families.wgmma import bulk_rules as warpgroup_bulk
from subbyte.families.wgmma.config import SWITCH_VALUES, WarpgroupConfig
from subbyte.families.wgmma.memory import PIXEL_BYTES
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.families.wgmma.rules import WIDTHS, hopeless_warpgroup, why_not_warpgroup
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.listed import ListedTable, Sorted, listed
from subbyte.workload import ConvWorkload, ceil_div

WARPGROUP = "warpgroup"
"""Kind of space."""
FEW_GROUPS = 2
"""Groups of 8 images up to which the time to the first and behind the last multiplication is what counts."""
LARGE_ROWS = 1 << 17
"""Bytes of the input rows of one output row, unpacked, from which on they come in parts."""
SOME_WORK = 10**8
"""Multiplications of a layer from which on it matters when a block reads its weights."""
LARGE_WORK = 3 * 10**9
"""Multiplications of a layer from which on the time of its blocks' multiplications is what counts."""
MANY_BLOCKS = 16
"""Blocks of 32 channels of which wide rows do not fit into the ring whole."""
SPACE_VERSION = 1
"""Goes up when other configurations become valid: a test compares sample layers."""
LIST_LIMIT = 1_000_000
"""Products up to which searches hold all valid configurations."""
LISTED = 600_000
"""Products up to which a space's valid configurations are found one by one where its digest is asked for."""
SEGMENTS = (1, 2, 4, 5, 7, 8, 14, 16, 28, 33, 56, 66, 132, 264)
"""Of 1x1 layers, whose pixels need not be divided by rows: also what shares them out to 132 multiprocessors."""
Values = tuple[int, ...]


@dataclass(frozen=True)
class WarpgroupSpace(ListedTable):
    """All listed configurations of a workload. Index = mixed radix over ``knobs``, first knob fastest."""

    workload: ConvWorkload
    arch: Arch
    knobs: Mapping[str, Values]
    kind: str = WARPGROUP
    fixed: Mapping[str, Any] = field(default_factory=lambda: held_switches({}))
    """The switches of every configuration of the space."""

    def config(self, index: int) -> WarpgroupConfig:
        """The configuration with this index. Raises InvalidInput when it is no integer or out of range."""
        return WarpgroupConfig(**self.values_at(index), **self.fixed)

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput naming the field that is not of this space."""
        if not isinstance(config, WarpgroupConfig):
            raise InvalidInput(f"configuration {shown(config)}: expected a WarpgroupConfig")
        index, weight = 0, 1
        default = WarpgroupConfig(**self.fixed).to_dict()
        for name, value in config.to_dict().items():
            choices = self.knobs.get(name, (default[name],))
            if value not in choices:
                raise InvalidInput(f"{name}={value}: not in the {self.kind} space; allowed: {listed(choices)}")
        for name, choices in self.knobs.items():
            index += choices.index(getattr(config, name)) * weight
            weight *= len(choices)
        return index

    def plan(self, which: int | Configuration, /) -> WarpgroupPlan:
        """The plan of a configuration, given itself or by its index. Raises InvalidInput."""
        config = which if isinstance(which, WarpgroupConfig) else self.config(cast(int, which))
        return WarpgroupPlan(self.workload, config, self.arch)

    def why_not(self, which: int | Configuration, /) -> str | None:
        """Why a configuration cannot be built ("kind: details"), None when it can."""
        return why_not_warpgroup(self.plan(which))

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built, whatever it is; None when some may. Takes no time."""
        return hopeless_warpgroup(self.workload, self.arch)

    @cached_property
    def listed(self) -> bool:
        """For searches: its valid configurations are found as quickly as those of a smaller space, and can be held."""
        return self._sorted_one_by_one <= LIST_LIMIT < len(self)

    @property
    def _sorted_one_by_one(self) -> int:
        """Products of the knobs that many rules read."""
        return prod(len(values) for name, values in self.knobs.items() if name not in warpgroup_bulk.BULK_ONLY)

    @cached_property
    def _sorted_out(self) -> Sorted:
        if self.hopeless is not None:
            return (), {self.hopeless.split(":")[0]: len(self)}
        alone = [name for name in self.knobs if name in warpgroup_bulk.BULK_ONLY]
        for_all = list(self._places(alone))  # all of them have one answer of the other knobs
        valid, refused = [], Counter[str]()
        for index, chosen in self._places([name for name in self.knobs if name not in alone]):
            reason = warpgroup_bulk.refused_early({**chosen, **self.fixed}) or self.why_not(
                WarpgroupConfig(**chosen, **self.fixed)
            )
            if reason is not None:
                refused[reason.split(":")[0]] += len(for_all)
                continue
            for offset, more in for_all:
                config = WarpgroupConfig(**chosen, **more, **self.fixed)
                reason = warpgroup_bulk.bulk_only(self.plan(config)) if alone else None
                if reason is None:
                    valid.append(index + offset)
                else:
                    refused[reason.split(":")[0]] += 1
        return tuple(sorted(valid)), dict(refused)

    def _places(self, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every choice of values of these knobs, and the index that it adds."""
        counts = [len(values) for values in self.knobs.values()]
        weights = dict(zip(self.knobs, accumulate([1, *counts], mul), strict=False))
        offsets = [[place * weights[name] for place in range(len(self.knobs[name]))] for name in names]
        for values, added in zip(product(*(self.knobs[name] for name in names)), product(*offsets), strict=True):
            yield sum(added), dict(zip(names, values, strict=True))

    @cached_property
    def index_hash(self) -> str:
        """Hexadecimal digest of what an index means: workload, architecture, knobs and switches."""
        return self._digest([])

    @cached_property
    def hash(self) -> str:
        """Hexadecimal digest of what an index means and of the constraints: of the valid indices, or where they are too
        many to be found one by one, of the version of the rules."""
        return self._digest([list(self.valid)]) if self._sorted_one_by_one <= LISTED else self.rules_hash

    @property
    def rules_hash(self) -> str:
        """The same of the rules, however few the valid indices are: known without sorting them out."""
        return self._digest([SPACE_VERSION])

    def _digest(self, more: list[Any]) -> str:
        knobs = {name: list(values) for name, values in self.knobs.items()}
        data = [self.workload.spec, self.arch.name, self.kind, knobs, dict(self.fixed), *more]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def warpgroup_space(workload: ConvWorkload, arch: Arch, fixed: Mapping[str, Any] | None = None) -> WarpgroupSpace:
    """The space of a workload; ``fixed`` are switches to turn off. Raises InvalidInput for a knob among them."""
    return WarpgroupSpace(workload, arch, searched_values(workload), fixed=held_switches(fixed or {}))


def held_switches(fixed: Mapping[str, Any]) -> dict[str, Any]:
    """All switches, with those of ``fixed`` set. Raises InvalidInput for anything that is no switch."""
    for name in fixed:
        if name not in SWITCH_VALUES:
            raise InvalidInput(f"{name!r} cannot be fixed in a warpgroup space: {did_you_mean(name, SWITCH_VALUES)}")
    base = WarpgroupConfig().with_values(fixed)
    return {name: getattr(base, name) for name in SWITCH_VALUES}


def searched_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob, in the order of a configuration's index: those that the estimate chooses among, and
    what nobody has measured yet, which a search alone tries."""
    w, lists = workload, warpgroup_values(workload)
    if w.r > 1 and "keep_rows" in lists:
        lists |= {"pass_parts": (0, 1)}
    elif w.stride > 1 and _large_rows(w):
        groups = lists["channel_groups"]
        lists |= {"channel_groups": (*groups, *(n for n in (8,) if w.channel_blocks % (2 * n) == 0)),
                  "keep_rows": (1, 0), "pass_parts": (0, 1)}  # fmt: skip
    if w.r > 1 and w.macs >= LARGE_WORK:
        lists["lean_start"] = (0, 1)
    return lists


def warpgroup_values(workload: ConvWorkload) -> dict[str, Values]:
    """The values of every knob of the estimate."""
    w = workload
    pointwise = w.r == w.s == 1 and w.pad == 0
    height, width = (ceil_div(w.p * w.q, 28), 28) if pointwise else (w.p, w.q)
    lists: dict[str, Values] = {
        "tile_width": _widths(width, 2),
        "tile_rows": (1, 2) if pointwise else tuple(n for n in (1, 2, 4) if n <= height),
        "groups_m": (1, 2),
        "groups_x": (1,) if pointwise else (1, 2),
        "groups_y": (1, 2),
        "segments": tuple(n for n in (1, 2, 4, 7, 8, 14, 28, 56) if n <= height),
        "split": (1, 2, 4),
        "ring": (3, 4, 5, 6, 7, 9),
        "unroll": (1, 2, 4),
        "weight_ring": (0, 8),
        "in_flight": (1, 2),
        "stagger": (0, 1, 2),
    }
    if pointwise:
        lists |= _pointwise_values(w)
    else:
        lists |= {"load_ahead": (2, 1)}
    if w.r == 1 and not pointwise:
        lists |= {"channel_groups": (1, 2, 4)}
    if pointwise and w.stride > 1:
        rows = _widths(w.q, 1)
        lists |= {"tile_width": tuple(dict.fromkeys((*lists["tile_width"], *rows))), "flatten": (1, 0)}
    if w.batch_groups <= FEW_GROUPS and w.r > 1 and w.macs < LARGE_WORK:
        # blocks with a pass or two: nothing goes round for long, and what comes first counts
        lists |= {"ring": (3, 4, 6, 9) if w.r <= 3 else (7, 9, 11), "weight_ring": (0,), "stagger": (0,),
                  "in_flight": (1, 2, 3), "overlap": (1, 0), "at_once": (0, 2),
                  "bulk_weights": (0, 1, 2, 4)}  # fmt: skip
        if w.macs >= SOME_WORK:
            fastest: dict[str, Values] = {"early_start": (0, 1, 2), "early_parameters": (0, 1),
                                          "late_parameters": (0, 1), "weights_ahead": (0, 3, 6)}  # fmt: skip
            lists = fastest | lists
    if _large_rows(w):
        halves = tuple(n for n in (1, 2, 4) if w.channel_blocks % (2 * n) == 0) or (1,)  # none of an odd number
        lists |= {"channel_groups": halves, "ring": (3, 4, 5, 6, 7, 9, 13), "early_release": (0, 1),
                  "weight_ring": (0,)}  # fmt: skip
    if w.r > 1 and w.stride == 1 and w.macs >= LARGE_WORK:
        lists |= _large_values(w, lists)
    return lists


def _large_values(w: ConvWorkload, lists: Mapping[str, Values]) -> dict[str, Values]:
    """The values of what is different where a block has much to multiply: what divides the work evenly counts, and what
    lets a block have many channels."""
    more: dict[str, Values] = {"weight_ring": (0,), "producer_late": (0, 1)}
    if w.p > 56:
        more |= {"segments": (*lists["segments"], 16), "tile_width": tuple(dict.fromkeys((*lists["tile_width"], 14)))}
    if w.p % 2 == 0 and w.q % 14 == 0 and w.p <= 28:
        more["half_rows"] = (0, 1)
    if w.q == 7 and w.batch_groups % 2 == 0:  # 7 pixels of two groups of images are a width
        more |= {"tile_width": (8, 7), "image_groups": (1, 2), "half_rows": (0, 1)}
    if w.channel_blocks >= MANY_BLOCKS and (w.q > 14 or "image_groups" in more):
        more |= {"channel_groups": (1, 4, 8), "keep_rows": (1, 0), "ring": (3, 4, 5, 6, 7, 8, 9, 12, 13)}
    if w.channel_blocks >= MANY_BLOCKS // 2 and w.q > 14:
        more["producer_registers"] = (0, 80, 104)
    return more


def _pointwise_values(w: ConvWorkload) -> dict[str, Values]:
    """The values of what is different where rows do not matter: any width, rings of channel groups, and ways to bring
    the same pixels to several blocks."""
    pixels, tiles = w.p * w.q, ceil_div(w.filter_blocks, 2)
    groups = tuple(n for n in (1, 2, 4, 8, 16) if w.channel_blocks % n == 0 and n <= max(1, w.channel_blocks // 2))
    lists = {
        "tile_width": _widths(pixels, len(WIDTHS)),
        "segments": tuple(n for n in SEGMENTS if n <= ceil_div(pixels * w.batch_groups, 6)),
        "ring": (2, 3, 4, 5, 6, 8, 11),
        "weight_ring": (0,),
        "stagger": (0, 2),
        "channel_groups": groups,
        "keep_rows": (1, 0),
        "filter_passes": tuple(n for n in (1, 2, 4) if n <= tiles),
        "load_ahead": (2, 1),
        "producers": (1, 2),
        "joined": (0, 1) if w.batch_groups > 1 else (0,),
        "tiles_m": tuple(n for n in (1, 2) if n <= tiles),
    }
    return lists | ({"overlap": (1, 0)} if w.batch_groups <= FEW_GROUPS else {})


def _large_rows(w: ConvWorkload) -> bool:
    """The input rows of one output row fill much of the shared memory: their channels come in groups, and their slots
    go back early."""
    width = (w.w + 2 * w.pad) * w.channel_blocks * PIXEL_BYTES
    return w.r > 1 and w.channel_blocks > 2 and w.r * width > LARGE_ROWS


def _widths(pixels: int, count: int) -> Values:
    """The ``count`` instruction widths, of those from 6 pixels on, that leave the fewest of ``pixels`` unused; wide
    ones first among equals. For one or two pixels, narrow ones: the others are too wide for every output."""
    least, spare = (6, 6) if pixels > 2 else (2, 4)
    fitting = [n for n in WIDTHS if n >= least and (n - pixels) < spare] or [WIDTHS[0]]
    best = sorted(fitting, key=lambda n: (ceil_div(pixels, n) * n, -n))[:count]
    return tuple(sorted(best, reverse=True))
