"""What a long search of a layer looks at: every value of every knob, also those that its space does not list.

Of the dense wgmma kernels the search by the model, with the value lists widened; half in the order of the model, half
so that many ways to divide the work come early. Of the stem family what differs in one knob, or in two, from the
fastest measured. Of the image family the whole space, in the layout of the fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random

from subbyte.device.arch import Arch
from subbyte.families import family_of, space
from subbyte.families.image.config import ImageConfig
from subbyte.families.image.space import KIND as IMAGE
from subbyte.families.stem.config import StemConfig
from subbyte.families.wgmma import features
from subbyte.families.wgmma.batches import spread
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.likely import Search, plain, ported
from subbyte.families.wgmma.model import shipped
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

PIPELINE: Mapping[str, tuple[int, ...]] = {
    "tile_rows": (1, 2, 3, 4, 5, 6, 7), "consumers_m": (1, 2, 3), "consumers_rows": (1, 2, 3), "unroll": (1, 2, 4),
    "in_flight": (1, 2, 3), "stagger": (0, 1, 2), "load_ahead": (1, 2), "m_iterations": (1, 2, 4), "tiles_m": (1, 2),
    "producers": (1, 2), "start": (0, 1, 2, 3), "producer_registers": (0, 56, 80, 96, 104), "row_reuse": (0, 1, 2, 3),
    "operands_apart": (0, 1), "copies_ahead": (0, 1, 2, 3, 4), "pixels": tuple(range(8)),
    "stages": (2, 3, 4, 5, 6, 7, 8, 9, 11, 13),
}  # fmt: skip
"""Values of the pipelined kernel's knobs."""
STEM: Mapping[str, tuple[int, ...]] = {
    "turn_rows": (1, 2, 4), "together": (1, 2, 4), "filters": (32, 64), "consumers": (1, 2, 3, 4),
    "segments": (1, 2, 3, 4, 5, 7, 14), "turns": (1, 2, 3, 4, 6, 8, 12, 14, 16, 20, 24, 28, 32, 48, 56),
    "ahead": (0, 1), "buffers": (1, 2), "behind": (0, 1), "min_blocks": (1, 2, 3, 4, 5, 6),
}  # fmt: skip
"""Values of the stem family's knobs."""
LIKELY_REFUSED = 0.5
"""Odds of the compiler's refusal from which on a kernel is left out."""
ROUNDS, BRED, WAYS = 8, 6, 16
"""How often at most, around how many of the best, and of how many ways to divide the work, knobs are changed."""


def everything(layer: ConvWorkload, first: Configuration, arch: Arch) -> Iterator[Configuration]:
    """Configurations of the family of ``first``, the fastest known, in the order to measure them; it comes first."""
    yield first
    if isinstance(first, WgmmaConfig):
        yield from dense(layer, arch)
    elif isinstance(first, StemConfig):
        yield from changed(layer, first, arch)
    elif isinstance(first, ImageConfig):
        listed = space(layer, arch.name, IMAGE)
        for index in listed.valid:
            yield listed.config(index).with_values({"layout": first.layout})


def dense(layer: ConvWorkload, arch: Arch) -> Iterator[WgmmaConfig]:
    """By the model, in turns with what divides the work in other ways."""
    model = shipped()
    search = Search(layer, arch, model.rank)
    search.lists |= {
        name: tuple(dict.fromkeys((*search.lists.get(name, ()), *more))) for name, more in PIPELINE.items()
    }
    search.look_at(ported(layer, model.winners, search.lists))
    search.look_at(plain(search.lists))
    for _ in range(ROUNDS):
        before = search.best(BRED)
        near = dict.fromkeys((*before, *search.bred(WAYS)))
        search.look_at(one for config in near for one in search.neighbours(config))
        if search.best(BRED) == before:
            break
    order = _built(layer, search.best(len(search.found)), arch)
    for both in zip(order, spread(order), strict=True):
        yield from both


def _built(layer: ConvWorkload, configs: Sequence[WgmmaConfig], arch: Arch) -> list[WgmmaConfig]:
    """Those that the compiler is not likely to refuse."""
    rows = [features.row(WgmmaPlan(layer, one, arch)) for one in configs]
    odds = shipped().odds(rows) if rows else ()
    return [one for one, chance in zip(configs, odds, strict=True) if chance < LIKELY_REFUSED]


def changed(layer: ConvWorkload, first: Configuration, arch: Arch) -> Iterator[Configuration]:
    """Whatever can be built and differs in one knob from ``first``, then in two, these in an order drawn by a seed."""
    family = family_of(first)
    one = [{name: value} for name, values in STEM.items() for value in values]
    two = [a | b for a, b in combinations(one, 2) if a.keys() != b.keys()]
    Random(layer.spec).shuffle(two)
    for values in (*one, *two):
        config = first.with_values(values)
        if family.why_not(family.plan(layer, config, arch)) is None:
            yield config
