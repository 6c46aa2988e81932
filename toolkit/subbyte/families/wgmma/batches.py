"""Which kernel a layer gets at a batch size that was never measured: the search's choice, or the kernel of a larger
batch.

A batch is padded to groups of 8 images. The kernel of a larger batch does no more work at a smaller one than at its
own. If it is expected to be faster there than anything found here, it is taken, so no layer is expected to be
slower than at a larger batch whose kernel it can use. A measurement with the same number of groups is the same work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from subbyte.device.arch import Arch
from subbyte.families.wgmma import features
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import MULTIPROCESSORS
from subbyte.families.wgmma.features import PEAK
from subbyte.families.wgmma.likely import division, likeliest
from subbyte.families.wgmma.model import CLOCK_MHZ, shipped
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP

ALIKE = 2
"""How many of the first candidates may divide the work in the same way: what rejects one of them often rejects all."""
LEADING, SAFE, SAFE_ODDS = 4, 2, 0.05
"""How many of the fastest are tried before the ``SAFE`` ones that the compiler is unlikely to reject, and the odds that
count as unlikely."""
FEW = 64
"""Configurations whose odds are evaluated together."""
CHAIN = 8
"""Up to this many groups of images every larger batch is considered. Above, as many steps lead to the next power of
two, which ends a chain."""


class Choice(NamedTuple):
    """A configuration and its time: measured, or expected by the model, for ``groups`` groups of images."""

    config: WgmmaConfig
    microseconds: float
    groups: int
    measured: bool


def ranked(layer: ConvWorkload, arch: Arch) -> list[WgmmaConfig]:
    """Dense configurations that can be built, in the order to try them, starting with that of :func:`choice`."""
    layer = whole(layer)
    first = choice(layer, arch)
    return [] if first is None else hedged(list(dict.fromkeys((first.config, *searched(layer, arch)))), layer, arch)


def finds(layer: ConvWorkload, arch: Arch) -> bool:
    """Whether the search finds a dense configuration at the layer's own batch: an eighth of the time of :func:`ranked`.
    If it finds none, a kernel of a larger batch may exist."""
    return bool(searched(whole(layer), arch))


def known(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> Choice:
    """The measured or expected time of a configuration: at the batch it is taken from, else at the layer's own."""
    layer = whole(layer)
    first = choice(layer, arch)
    if first is not None and first.config == config:
        return first
    return Choice(config, expected(layer, config, arch), layer.batch_groups, False)


def told(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> str:
    """Whether a configuration was measured, and its expected time, as text."""
    one, groups = known(layer, config, arch), layer.batch_groups
    batch = BATCH_GROUP * one.groups
    if one.measured and batch == layer.n:
        return f"{one.microseconds:.2f} us measured for the model's training"
    if not one.measured and one.groups == groups:
        return f"not measured yet; {one.microseconds:.2f} us expected by a {shipped().worth}"
    as_long = "the same work" if one.groups == groups else "no less work"
    if one.measured:
        return f"not measured yet; {one.microseconds:.2f} us measured at batch {batch}, {as_long}"
    return f"not measured yet; {one.microseconds:.2f} us expected at batch {batch}, {as_long}, by a {shipped().worth}"


def microseconds(layer: ConvWorkload, arch: Arch) -> float | None:
    """The measured or expected time of the layer's kernel; None if nothing can be built."""
    first = choice(whole(layer), arch)
    return None if first is None else first.microseconds


def expected(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> float:
    """Microseconds that are expected of a configuration on an H200: what the model says, but never less than all its
    multiplications take."""
    return expected_at_least(layer, float(shipped().microseconds([features.row(WgmmaPlan(layer, config, arch))])[0]))


def expected_at_least(layer: ConvWorkload, microseconds: float) -> float:
    """The model's time, but never less than all multiplications take."""
    return max(microseconds, _least(layer))


@lru_cache(512)
def choice(layer: ConvWorkload, arch: Arch, wide: bool = True) -> Choice | None:
    """The kernel that a layer gets, None if nothing can be built. ``layer`` has whole groups of images. Its own batch
    is searched ``wide``, larger ones are not: that would take several times as long, and seldom finds more for it."""
    groups = layer.batch_groups
    variants = [one for one in shipped().winners if replace(one.layer, n=layer.n) == layer]
    offers = [
        Choice(one.config, one.microseconds, one.layer.batch_groups, True)
        for one in variants
        if one.layer.batch_groups >= groups and _builds(layer, one.config, arch)
    ]
    if all(one.groups > groups for one in offers) and (found := searched(layer, arch, wide)):
        offers.append(Choice(found[0], expected(layer, found[0], arch), groups, False))
    larger = replace(layer, n=BATCH_GROUP * _next(groups)) if layer.kind == "conv" else layer  # rows are no batch
    if larger.batch_groups > groups and (not offers or _least(larger) < min(one.microseconds for one in offers)):
        other = choice(larger, arch, wide=False)
        if other is not None and _builds(layer, other.config, arch):
            offers.append(other)
    return min(offers, key=lambda one: (one.microseconds, one.groups), default=None)


@lru_cache(512)
def searched(layer: ConvWorkload, arch: Arch, wide: bool = True) -> tuple[WgmmaConfig, ...]:
    """The results of the search with the model, in the order to try them."""
    model = shipped()
    return tuple(spread(likeliest(layer, arch, model.rank, model.winners, wide)))


def spread(configs: Iterable[WgmmaConfig]) -> list[WgmmaConfig]:
    """The same, but configurations that divide the work alike come last after the first ``ALIKE`` of them."""
    first: list[WgmmaConfig] = []
    last: list[WgmmaConfig] = []
    alike: dict[tuple[object, ...], int] = {}
    for one in configs:
        how = division(one)
        alike[how] = alike.get(how, 0) + 1
        (first if alike[how] <= ALIKE else last).append(one)
    return [*first, *last]


def hedged(configs: Sequence[WgmmaConfig], layer: ConvWorkload, arch: Arch) -> list[WgmmaConfig]:
    """The same, but after the ``LEADING`` ones come the fastest that the compiler is unlikely to reject: if it rejects
    the former, it often rejects similar ones, and after a few builds a slower family would be used."""
    safe: list[WgmmaConfig] = []
    for begin in range(0, len(configs), FEW):
        part = configs[begin : begin + FEW]
        odds = shipped().odds([features.row(WgmmaPlan(layer, one, arch)) for one in part])
        safe += [one for one, chance in zip(part, odds, strict=True) if chance < SAFE_ODDS]
        if len(safe) >= SAFE:
            break
    late = [one for one in safe[:SAFE] if one not in configs[:LEADING]]
    others = [one for one in configs if one not in late]
    return [*others[:LEADING], *late, *others[LEADING:]]


def whole(layer: ConvWorkload) -> ConvWorkload:
    """The layer with whole groups of images, without its name."""
    return replace(layer, n=BATCH_GROUP * layer.batch_groups, name="")


def _next(groups: int) -> int:
    """The next larger number of groups to consider; the same at the end of a chain: 8, 16, 32, 64 ..."""
    if groups >= CHAIN and groups & (groups - 1) == 0:
        return groups
    step = max(1, (1 << groups.bit_length() - 1) // CHAIN)
    return (groups // step + 1) * step


def _builds(layer: ConvWorkload, config: WgmmaConfig, arch: Arch) -> bool:
    return why_not(WgmmaPlan(layer, config, arch)) is None


def _least(layer: ConvWorkload) -> float:
    """Time of all multiplications in microseconds, at the model's clock."""
    return layer.macs / (MULTIPROCESSORS * PEAK) / CLOCK_MHZ
