"""Write the CUDA texts of what would be taken of layers, for a machine without TVM: what `times` measures.

    python benchmarks/network sample OUT.jsonl.xz --layers heldout stages resnet50.stage2@40 [--most 4] [--drawn 8]

``heldout`` are the layers that the model is judged by, each also at a larger batch, ``stages`` the 3x3 stages of
ResNet-50 at batches 1 to 64, ``random:SEED:COUNT`` layers drawn as those are, that no judging uses. Of each layer come
first what ``subbyte.compile`` would take, then its next candidates; with ``--drawn`` as many more, drawn from what the
search by the model looked at, so that the model also learns what is slow and what the compiler refuses.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from random import Random

import subbyte
from benchmarks.network import heldout
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.files import prove_writable, write_file
from subbyte.kernel.build import cuda_text
from subbyte.kernel.choose import best_known
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

TRAINED = (16 * 10**10, 64 * 10**6, 4 * 10**6)
"""Most multiply-adds, values of activations or outputs, and weights of a random layer, so that many can be measured."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network sample", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", nargs="+", required=True)
    parser.add_argument("--most", type=int, default=4, help="configurations of a layer (default 4)")
    parser.add_argument("--drawn", type=int, default=0, help="further ones, drawn by a seed (default none)")
    args = parser.parse_args(arguments)
    prove_writable(args.out)
    lines: list[str] = []
    for layer in dict.fromkeys(one for name in args.layers for one in layers_of(name)):
        lines += texts(layer, args.most, args.drawn)
        print(f"{layer.spec}: {len(lines)} texts in all", flush=True)
    write_file(args.out, lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=3))
    return 0


def layers_of(name: str) -> list[ConvWorkload]:
    """The layers that a word stands for. Raises InvalidInput."""
    if name == "heldout":
        return [replace(one, n=n) for one in heldout.drawn() for n in (one.n, larger(one.n))]
    if name == "stages":
        return [subbyte.workload(f"resnet50.stage{stage}@{n}") for stage in (2, 3, 4, 5) for n in heldout.BATCHES]
    if not name.startswith("random:"):
        return [subbyte.workload(name)]
    try:
        seed, count = map(int, name.split(":")[1:])
    except ValueError:
        raise InvalidInput(f"--layers {name}: expected random:SEED:COUNT, such as random:7:60") from None
    if seed == heldout.SEED:
        raise InvalidInput(f"--layers {name}: this seed draws the layers that are held out; choose another")
    return list(islice((one for one in heldout.drawn(seed, 20 * count) if _small(one)), count))


def larger(images: int) -> int:
    """A larger batch of as many groups of 8 images and one more."""
    return 8 * (-(-images // 8) + 1)


def _small(layer: ConvWorkload) -> bool:
    w = layer
    sizes = w.macs, max(w.n * w.h * w.w * w.c, w.n * w.p * w.q * w.k), w.k * w.r * w.s * w.c
    return all(a <= b for a, b in zip(sizes, TRAINED, strict=True)) and not heldout.is_held_out(w)


def texts(layer: ConvWorkload, most: int, drawn: int = 0) -> list[str]:
    """The lines of a layer; what cannot be generated gives place to the next."""
    target, found = arch("sm_90a"), list[str]()
    order = list(dict.fromkeys(_likeliest(layer)))
    rest = order[most:]
    Random(layer.spec).shuffle(rest)
    for config in (*order[:most], *rest):
        if len(found) == most + drawn:
            break
        try:
            text = cuda_text(WGMMA.plan(layer, config, target))
        except SubbyteError:
            continue
        found.append(json.dumps({"cell": layer.spec, "config": config.key, "cuda": text}))
    return found


def _likeliest(layer: ConvWorkload) -> Iterator[Configuration]:
    target = arch("sm_90a")
    first = best_known(layer, target)[0]
    yield from chain([first] if isinstance(first, WgmmaConfig) else [], WGMMA.candidates(layer, target))
