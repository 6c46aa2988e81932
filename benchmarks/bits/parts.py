"""Find what takes the time of a kernel on bit planes: time the same kernel without one of its parts.

    python benchmarks/bits parts --build FILE.json resnet50.stage2@256:w1a4 ...   # where TVM and NVRTC are
    python benchmarks/bits parts --measure FILE.json --out RECORD.json            # where the GPU is; needs no TVM

Of each cell the fastest known kernel is built as it is (``whole``) and with its CUDA text cut: without ``products``
(the matrix instructions are left out, all else issues), without ``comparisons`` (what only leads to the stores is left
out, and the stores are), without ``tables`` (thresholds come from registers instead of shared memory; sums are compared
all the same), and without products and comparisons (``neither``). Cut kernels compute nothing and are for times alone;
whole ones are compared with the reference, every output word.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.bits.measure import PROTOCOL, Cell, kernel_of, prepared
from benchmarks.bits.texts import cell_of
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.files import prove_writable, write_file
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import command_line
from subbyte.kernel.build import compiled
from subbyte.kernel.choose import best_known
from subbyte.records.describe import now

CELLS = [f"resnet50.{cell}" for cell in (
    "stage2@256:w1a1", "stage2@64:w1a2", "stage2@256:w1a2", "stage2@64:w2a2", "stage2@8:w1a4", "stage2@64:w1a4",
    "stage2@256:w1a4", "stage3@64:w1a4", "stage3@256:w1a4", "stage5@256:w1a4",
)]  # fmt: skip
"""Those that miss their goal by more than a quarter."""
PRODUCT = re.compile(r'"\{ \.reg \.pred ps0;[^"]*wgmma\.mma_async[^"]*"')
PURE = re.compile(r'asm volatile\("(?=(?:cvt|popc|fma|prmt|shfl|lop3|ld\.shared)[. ])')
TABLE = re.compile(r"tvm_builtin_ptx_ld_vec_shared_v4_b32\((\w+)\[0\], .*, (\(base [^;]*\btable[^;]*)\);")
COUNTS = re.compile(r"uint (counts\w*?)_ptr\[(\d+)\];")
STORES = re.compile(r"(?:^ *Out_ptr\[.*;\n)+", re.MULTILINE)


def without_products(text: str) -> str:
    """The operands of matrix instructions are still computed; the instructions are not there."""
    return _changed(PRODUCT, '""', text)


def without_comparisons(text: str) -> str:
    """No store to global memory, and nothing that has no other use. In the place of each tile's stores is one that
    never happens and needs the tile's sums, else the assembler would leave out the products, too."""
    counts, stores = COUNTS.findall(text), STORES.findall(text)
    if len(counts) != len(stores):
        raise InvalidInput(f"the text has {len(counts)} sets of sums and {len(stores)} tiles that are stored")
    found = text
    for (name, size), tile in zip(counts, stores, strict=True):
        sums = " + ".join(f"{name}_ptr[{at}]" for at in range(int(size)))
        found = found.replace(tile, f"if (blockIdx.z == 77) Out_ptr[0] = {sums};\n", 1)
    found = _changed(PURE, 'asm("', found)
    return re.sub(r'(asm\("ld\.shared.*) : "memory"\);', r"\1);", found)


def without_tables(text: str) -> str:
    """What is read of tables in shared memory, four words at a time, is the address."""
    return TABLE.sub(r"\1[0] = \1[1] = \1[2] = \1[3] = \2;", text)


WITHOUT = {
    "products": without_products, "comparisons": without_comparisons, "tables": without_tables,
    "neither": lambda text: without_products(without_comparisons(text)),
}  # fmt: skip


def _changed(pattern: re.Pattern[str], by: str, text: str) -> str:
    found, count = pattern.subn(lambda _: by, text)
    if not count:
        raise InvalidInput(f"the text has no {pattern.pattern!r}")
    return found


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser = parser_of("bits parts", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FILE")
    step.add_argument("--measure", type=Path, metavar="FILE")
    parser.add_argument("names", nargs="*", help=f"cells (default {len(CELLS)}: {CELLS[0]} ...)")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    if asked.build:
        prove_writable(asked.build)
        built = [built_cell(name) for name in asked.names or CELLS]
        write_file(asked.build, (json.dumps(built) + "\n").encode())
        return 0
    if asked.out is None:
        raise InvalidInput("--measure needs --out RECORD.json")
    prove_writable(asked.out)
    record: dict[str, Any] = {"schema": 1, "kind": "parts", "date": now(), "command": command_line(), "cells": []}
    given = json.loads(asked.measure.read_text(encoding="utf-8"))
    with ProcessPoolExecutor(os.cpu_count()) as pool:  # the reference takes longer than the GPU
        making = [pool.submit(prepared, one["cell"], [one["config"]]) for one in given]
        for one, made in zip(given, making, strict=True):
            try:
                found = measured(one, made.result())
            except SubbyteError as error:
                found = {"cell": one["cell"], "failed": str(error)}
            record["cells"].append(found)
            print({key: found[key] for key in found if key not in ("samples", "clock")}, flush=True)
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(one.get("wrong") or one.get("failed") for one in record["cells"]))


def built_cell(name: str) -> dict[str, Any]:
    """The machine code of a cell's fastest known kernel, whole and cut."""
    key = best_known(cell_of(name)[0])[0].key
    text = kernel_of(name, key).cuda
    texts = {
        "whole": text,
        **{part: cut(text) for part, cut in WITHOUT.items() if part != "tables" or TABLE.search(text)},
    }
    cubins = {part: base64.b64encode(compiled(one, "sm_90a")[0]).decode() for part, one in texts.items()}
    print(name, key, flush=True)
    return {"cell": name, "config": key, "cubins": cubins}


def measured(given: dict[str, Any], cell: Cell) -> dict[str, Any]:
    """Microseconds of a cell's kernels, in two rounds."""
    kernel = kernel_of(given["cell"], given["config"])
    buffers = cell.packed(kernel)
    found: dict[str, Any] = {"cell": given["cell"], "config": given["config"], "wrong": 0, "samples": {}}
    for part in (*given["cubins"], *given["cubins"]):
        with GpuKernel(base64.b64decode(given["cubins"][part]), kernel.launch, 0) as gpu:
            if part == "whole":
                found["wrong"] += cell.wrong(kernel, gpu.run(buffers))
            timing = gpu.time(PROTOCOL, buffers)  # a cut kernel leaves its outputs as they are, which `run` refuses
        found["samples"].setdefault(part, []).append(timing.microseconds)
        found["clock"], found["gpu"] = timing.after.to_dict(), timing.device["name"]
    found["microseconds"] = {part: max(both) for part, both in found["samples"].items()}
    return found
