"""Write the CUDA texts of the likely kernels of layers, for a machine without TVM: what `times` measures.

    python benchmarks/network sample OUT.jsonl.xz --layers heldout stages@24,40 [--most 4] [--drawn 8] [--taken]
    python benchmarks/network sample OUT.jsonl.xz --layers heldout --taken --searched LOGS --rounds 3

``--layers`` takes the words of ``layers.py``. Of each layer come first the configuration that is likeliest to be the
fastest, then the next candidates; with ``--drawn`` as many more, drawn from what the search by the model looked at, so
that the model also learns what is slow and what the compiler refuses. With ``--taken`` the kernel that
``subbyte.compile`` hands out stands before them, of two launches both. With ``--searched`` come behind it the three
fastest that searches of ``tune`` found (LOGS, its folder), and no candidates: what defaults are judged by.
With ``--every`` (and ``--most``) the candidates are what a long search looks at (``every.py``), the fastest known
first. With ``--families image wgmma`` they are those of each of these families, so that estimates can be compared.
"""

from __future__ import annotations

import json
import lzma
import os
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, islice, repeat
from multiprocessing import get_context
from pathlib import Path
from random import Random

from benchmarks.network.every import everything
from benchmarks.network.layers import layers_of
from benchmarks.network.remeasured import top_of
from benchmarks.network.times import built
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.device.joined_text import joined
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import config_from_key, family_named, family_of
from subbyte.families.registry import family_names
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.files import prove_writable, write_file
from subbyte.kernel.build import cuda_text
from subbyte.kernel.choose import best_known
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

SEARCHED = 3
"""Of the fastest of a layer's searches: the first of them may have been lucky."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network sample", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", nargs="+", required=True)
    parser.add_argument("--most", type=int, default=4, help="configurations of a layer (default 4)")
    parser.add_argument("--drawn", type=int, default=0, help="further ones, drawn by a seed (default none)")
    parser.add_argument("--taken", action="store_true", help="first the kernel that compile hands out")
    parser.add_argument("--searched", type=Path, help="a folder of tune: the best of its searches, no candidates")
    parser.add_argument("--rounds", type=int, default=1, help="how often the lines of a layer come (default 1)")
    parser.add_argument("--every", action="store_true", help="with every value of every knob, in place of candidates")
    parser.add_argument("--families", nargs="+", default=[], choices=family_names(), help="candidates of each of these")
    parser.add_argument("--build", action="store_true", help="machine code too; what the compiler refuses is left out")
    args = parser.parse_args(arguments)
    prove_writable(args.out)
    layers, most = layers_of(args.layers), 0 if args.searched else args.most
    best = [fastest(args.searched, layer) for layer in layers]
    lines: list[str] = []
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it

    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(layers)), get_context("fork")) as pool:
        more = repeat(most), repeat(args.drawn), repeat(args.taken), best, repeat(args.every), repeat(args.families)
        for layer, found in zip(layers, pool.map(texts, layers, *more), strict=True):
            own = [one for line in found if (one := with_machine_code(line))] if args.build else found
            lines += own * args.rounds
            print(f"{layer.spec}: {len(lines)} texts in all", flush=True)
    write_file(args.out, lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=3))
    return 0


def with_machine_code(line: str) -> str:
    """A line with its kernel built; empty where the compiler refuses it."""
    given = json.loads(line)
    code = built(given)
    return "" if isinstance(code, str) else json.dumps({**given, "cubin": b64encode(code).decode()})


def fastest(logs: Path | None, layer: ConvWorkload) -> list[str]:
    """Keys of the fastest that searches of a layer found. Raises InvalidInput where they found none."""
    if logs is None:
        return []
    found = [one["key"] for one in top_of(logs, layer) if one["family"] == "wgmma"][:SEARCHED]
    if not found:
        raise InvalidInput(f"--searched {logs}: no trial of {layer.spec} was right; search it first")
    return found


def texts(
    layer: ConvWorkload,
    most: int,
    drawn: int = 0,
    taken: bool = False,
    searched: Sequence[str] = (),
    every: bool = False,
    families: Sequence[str] = (),
) -> list[str]:
    """The lines of a layer; what cannot be generated gives place to the next."""
    target, found = arch("sm_90a"), list[str]()
    if taken:
        kernel = compile_kernel(layer, target)
        text = joined([one.cuda for one in kernel.parts]) if len(kernel.parts) > 1 else kernel.cuda
        found.append(json.dumps({"cell": layer.spec, "config": kernel.key, "cuda": text}))
    for key in searched:
        text = cuda_text(WGMMA.plan(layer, config_from_key(key), target))
        found.append(json.dumps({"cell": layer.spec, "config": key, "cuda": text}))
    if most + drawn == 0:
        return found
    listed = (family_named(name).candidates(layer, target) for name in families)
    for order in listed if families else (_likeliest(layer, most + drawn if every else 0),):
        found += _generated(layer, list(dict.fromkeys(order)), most, drawn)
    return found


def _generated(layer: ConvWorkload, order: Sequence[Configuration], most: int, drawn: int) -> list[str]:
    """Lines of the first ``most`` that can be generated, and of ``drawn`` others."""
    rest, found = list(order[most:]), list[str]()
    Random(layer.spec).shuffle(rest)
    for config in (*order[:most], *rest):
        if len(found) == most + drawn:
            break
        try:
            text = cuda_text(family_of(config).plan(layer, config, arch("sm_90a")))
        except SubbyteError:
            continue
        found.append(json.dumps({"cell": layer.spec, "config": config.key, "cuda": text}))
    return found


def _likeliest(layer: ConvWorkload, every: int) -> Iterator[Configuration]:
    target = arch("sm_90a")
    first = best_known(layer, target)[0]
    if every and first is not None:
        yield from islice(everything(layer, first, target), 3 * every)  # some are the same, or cannot be generated
        return
    yield from chain([first] if isinstance(first, WgmmaConfig) else [], WGMMA.candidates(layer, target))
