"""Write the CUDA texts of what would be taken of layers, for a machine without TVM: what `times` measures.

    python benchmarks/network sample OUT.jsonl.xz --layers heldout stages@24,40 [--most 4] [--drawn 8] [--launches]

``--layers`` takes the words of ``layers.py``. Of each layer come
first what ``subbyte.compile`` would take, then its next candidates; with ``--drawn`` as many more, drawn from what the
search by the model looked at, so that the model also learns what is slow and what the compiler refuses. With
``--launches`` stand before them the two launches that ``subbyte.compile`` takes for a batch, where it takes two.
With ``--every`` (and ``--most``) they are what a long search looks at (``every.py``), the fastest known first.
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
from benchmarks.network.times import built
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.device.joined_text import joined
from subbyte.errors import SubbyteError
from subbyte.families import family_of
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.files import prove_writable, write_file
from subbyte.kernel.build import cuda_text
from subbyte.kernel.choose import best_known
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network sample", __doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", nargs="+", required=True)
    parser.add_argument("--most", type=int, default=4, help="configurations of a layer (default 4)")
    parser.add_argument("--drawn", type=int, default=0, help="further ones, drawn by a seed (default none)")
    parser.add_argument("--launches", action="store_true", help="also two launches, where compile takes two")
    parser.add_argument("--every", action="store_true", help="with every value of every knob, in place of candidates")
    parser.add_argument("--build", action="store_true", help="machine code too; what the compiler refuses is left out")
    args = parser.parse_args(arguments)
    prove_writable(args.out)
    layers = layers_of(args.layers)
    lines: list[str] = []
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it

    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(layers)), get_context("fork")) as pool:
        more = repeat(args.most), repeat(args.drawn), repeat(args.launches), repeat(args.every)
        for layer, own in zip(layers, pool.map(texts, layers, *more), strict=True):
            lines += [one for line in own if (one := with_machine_code(line))] if args.build else own
            print(f"{layer.spec}: {len(lines)} texts in all", flush=True)
    write_file(args.out, lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=3))
    return 0


def with_machine_code(line: str) -> str:
    """A line with its kernel built; empty where the compiler refuses it."""
    given = json.loads(line)
    code = built(given)
    return "" if isinstance(code, str) else json.dumps({**given, "cubin": b64encode(code).decode()})


def texts(layer: ConvWorkload, most: int, drawn: int = 0, launches: bool = False, every: bool = False) -> list[str]:
    """The lines of a layer; what cannot be generated gives place to the next."""
    target, found = arch("sm_90a"), list[str]()
    if launches:
        taken = compile_kernel(layer, target)
        if len(taken.parts) > 1:
            text = joined([one.cuda for one in taken.parts])
            found.append(json.dumps({"cell": layer.spec, "config": taken.key, "cuda": text}))
    begun, order = len(found), list(dict.fromkeys(_likeliest(layer, most + drawn if every else 0)))
    rest = order[most:]
    Random(layer.spec).shuffle(rest)
    for config in (*order[:most], *rest):
        if len(found) - begun == most + drawn:
            break
        try:
            text = cuda_text(family_of(config).plan(layer, config, target))
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
