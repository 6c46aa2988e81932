"""Pack the kernels that ``subbyte.compile`` chooses for some layers, and the best recorded ones of the mma family.

    python benchmarks/baselines pack FOLDER WORKLOAD...

Appends to the pack in FOLDER (``benchmarks/shared/kernel_pack.py``). Needs TVM and the compiler, no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import subbyte
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.kernel_pack import Packed, add, family_of
from subbyte.errors import SubbyteError
from subbyte.kernel.kernel import Kernel
from subbyte.records.landscape import Landscape, find_landscape
from subbyte.records.result import Measured
from subbyte.workload import ConvWorkload, workloads


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines pack", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("workloads", nargs="+")
    args = parser.parse_args(arguments)
    for workload in workloads(args.workloads):
        packed = chosen(workload)
        add(args.folder, packed)
        print(workload.label, *(k.config.key for k in packed), flush=True)
    return 0


def chosen(workload: ConvWorkload) -> list[Packed]:
    """What :func:`subbyte.compile` takes, and the three fastest of a recorded landscape of the mma family."""
    kernels: list[Kernel] = [subbyte.compile(workload)]
    name = find_landscape(workload, "sm_90a")
    if name is not None:
        landscape = Landscape.load(name)
        timed = sorted((r.microseconds, i) for i, r in landscape.results.items() if isinstance(r, Measured))
        for _, index in timed[:3]:
            try:
                kernels.append(subbyte.build(workload, landscape.config(index)))  # type: ignore[arg-type]
            except SubbyteError as error:
                print(f"{workload}: {error}", file=sys.stderr)
    return [
        Packed(workload, family_of(k.config), k.config, k.reason or "recorded landscape", bytes(k.cubin), k.launch)
        for k in kernels
    ]
