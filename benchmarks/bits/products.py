"""Time deep matrix products on bit planes: rings of stages of many shapes, and kernels that stage the whole depth.

    python benchmarks/bits products --build FILE.jsonl                       # where TVM is
    python benchmarks/bits products --measure FILE.jsonl --out RECORD.json   # where the GPU is; needs NVRTC and CuPy

Every element of every output is compared with a product of values by CuPy, on random operands over the whole range of
their types and poisoned outputs. A kernel is timed by graph replay, hot L2, without programmatic dependent launch; the
three fastest of each cell again at the end, in turns over all cells.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import subbyte
from benchmarks.bits.direct import compared, convolved, host
from benchmarks.bits.texts import cell_of
from benchmarks.shared.command import answering, parser_of
from benchmarks.shared.texts import compiled
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families import config_from_key, family_named, family_of
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.ring_config import RingConfig
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import open_device
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel.execute import random_operands
from subbyte.kernel.operands import layout_words
from subbyte.records.describe import now, to_line
from subbyte.spaces.configuration import Configuration
from subbyte.workload.precision import SUMS

GOALS = {
    "gemm8192:w1a1": 92.0, "gemm4096x4096x8192:w1a1": 29.0,
    **{f"gemm64x{size}x{size}:w1a{bits}": 2.2 for bits in (1, 2) for size in (128, 256, 512, 1024)},
}  # fmt: skip
"""Microseconds."""
DEEP = ("gemm8192:w1a1", "gemm8192:w1a1 int32", "gemm4096x4096x8192:w1a1", "gemm8192:w1a2", "gemm8192:w2a2",
        "gemm4096:w1a1", "gemm2048:w1a1")  # fmt: skip
FLAT = ("gemm1024:w1a1", *(name for name in GOALS if name.startswith("gemm64x")), "n256h14w14c1024k256r1s1p0:w1a1",
        "n256h14w14c256k1024r1s1p0:w1a1", "n256h7w7c2048k512r1s1p0:w1a1", "n8h14w14c1024k256r1s1p0:w1a1")  # fmt: skip
SHARED = ((1, 1), (2, 1), (1, 2), (2, 2))
"""Blocks of a cluster that share weights, and that share activations."""
PROTOCOL = TimingProtocol(cold=False, launches=20)
AGAIN = 2


def rings(cell: str, most: int = 3) -> Iterator[Configuration]:
    """Rings to try in a cell: the likeliest, of the same channels and warpgroups at most two; in a deep one of several
    shapes, alone and in clusters."""
    workload, output = cell_of(cell)
    family, target = family_named("bits"), arch("sm_90a")
    if cell not in DEEP:
        alike: Counter[tuple[int, int]] = Counter()
        for one in family.candidates(workload, target):
            if isinstance(one, RingConfig) and one.share_weights * one.share_pixels == 1:
                alike[one.channels, one.consumers] += 1
                if alike[one.channels, one.consumers] <= 2:
                    yield one
                if alike.total() >= most * 2:
                    return
        return
    types = workload.precision
    planes = types.activations.bits * types.weights.bits
    wide = 256 // planes
    for shared in SHARED:
        yield _sharing(RingConfig(channels=wide, depth=8, stages=4), shared)
    if cell == "gemm8192:w1a1":
        yield RingConfig(channels=wide, depth=8, stages=4, lead=1)
        yield RingConfig(channels=wide, depth=16, stages=2)
        yield RingConfig(channels=128, consumers=4, depth=4, stages=8)
        yield RingConfig(channels=128, consumers=4, depth=8, stages=4)
        yield RingConfig(channels=128, consumers=3, depth=8, stages=5)
    if output != SUMS:
        yield RingConfig(channels=wide, depth=4, stages=8)


def _sharing(config: Configuration, shared: tuple[int, int]) -> Configuration:
    return config.with_values({"share_weights": shared[0], "share_pixels": shared[1]})


def configurations(cell: str, staged: int) -> list[Configuration]:
    """Those of a cell that can be built: rings, and the likeliest that stage the whole depth."""
    workload, output = cell_of(cell)
    family, target = family_named("bits"), arch("sm_90a")
    found = [one for one in rings(cell) if family.check(family.plan(workload, one, target, output)) is None]
    whole = (one for one in family.candidates(workload, target) if isinstance(one, BitsConfig))
    fitting = (one for one in whole if family.check(family.plan(workload, one, target, output)) is None)
    return list(dict.fromkeys([*islice(fitting, staged), *found]))


def built(cells: Sequence[str]) -> list[str]:
    """The texts."""
    lines = []
    for cell in cells:
        workload, output = cell_of(cell)
        for config in configurations(cell, 2):
            plan = family_of(config).plan(workload, config, arch("sm_90a"), output)
            lines.append(to_line({"cell": cell, "config": config.key, "cuda": subbyte.Kernel(plan).cuda}))
        print(f"{cell}: {len(lines)} texts in all", flush=True)
    return lines


class Cell:
    """Operands and answer of a cell."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.workload, self.output = cell_of(name)
        self._operands: Any = None
        self._wanted: Any = None
        self._packed: dict[tuple[str, ...], Any] = {}

    def kernel(self, key: str) -> subbyte.Kernel:
        """The kernel of a configuration."""
        config = config_from_key(key)
        return subbyte.Kernel(family_of(config).plan(self.workload, config, arch("sm_90a"), self.output))

    def measure(self, key: str, cubin: bytes) -> dict[str, Any]:
        """A kernel's time, and how many words of its output are wrong."""
        kernel = self.kernel(key)
        self.prepare(kernel)
        with GpuKernel(cubin, kernel.launch, 0) as gpu:
            wrong = self.wrong(kernel, gpu.run(self.words(kernel))["Out"])
            timing = gpu.time(PROTOCOL)
        return {
            "cell": self.name, "config": key, "microseconds": timing.microseconds, "wrong": wrong,
            "least": min(timing.samples), "most": max(timing.samples), "goal": GOALS.get(self.name),
            "tops": timing.tops(self.workload.operations), "clock": timing.after.to_dict(),
        }  # fmt: skip

    def wrong(self, kernel: subbyte.Kernel, words: Any) -> int:
        """How many words of bits, or sums, are not what they should be."""
        found = kernel.unpack(words) if self.output == SUMS else words.reshape(-1)
        return int(np.count_nonzero(found != self._wanted))

    def prepare(self, kernel: subbyte.Kernel) -> None:
        """Operands and answer, once."""
        if self._operands is not None:
            return
        import cupy

        x, filters, rule = self._operands = random_operands(kernel, 1)
        sums = convolved(self.workload, x, filters, cupy)
        values = sums if rule is None else compared(sums, rule, cupy)
        del sums
        form, operand = kernel.argument("Out").form, self.workload.precision.output
        packed = self.output != SUMS
        self._wanted = layout_words(form, host(values), operand).reshape(-1) if packed else host(values)
        cupy.get_default_memory_pool().free_all_blocks()

    def words(self, kernel: subbyte.Kernel) -> Any:
        """Weights and tables differ with the channels of a block only, and with the kind of kernel."""
        fitting = kernel.for_requantization(self._operands[2])
        key = (type(kernel.config).__name__, str(kernel.config.to_dict()["channels"]))
        if key not in self._packed:
            self._packed[key] = fitting.pack(*self._operands)
        return self._packed[key]


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser = parser_of("bits products", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FILE")
    step.add_argument("--measure", type=Path, metavar="FILE")
    parser.add_argument("--cells", nargs="+", default=[*DEEP, *FLAT], metavar="CELL", help='"layer" or "layer output"')
    parser.add_argument("--cluster", type=int, help="measure kernels of clusters of so many blocks alone")
    parser.add_argument("--seconds", type=float, default=90.0, help="begin no kernel after that (default 90)")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(arguments)
    if asked.build:
        prove_writable(asked.build)
        write_file(asked.build, "".join(f"{line}\n" for line in built(asked.cells)).encode())
        return 0
    if asked.out is None:
        raise InvalidInput("--measure needs --out RECORD.json")
    prove_writable(asked.out)
    return measured(asked.measure, asked.out, asked.cells, asked.cluster, asked.seconds)


def measured(texts: Path, out: Path, names: Sequence[str], cluster: int | None, seconds: float) -> int:
    """Measure the texts of a file; the record is written anew after each kernel."""
    end = time.monotonic() + seconds
    entries = [json.loads(line) for line in texts.read_text(encoding="utf-8").splitlines()]
    cells = {name: Cell(name) for name in names}
    entries = [
        one for one in entries
        if one["cell"] in cells and cluster in (None, cells[one["cell"]].kernel(one["config"]).launch.cluster)
    ]  # fmt: skip
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(compiled, [to_line({"cuda": one["cuda"]}) for one in entries]))
    found: list[dict[str, Any]] = []
    record = {"schema": 1, "date": now(), "command": command_line(), "protocol": PROTOCOL.__dict__,
              "gpus": [open_device().info.to_dict()], "kernels": found}  # fmt: skip
    ready = {}
    for one, cubin in zip(entries, made, strict=True):
        about = {"cell": one["cell"], "config": one["config"]}
        if isinstance(cubin, str) or time.monotonic() > end:
            found.append({**about, "reason": cubin if isinstance(cubin, str) else "no time left"})
            continue
        try:
            found.append(cells[one["cell"]].measure(one["config"], cubin[0]))
        except SubbyteError as error:
            found.append({**about, "reason": str(error)})
        ready[one["cell"], one["config"]] = cubin[0]
        _say(found[-1])
        write_file(out, (json.dumps(record, indent=1) + "\n").encode())
    _again(found, ready, cells, end)
    write_file(out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(one.get("wrong", 1) for one in found))


def _again(found: list[dict[str, Any]], ready: dict[Any, bytes], cells: dict[str, Cell], end: float) -> None:
    """The fastest of each cell once more, in turns."""
    for place in range(AGAIN):
        for name, cell in cells.items():
            timed = [one for one in found if one["cell"] == name and "microseconds" in one]
            fastest = sorted(timed, key=lambda one: float(one["microseconds"]))
            if place < len(fastest) and time.monotonic() < end:
                one = fastest[place]
                one["second"] = cell.measure(one["config"], ready[name, one["config"]])["microseconds"]
                _say(one)


def _say(one: dict[str, Any]) -> None:
    shown = ("cell", "config", "microseconds", "second", "wrong", "goal", "reason")
    print(*(one.get(name, "") for name in shown), flush=True)
