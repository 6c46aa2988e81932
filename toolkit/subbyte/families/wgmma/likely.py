"""The dense configurations of a layer that are most likely to be fast: a search with a model; nothing is measured.

It starts with the fastest configurations of the layers most similar to this one, at any batch size, with widths and
segments of this layer, and with a few plain ones. Then it evaluates all variants that differ in one knob from the best
found so far, and from the best of those that divide the work in other ways: changing one knob seldom leads from one
division to a better one. It ends when that finds nothing better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from math import log2
from typing import Any, NamedTuple

from subbyte.device.arch import Arch
from subbyte.families.shared.reasons import first_reason
from subbyte.families.wgmma import features
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import MULTIPROCESSORS
from subbyte.families.wgmma.enumeration import KERNEL_RULES
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import LOADS_AT_ONCE, OF_THE_LAYER, WIDTHS, rows_listed
from subbyte.families.wgmma.values import searched_values
from subbyte.workload import ConvWorkload, ceil_div
from subbyte.workload.conv import BATCH_GROUP

NEAREST = 12
"""Winners of other layers with which a search begins."""
TURNS, BRED, WAYS = 4, 4, 8
"""The most times that single knobs are varied, around how many of the best, and around the best of how many ways to
divide the work."""
DIVISION = ("tile_width", "tile_rows", "consumers_m", "consumers_n", "consumers_rows", "segments", "cluster_split_k",
            "channel_groups", "m_iterations", "tiles_m", "image_groups", "half_rows", "multicast")  # fmt: skip
"""Knobs of the schedule that divide the work."""
FEW_SEGMENTS = 3
"""Segment counts with which a winner of another layer is tried: those closest to the same number of rows per block."""
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 56)
"""Rows of a segment."""
SPARE = 6
"""Widths that are considered: those that leave the fewest columns unused."""
MOST_GROUPS, FEW_BLOCKS = 16, 8
"""The most groups of channels that are considered, unless more than ``FEW_BLOCKS`` blocks of them leave only one other
way to divide them, such as 19 or 22. Kernels that load so many channels at once have few pixels."""
DIVIDING = ("pixels", "m_iterations")
"""Knobs that change a block's share of the work so much that the number of segments must change with them."""
Values = Mapping[str, Sequence[int]]
Rank = Callable[[Sequence[Sequence[float]]], Sequence[float]]
"""Maps rows of features to the model's value for each; smaller is better."""


class Winner(NamedTuple):
    """A layer, its fastest measured configuration, and the time."""

    layer: ConvWorkload
    config: WgmmaConfig
    microseconds: float


def likeliest(
    workload: ConvWorkload, arch: Arch, rank: Rank, winners: Sequence[Winner], wide: bool = True
) -> dict[WgmmaConfig, float]:
    """Configurations that can be built with the model's values, sorted by these. If not ``wide``, the search
    stays near the winners, and takes a third of the time."""
    search = Search(workload, arch, rank)
    search.look_at(ported(workload, winners, search.lists))
    if wide or not search.found:
        search.look_at(plain(search.lists))
    for _ in range(TURNS):
        before = search.best(1)
        search.look_at(near for one in search.bred(WAYS if wide else 0) for near in search.neighbours(one))
        if search.best(1) == before:
            break
    return {one: search.found[one] for one in search.best(len(search.found))}


