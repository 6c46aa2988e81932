"""Run the experiments of TCBNN (T3, T4) and APNN-TC (A1, A2, A3, A5): every output compared, every side timed twice.

    python benchmarks/bits papers --build FILE.json.gz --only T3 A1              # where TVM is
    python benchmarks/bits papers --measure FILE.json.gz --out RECORD.json       # where the GPU is; needs NVRTC, CuPy

A side is a kernel, or several launches in a row. Its output is compared element by element with a convolution of values
by CuPy in floating point that holds every sum. It is timed by graph replay, hot L2, one launch after the other; once
all sides of a point are timed, the fastest kernel of each is timed again. What is expected was written down before, in
notes/bits_papers.md. T1 and T2 are `subbyte bench strides`, T5, T6 and A4 `networks` and `ensembles`, A6 `accuracy`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bits import direct
from benchmarks.bits.launches import Launches
from benchmarks.bits.libraries import BYTES, HALVES, LibraryProduct
from benchmarks.bits.paper_kernels import Built, Operands
from benchmarks.bits.paper_sides import EXPERIMENTS, POOLED, TARGET
from benchmarks.bits.xnor import XNOR, XnorProduct
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import BuildFailed, InvalidInput, SubbyteError
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import hold
from subbyte.gpu.timing import Timing, TimingProtocol, command_line, time_launch
from subbyte.kernel import nvrtc
from subbyte.records.describe import now
from subbyte.workload import ConvWorkload
from subbyte.workload.matmul import MatmulWorkload

LIBRARIES = {
    "T3": (BYTES, HALVES),
    "T3 packing": (XNOR, BYTES, HALVES),
    "T3 deep": (XNOR, BYTES, HALVES),
    "A1": (BYTES,),
    "A5": (BYTES,),
}
Product = LibraryProduct | XnorProduct
GRAPH_US, MOST_LAUNCHES = 2000.0, 50
"""Microseconds of a graph, roughly, and launches in it."""
HEAD = ("experiment", "point", "name", "layer_spec", "key", "output", "ends")


@answering
def main(arguments: Sequence[str]) -> int:
    """Build or measure."""
    parser = parser_of("bits papers", __doc__)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="FILE")
    step.add_argument("--measure", type=Path, metavar="FILE")
    known = ", ".join(EXPERIMENTS)
    parser.add_argument("--only", nargs="+", default=list(EXPERIMENTS), metavar="NAME", help=f"of {known}")
    parser.add_argument("--configs", type=int, default=3, help="configurations of a side on wgmma (default 3)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=270.0, help="begin no point after that (default 270)")
    asked = parser.parse_args(arguments)
    for name in asked.only:
        if name not in EXPERIMENTS:
            raise InvalidInput(f"--only {name}: expected some of {known}")
    if asked.build:
        prove_writable(asked.build)
        write_file(asked.build, gzip.compress(json.dumps(built(asked.only, asked.configs)).encode()))
        return 0
    if asked.out is None:
        raise InvalidInput("--measure needs --out RECORD.json")
    prove_writable(asked.out)
    return measured(json.loads(gzip.decompress(asked.measure.read_bytes())), asked.only, asked.out, asked.seconds)


def built(only: Sequence[str], configs: int) -> dict[str, Any]:
    """The sides of the experiments, and their CUDA texts by digest."""
    from subbyte.kernel import Kernel

    texts: dict[str, str] = {}
    sides = []
    for experiment in only:
        for side in EXPERIMENTS[experiment](configs):
            one = Built(experiment, side.point, side.name, side.layer.spec, side.config.key, side.output, side.ends)
            kernel: Kernel = one.kernel
            digests = []
            for text in filter(None, (kernel.cuda, one.second_text)):
                digests.append(hashlib.sha256(text.encode()).hexdigest()[:24])
                texts[digests[-1]] = text
            sides.append({**{name: getattr(one, name) for name in HEAD}, "texts": digests})
        print(f"{experiment}: {len(sides)} sides, {len(texts)} texts so far", flush=True)
    return {"sides": sides, "texts": texts}


def compiled(text: str) -> bytes | str:
    """A cubin, or why there is none."""
    try:
        return nvrtc.compile_both(text, TARGET)[0]
    except BuildFailed as error:
        return str(error)[:300]


def packed(side: dict[str, Any]) -> Any:
    """The words that a side's launches read, or why there are none."""
    try:
        return _of(side).words()
    except SubbyteError as error:
        return str(error)


