"""List the layers that nobody tuned for: drawn by seeds that were published before the model was trained.

    python benchmarks/network heldout
    python benchmarks/network heldout --judge RECORD.json

How a layer is drawn. Height and width 7 to 224, input and output channels 16 to 1,024 in multiples of 8, images 1 to
300: logarithmically even, each by itself. Kernel 1x1 to 7x7, stride 1 or 2: even. Padding: none, or half the kernel
(rounded down): even. Drawn again: more than 10^12 multiply-adds; a kernel larger than the input.

How it is judged, with an empty store: ``subbyte.compile`` without a record, against a search of 300 trials of the same
layer, both measured again in turns (``tune``, ``sample --taken --searched``, ``times``). A kernel that is faster than
all that the search found counts as fast as that. At most 5 % slower in the mean and 15 % at worst. On these
layers, and the 3x3 stages of ResNet-50 at batches 1 to 64, no kernel is slower than the same layer at a larger batch.
The layers, their variants (the same at other batches) and their searches enter neither shipped nor training data:
``train`` refuses them. The same holds for the layers of the seeds before: the form of the search, and where
kernels of one image are taken, were chosen while their times were looked at. They judge no longer, and stay out of the
training.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.shared.command import answering, parser_of
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.workload import ConvWorkload

SEED, COUNT = 20261129, 12
FORMER_SEEDS = 20261123, 20261127, 20261128
"""Of the layers that judged before: the first twelve, the second and the third."""
SIZES, CHANNELS, IMAGES, KERNELS, STRIDES = (7, 224), (16, 1024), (1, 300), (1, 7), (1, 2)
STEP = 8
"""Channels are multiples of it."""
MOST_MACS = 10**12
TRIALS = 300
"""Of the search that a default is judged by."""
MEAN, WORST = 0.05, 0.15
"""How much slower than that search the defaults may be."""
BATCHES = (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64)
"""Batches of the 3x3 stages at which none may be slower than a larger one."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network heldout", __doc__)
    parser.add_argument("--judge", type=Path, help="a record of `times`; of each layer what compile takes comes first")
    args = parser.parse_args(arguments)
    for workload in drawn():
        print(f"{workload.spec:34} {workload.macs / 1e9:9.2f} GMAC")
    return 0 if args.judge is None else judged(args.judge)


def drawn(seed: int = SEED, count: int = COUNT) -> list[ConvWorkload]:
    """The layers, in the order they are drawn."""
    return list(islice(draws(seed), count))


def draws(seed: int) -> Iterator[ConvWorkload]:
    """Layers by the rule, without end."""
    random = Random(seed)
    while True:
        if (one := _draw(random)) is not None:
            yield one


def _draw(random: Random) -> ConvWorkload | None:
    """A layer; None where it is to be drawn again."""
    height, width = _even(random, *SIZES), _even(random, *SIZES)
    channels, filters = (STEP * _even(random, CHANNELS[0] // STEP, CHANNELS[1] // STEP) for _ in range(2))
    images = _even(random, *IMAGES)
    kernel, stride = random.randint(*KERNELS), random.choice(STRIDES)
    pad = random.choice((0, kernel // 2))
    if kernel > min(height, width):
        return None
    layer = ConvWorkload(images, height, width, channels, filters, kernel, kernel, pad, stride)
    return layer if layer.macs <= MOST_MACS else None


def _even(random: Random, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``, logarithmically even."""
    return min(most, int(math.exp(random.uniform(math.log(least), math.log(most + 1)))))


def fold(workload: ConvWorkload) -> tuple[object, ...]:
    """What a layer shares with its variants: everything but the batch."""
    w = workload
    return w.h, w.w, w.c, w.k, w.r, w.s, w.pad, w.stride, w.dilation, w.precision


def held_out() -> list[ConvWorkload]:
    """These layers, and those of the seeds before: what no training has seen."""
    return [one for seed in (SEED, *FORMER_SEEDS) for one in drawn(seed)]


def is_held_out(workload: ConvWorkload) -> bool:
    """Whether a layer is one of these, or of those of the seeds before, or a variant of one."""
    return fold(workload) in _folds()


@cache
def _folds() -> frozenset[tuple[object, ...]]:
    return frozenset(map(fold, held_out()))


def judged(path: Path) -> int:
    """Say how much slower the chosen kernels are than the searched ones; 0 where that is within the limits."""
    times: dict[str, dict[str, list[float]]] = {}
    try:
        for one in json.loads(path.read_text(encoding="utf-8"))["kernels"]:
            timed = times.setdefault(one["cell"], {}).setdefault(one["config"], [])
            timed += [float(one["microseconds"])] if "microseconds" in one else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenRecord(f"--judge {path}: no record of `times` ({error!r})") from None
    missing = [one.spec for one in drawn() if not any(times.get(one.spec, {"": []}).values())]
    if missing:
        raise InvalidInput(f"--judge {path}: {', '.join(missing)} not there; measure all {COUNT} layers")
    slower = []
    for layer in drawn():
        taken, *_ = medians = [statistics.median(one) if one else math.inf for one in times[layer.spec].values()]
        slower.append(taken / min(medians) - 1.0)
        print(f"{layer.spec:34} {taken:8.2f} us {min(medians):8.2f} us {slower[-1]:7.1%}")
    mean, worst = statistics.mean(slower), max(slower)
    limits = f"limits {MEAN:.0%} and {WORST:.0%}"
    print(f"slower than a search of {TRIALS} trials: {mean:.1%} in the mean, {worst:.1%} at worst ({limits})")
    return 0 if mean <= MEAN and worst <= WORST else 1