class Search:
    """The configurations of a layer that were considered, and those of them that can be built."""

    def __init__(self, workload: ConvWorkload, arch: Arch, rank: Rank) -> None:
        self.workload, self.arch, self.rank = workload, arch, rank
        self.lists = lists_of(workload)
        self.hopeless = first_reason(OF_THE_LAYER, WgmmaPlan(workload, PipelineConfig(), arch)) is not None
        self.found: dict[WgmmaConfig, float] = {}
        self.order: dict[WgmmaConfig, tuple[float, str]] = {}
        self.seen: set[WgmmaConfig] = set()
        self._bred: set[WgmmaConfig] = set()

    def look_at(self, configs: Iterable[WgmmaConfig]) -> None:
        """Evaluate those that are new and can be built."""
        fresh, rows = [], []
        for one in () if self.hopeless else configs:
            if one in self.seen:
                continue
            self.seen.add(one)
            plan = WgmmaPlan(self.workload, one, self.arch)
            if first_reason(KERNEL_RULES[type(one)], plan) is None:
                fresh.append(one)
                rows.append(features.row(plan))
        if fresh:
            self.found.update(zip(fresh, map(float, self.rank(rows)), strict=True))
            self.order.update((one, (self.found[one], one.key)) for one in fresh)

    def best(self, count: int) -> list[WgmmaConfig]:
        """The best so far."""
        return sorted(self.order, key=self.order.__getitem__)[:count]

    def bred(self, ways: int) -> list[WgmmaConfig]:
        """The best so far, and the best for each of the best ``ways`` to divide the work; where the blocks of channels
        leave two ways to divide them, for each of those."""
        order, first = self.best(len(self.found)), dict[tuple[object, ...], WgmmaConfig]()
        groups = self.lists["channel_groups"] if len(self.lists["channel_groups"]) == 2 else ()
        both = [one for n in groups for one in [one for one in order if one.schedule.channel_groups == n][:BRED]]
        for one in order:
            first.setdefault(division(one), one)
        return list(dict.fromkeys((*order[:BRED], *both, *islice(first.values(), ways))))

    def neighbours(self, config: WgmmaConfig) -> Iterator[WgmmaConfig]:
        """All configurations that differ in one knob, except for configurations considered before."""
        if config in self._bred:
            return
        self._bred.add(config)
        rows, pipeline = type(config).rows, isinstance(config, PipelineConfig)
        for name, values in self.lists.items():
            if name not in rows:
                continue
            own = getattr(config, name)
            more: Sequence[int] = ()
            if name == "segments":
                more = self._whole_waves(config)
            elif name == "stages":
                more = tuple(n for n in (own - 1, own + 1, own + 3) if n > 0)
            changed = [
                config.with_values({name: value})
                for value in dict.fromkeys((*values, *more))
                if value != own and not (name == "multicast" and value == 0)
            ]
            yield from changed
            if name in DIVIDING:  # blocks of another size, which should fill whole waves again
                yield from (one.with_values({"segments": n}) for one in changed for n in self._whole_waves(one))
        if pipeline and "row_reuse" in rows:  # groups of channels need another pipeline depth as well
            for groups, stages in product(self.lists.get("channel_groups", ()), self.lists["stages"]):
                if groups != config.to_dict()["channel_groups"]:
                    yield config.with_values({"channel_groups": groups, "stages": stages})

    def _whole_waves(self, config: WgmmaConfig) -> tuple[int, ...]:
        """Segment counts with which the blocks just fill all multiprocessors, one to three times."""
        plan = WgmmaPlan(self.workload, config, self.arch)
        if rows_listed(plan.output_size[0]) is not None:
            return ()
        others = max(1, plan.grid_blocks // plan.knobs.segments)
        return tuple(n for turns in (1, 2, 3) if 1 <= (n := turns * MULTIPROCESSORS // others) <= plan.output_size[0])


def division(config: WgmmaConfig) -> tuple[object, ...]:
    """How a configuration divides the work: equal for kernels of one kind that divide it alike."""
    schedule = config.schedule
    return (type(config), *(getattr(schedule, name) for name in DIVISION))


def lists_of(workload: ConvWorkload) -> dict[str, tuple[int, ...]]:
    """Values of the knobs: those of the layer's space, and more widths, segments and channel groups for sizes that
    are not powers of two."""
    w, lists = workload, searched_values(workload)
    lists["tile_width"] = tuple(dict.fromkeys((*lists["tile_width"], *_widths(w.q))))[:SPARE]
    if w.r > 1 or w.s > 1 or w.pad:
        lists["segments"] = tuple(sorted({*lists["segments"], *(ceil_div(w.p, rows) for rows in ROWS if rows <= w.p)}))
    blocks = w.channel_blocks
    divisors = [n for n in range(1, blocks + 1) if blocks % n == 0 and (n == 1 or blocks % 2 or (blocks // n) % 2 == 0)]
    groups = lists.get("channel_groups", (1,))
    lists["channel_groups"] = tuple(
        sorted({*(n for n in divisors if n <= MOST_GROUPS), *(n for n in groups if blocks % n == 0)})
    )
    if blocks > FEW_BLOCKS and len(divisors) == 2:
        lists["channel_groups"] = tuple(divisors)
        lists["tile_width"] = (*lists["tile_width"][: SPARE - len(narrow := _narrow(blocks))], *narrow)
    if w.r > 1:
        lists["row_reuse"] = (0, 1, 2, 3)
    return lists


def _narrow(blocks: int) -> list[int]:
    """The two widest rows of pixels whose channels a producer loads at once."""
    return [n for n in WIDTHS if BATCH_GROUP * n * blocks <= 128 * LOADS_AT_ONCE][-2:]


def _widths(pixels: int) -> list[int]:
    """Widths that leave the fewest columns unused, the widest first among equals."""
    fitting = [n for n in WIDTHS if n <= pixels + 3]
    return sorted(fitting, key=lambda n: (ceil_div(pixels, n) * n / pixels + 0.5 / n, -n))[:SPARE]


def ported(workload: ConvWorkload, winners: Sequence[Winner], lists: Values) -> Iterator[WgmmaConfig]:
    """The winners of the layers most similar to this one, with widths, segments and channel groups of this layer."""
    for other, winner, _ in sorted(winners, key=lambda one: distance(workload, one.layer))[:NEAREST]:
        yield winner
        rows = ceil_div(other.p, winner.to_dict()["segments"])
        near = sorted(lists["segments"], key=lambda n: abs(log2(ceil_div(workload.p, n) / rows)))[:FEW_SEGMENTS]
        for config in _dividing(winner, workload, lists):
            more = lists["tile_width"] if config != winner else ()
            for width in dict.fromkeys((config.tile_width, *lists["tile_width"][:3], *more)):
                for segments in near:
                    yield config.with_values({"tile_width": width, "segments": segments})


def _dividing(config: WgmmaConfig, workload: ConvWorkload, lists: Values) -> list[WgmmaConfig]:
    """The configuration; if its channel groups do not divide the layer's channels, the same with the two nearest
    numbers of groups that do."""
    schedule = config.schedule
    parts = schedule.cluster_split_k * schedule.channel_groups
    if workload.channel_blocks % parts == 0 or "channel_groups" not in type(config).rows:
        return [config]
    near = sorted(lists["channel_groups"], key=lambda n: abs(log2(n / schedule.channel_groups)))[:2]
    plainer: dict[str, Any] = {"cluster_split_k": 1, "unroll": 1}
    kept = {"row_reuse": 1}  # with all channels in one stage
    return [config.with_values({**plainer, "channel_groups": n, **(kept if n == 1 else {})}) for n in near]


def plain(lists: Values) -> Iterator[WgmmaConfig]:
    """Few pixels, and few channels at a time: buildable if nothing from other layers is."""
    for width, groups, reuse in product(lists["tile_width"], lists["channel_groups"], lists.get("row_reuse", (1,))):
        for stages in dict.fromkeys((*lists["stages"], 16, 24)):
            changes: dict[str, Any] = {"tile_width": width, "channel_groups": groups, "row_reuse": reuse}
            yield PipelineConfig(stagger=0, stages=stages, load_ahead=1).with_values(changes)


def distance(one: ConvWorkload, other: ConvWorkload) -> float:
    """Dissimilarity of two layers: doublings of their sizes, and more for another kernel or stride."""
    sizes = [(w.batch_groups * w.p * w.q, w.p, w.q, w.channel_blocks, w.filter_blocks) for w in (one, other)]
    apart = sum(abs(log2(a / b)) for a, b in zip(*sizes, strict=True))
    kernel = 2.0 * abs(log2(one.r / other.r)) + 4.0 * ((one.r == 1) != (other.r == 1))
    return apart + kernel + 2.0 * (one.stride != other.stride)