def operands(side: dict[str, Any]) -> Operands:
    """The values of a side's layer."""
    return _of(side).operands()


class Prepared(NamedTuple):
    """What other processes do meanwhile: cubins by text, words by side, values by layer; or reasons."""

    cubins: dict[str, Future[bytes | str]]
    words: dict[int, Future[Any]]
    values: dict[str, Future[Operands]]


def _of(side: dict[str, Any]) -> Built:
    return Built(*(side[name] for name in HEAD))


def measured(file: dict[str, Any], only: Sequence[str], out: Path, seconds: float) -> int:
    """Measure the sides, point by point; the record is written after each. The exit code."""
    end = time.monotonic() + seconds
    sides = [side for side in file["sides"] if side["experiment"] in only]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        words, values = {}, {}
        cubins: dict[str, Future[bytes | str]] = {}
        for place, side in enumerate(sides):  # in the order in which they are needed; workers start before the GPU does
            for text in side["texts"]:
                if text not in cubins:
                    cubins[text] = pool.submit(compiled, file["texts"][text])
            words[place] = pool.submit(packed, side)
            if side["layer_spec"] not in values:
                values[side["layer_spec"]] = pool.submit(operands, side)
        try:
            return _points(sides, Prepared(cubins, words, values), out, end)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _points(sides: list[dict[str, Any]], prepared: Prepared, out: Path, end: float) -> int:
    import cupy  # type: ignore[import-not-found,unused-ignore]

    device = CudaDevice(0)
    record: dict[str, Any] = {
        "schema": 1, "kind": "bit papers", "date": now(), "command": command_line(), "device": device.info.to_dict(),
        "compared": "every element, with a convolution of values by CuPy in floats that hold every sum",
        "protocol": _protocol(1.0).to_dict(), "sides": [], "left_out": [],
    }  # fmt: skip
    groups: dict[tuple[str, str], list[int]] = {}
    for place, side in enumerate(sides):
        groups.setdefault((side["experiment"], side["point"]), []).append(place)
    with hold(device.info):
        for (experiment, point), places in groups.items():
            if time.monotonic() > end:
                record["left_out"].append([experiment, point])
                continue
            started, group = time.monotonic(), Point(device, cupy, prepared)
            for place in places:
                group.measure(place, sides[place])
            group.libraries(LIBRARIES.get(experiment, ()))
            group.again()
            group.close()
            record["sides"] += group.rows
            took = time.monotonic() - started
            print(f"{experiment} {point}: {took:.1f} s; " + ", ".join(_said(group.rows)), flush=True)
            write_file(out, (json.dumps(record, indent=1) + "\n").encode())
    return 1 if any(row.get("wrong") for row in record["sides"]) else 0


def _said(rows: list[dict[str, Any]]) -> Iterator[str]:
    best: dict[str, float] = {}
    for row in rows:
        if "microseconds" in row:
            best[row["side"]] = min(row["microseconds"], best.get(row["side"], row["microseconds"]))
        if row.get("wrong") or "reason" in row:
            yield f"{row['side']}: {row.get('reason', 'WRONG')}"[:160]
    yield from (f"{side} {microseconds:.2f}" for side, microseconds in best.items())


def _protocol(microseconds: float) -> TimingProtocol:
    launches = max(1, min(MOST_LAUNCHES, int(GRAPH_US / microseconds)))
    return TimingProtocol(cold=False, launches=launches, min_total_ms=10.0, warmup_ms=2.0)


class Point:
    """The sides of one point: their rows, and those that are loaded."""

    def __init__(self, device: CudaDevice, xp: Any, prepared: Prepared) -> None:
        self.device, self.xp, self.prepared = device, xp, prepared
        self.rows: list[dict[str, Any]] = []
        self._loaded: list[tuple[dict[str, Any], Launches | Product]] = []
        self._sums: tuple[str, Any] = ("", None)
        self._wanted: tuple[tuple[object, ...], Any] = ((), None)
        self._layer: ConvWorkload | None = None

    def measure(self, place: int, side: dict[str, Any]) -> None:
        """Compare and time a side, or say why not."""
        one = _of(side)
        self._layer = self._layer or one.layer
        row = {"experiment": one.experiment, "point": one.point, "side": one.name, "layer": one.layer_spec,
               "config": one.key, "output": one.output, "launches": one.ends}  # fmt: skip
        self.rows.append(row)
        machine = [self.prepared.cubins[text].result() for text in side["texts"]]
        words = self.prepared.words.pop(place).result()
        failed = [found for found in (*machine, words) if isinstance(found, str)]
        if failed:
            row["reason"] = failed[0]
            return
        try:
            loaded = one.on_gpu(machine[0], machine[1] if len(machine) > 1 else None, words, self.device)
            self._loaded.append((row, loaded))
            values = one.values(loaded.run(np.int32 if one.written.dtype == "int32" else np.uint32))
            row["elements"], row["wrong"] = values.size, int(np.count_nonzero(values != self.wanted(one)))
            self._time(row, loaded)
        except SubbyteError as error:
            row["reason"] = str(error)

    def wanted(self, one: Built) -> Any:
        """What a side must give; of the last layer and the last rule it is kept."""
        if self._sums[0] != one.layer_spec:
            x, w = self.prepared.values[one.layer_spec].result()
            self._sums = one.layer_spec, direct.convolved(one.layer, x, w, self.xp)
        key = one.layer_spec, one.output, one.ends == POOLED, one.rule is None or type(one.rule).__name__
        if self._wanted[0] != key:
            self._wanted = key, one.expected(self._sums[1], self.xp)
        return self._wanted[1]

    def libraries(self, names: Sequence[str]) -> None:
        """Sides of a matrix product that are none of our kernels."""
        if not isinstance(self._layer, MatmulWorkload):
            return
        layer = self._layer
        for name in names:
            where = {key: self.rows[0][key] for key in ("experiment", "point")}
            row: dict[str, Any] = {
                **where, "side": name, "layer": layer.sizes, "output": "float16" if name == HALVES else "int32",
            }  # fmt: skip
            self.rows.append(row)
            try:
                kind = XnorProduct if name == XNOR else LibraryProduct
                product = kind(name, layer.rows, layer.columns, layer.depth, self.device)
                self._loaded.append((row, product))
                self._time(row, product)
                row["elements"], row["wrong"] = layer.rows * layer.columns, product.wrong()
            except (SubbyteError, ImportError) as error:
                row["reason"] = str(error)

    def again(self) -> None:
        """Time the fastest kernel of each side once more, all sides in turn."""
        fastest: dict[str, tuple[dict[str, Any], Launches | Product]] = {}
        for row, loaded in self._loaded:
            known = fastest.get(row["side"])
            if "microseconds" in row and (known is None or row["microseconds"] < known[0]["microseconds"]):
                fastest[row["side"]] = row, loaded
        for row, loaded in fastest.values():
            row["second"] = time_launch(self.device, loaded.launcher(), _protocol(row["microseconds"])).microseconds

    def _time(self, row: dict[str, Any], loaded: Launches | Product) -> None:
        launch = loaded.launcher()
        launch()
        rough = self.device.elapsed_us(launch)
        timing: Timing = time_launch(self.device, launch, _protocol(rough))
        row |= {"microseconds": timing.microseconds, "samples": list(timing.samples), "clock": timing.after.to_dict()}

    def close(self) -> None:
        """Free what is loaded."""
        for _, loaded in self._loaded:
            loaded.close()
        self._loaded = []
        self.xp.get_default_memory_pool().free_all_blocks()
