"""Time lowering (F4): dense, CSR and bitmaps, on this GPU, for 3x3 layers of ResNet-50 at batch 8.

Four kernels (``im2col.cu``) lower the same random maps. Every output is put back into dense bytes and compared with the
dense lowering, and that with numpy's own. Times by graph replay, L2 hot, the kernels of a sparsity in turns. Needs a
GPU and NVRTC, no TVM.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import subbyte
from benchmarks.shared.command import answering, parser_of
from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, WrongResult
from subbyte.files import prove_writable, write_file
from subbyte.gpu.device import CudaDevice, DeviceBuffer
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.workload import ConvWorkload

SPARSITIES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99)
CELLS = tuple(f"resnet50.stage{stage}@8" for stage in (2, 3, 4, 5))
KERNELS = ("dense", "bitmap", "csr_warp", "csr_thread")
PROTOCOL = TimingProtocol(launches=20, warmup_ms=0.5, min_total_ms=3.0, repeats=3, cold=False, spin_up_ms=300.0)
ROUNDS = 7
POISON = 0x5A5A5A5A
"""What outputs hold before the first run."""
TEXT = Path(__file__).parent / "im2col.cu"
Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Shape:
    """Sizes of a lowering of stride 1."""

    images: int
    channels: int
    height: int
    width: int
    taps: int
    pad: int

    @classmethod
    def of(cls, wl: ConvWorkload) -> Shape:
        """That of a layer."""
        if wl.stride != 1 or wl.r != wl.s:
            raise InvalidInput(f"{wl}: these kernels lower square filters of stride 1")
        return cls(wl.n, wl.c, wl.h, wl.w, wl.r, wl.pad)

    @property
    def out_rows(self) -> int:
        """Rows of the output."""
        return self.height + 2 * self.pad - self.taps + 1

    @property
    def out_columns(self) -> int:
        """Pixels of an output row."""
        return self.width + 2 * self.pad - self.taps + 1

    @property
    def slot(self) -> int:
        """Bytes of a lowered row, a multiple of four."""
        return -(-self.out_columns // 4) * 4

    @property
    def rows(self) -> int:
        """Lowered rows."""
        return self.images * self.channels * self.taps**2 * self.out_rows

    def text(self) -> str:
        """The CUDA text of the kernels."""
        numbers = {
            "CHANNELS": self.channels, "HEIGHT": self.height, "WIDTH": self.width, "TAPS": self.taps, "PAD": self.pad,
            "OUT_ROWS": self.out_rows, "OUT_COLUMNS": self.out_columns, "SLOT": self.slot, "ROWS": self.rows,
        }  # fmt: skip
        heads = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
        return heads + TEXT.read_text(encoding="utf-8")

    def launch(self, kernel: str, sizes: dict[str, int]) -> Launch:
        """The launch of a kernel; ``sizes`` are the words of its inputs by name."""
        words, columns = self.rows * self.slot // 4, self.rows * self.slot // 2
        outputs = {
            "dense": {"out": words}, "bitmap": {"out_bits": 2 * self.rows, "out": words},
            "csr": {"out_counts": self.rows, "out_columns": columns, "out": words},
        }[kernel.partition("_")[0]]  # fmt: skip
        each = {"csr_thread": 256, "csr_warp": 8}.get(kernel)
        blocks = -(-self.rows // each) if each else -(-words // 256)
        arguments = [Argument(name, "uint32", (size,), "in") for name, size in sizes.items()]
        arguments += [Argument(name, "uint32", (size,), "out") for name, size in outputs.items()]
        return Launch(f"im2col_{kernel}", (blocks, 1, 1), (256, 1, 1), 0, tuple(arguments))


def lowered(shape: Shape, x: NDArray[np.int8]) -> NDArray[np.int8]:
    """The lowering of ``x`` [N,C,H,W] by numpy: [N,C,R,S,P,Q]."""
    padded = np.pad(x, ((0, 0), (0, 0), (shape.pad,) * 2, (shape.pad,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (shape.taps, shape.taps), (2, 3))
    return np.ascontiguousarray(windows.transpose(0, 1, 4, 5, 2, 3))


def inputs(shape: Shape, x: NDArray[np.int8]) -> dict[str, dict[str, Words]]:
    """What each kernel reads, as words: the bytes behind a word of zeros, or the rows' bitmaps and packed values, or
    compressed rows."""
    rows = x.reshape(-1, shape.width)
    mask = rows != 0
    bits = np.zeros(len(rows), np.uint64)
    for column in range(shape.width):
        bits |= mask[:, column].astype(np.uint64) << np.uint64(column)
    start = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int32)
    columns = np.broadcast_to(np.arange(shape.width, dtype=np.uint16), rows.shape)[mask]
    values = words_of(rows[mask])
    compressed = {"start": start.view(np.uint32), "columns": words_of(columns), "values": values}
    return {
        "dense": {"x": words_of(np.concatenate([np.zeros(4, np.int8), x.ravel()]))},
        "bitmap": {"bits": bits.view(np.uint32), "start": start.view(np.uint32), "values": values},
        "csr_warp": compressed, "csr_thread": compressed,
    }  # fmt: skip


def words_of(values: NDArray[Any]) -> Words:
    """Bytes as words, with two words of zeros behind them, which loads of words may touch."""
    raw = values.tobytes()
    return np.frombuffer(raw + bytes(8 + -len(raw) % 4), np.uint32)


def decoded(shape: Shape, kernel: str, found: dict[str, Words]) -> NDArray[np.int8]:
    """What a kernel stored, as dense bytes [N,C,R,S,P,Q]."""
    values = np.frombuffer(found["out"].tobytes(), np.int8).reshape(shape.rows, shape.slot)
    q = shape.out_columns
    if kernel == "dense":
        dense = values[:, :q]
    else:
        dense = np.zeros((shape.rows, q), np.int8)
        if kernel == "bitmap":
            bits = found["out_bits"].view(np.uint64)[:, None] >> np.arange(q, dtype=np.uint64) & np.uint64(1)
            mask = bits.astype(bool)
            dense[mask] = values[np.arange(shape.slot) < mask.sum(1)[:, None]]
        else:
            kept = np.arange(shape.slot) < found["out_counts"].astype(np.int64)[:, None]
            columns = found["out_columns"].view(np.uint16).reshape(shape.rows, shape.slot)
            dense[np.nonzero(kept)[0], columns[kept]] = values[kept]
    return dense.reshape(shape.images, shape.channels, shape.taps, shape.taps, shape.out_rows, q)


def random_map(shape: Shape, sparsity: float, seed: int) -> NDArray[np.int8]:
    """Values of -128 to 127 without 0, and zeros where chance says so."""
    rng = np.random.default_rng(seed)
    size = (shape.images, shape.channels, shape.height, shape.width)
    values = rng.integers(1, 128, size, np.int8) * rng.choice(np.array([-1, 1], np.int8), size)
    return np.where(rng.random(size) < sparsity, np.int8(0), values).astype(np.int8)


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure."""
    parser = parser_of("sparse im2col", __doc__)
    parser.add_argument("out", type=Path, metavar="RECORD")
    parser.add_argument("--cells", nargs="+", default=list(CELLS), metavar="CELL")
    asked = parser.parse_args(arguments)
    prove_writable(asked.out)
    device = CudaDevice(0)
    telemetry = Telemetry(device.info.bus_id)
    record: dict[str, Any] = {
        "format": "subbyte-im2col", "schema": 1, "command": command_line(),
        "date": datetime.now(UTC).date().isoformat(), "gpu": device.info.to_dict(), "protocol": PROTOCOL.to_dict(),
        "rounds": ROUNDS, "rows": [],
    }  # fmt: skip
    for cell in asked.cells:
        shape = Shape.of(subbyte.workload(cell))
        cubin = compile_cubin(shape.text(), device.info.arch)[0]
        for sparsity in SPARSITIES:
            for one in measured(device, cubin, shape, random_map(shape, sparsity, 1), telemetry):
                record["rows"].append({"cell": cell, "sparsity": sparsity, **one})
                print(cell, sparsity, one["kernel"], f"{one['microseconds']:.2f} us", flush=True)
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return 0


def measured(
    device: CudaDevice, cubin: bytes, shape: Shape, x: NDArray[np.int8], telemetry: Telemetry
) -> list[dict[str, Any]]:  # fmt: skip
    """The kernels on one map, compared and timed in turns. Raises WrongResult."""
    wanted, given = lowered(shape, x), inputs(shape, x)
    opened: dict[str, GpuKernel] = {}
    held: list[DeviceBuffer] = []
    samples: dict[str, list[float]] = {}
    try:
        for kernel in KERNELS:
            launch = shape.launch(kernel, {name: one.size for name, one in given[kernel].items()})
            buffers = {one.name: device.upload(given[kernel].get(one.name, np.full(one.shape, POISON, np.uint32)))
                       for one in launch.arguments}  # fmt: skip
            held += buffers.values()
            for buffer in buffers.values():
                buffer.shared = True
            # What a slot has beyond its values is never written: to the launcher outputs are buffers like the others.
            given_all = replace(launch, arguments=tuple(replace(one, role="in") for one in launch.arguments))
            opened[kernel] = GpuKernel(cubin, given_all, device)
            opened[kernel].time(PROTOCOL, buffers, telemetry)
            found = {one.name: buffers[one.name].download(one.shape, one.dtype)
                     for one in launch.arguments if one.role == "out"}  # fmt: skip
            wrong = int((decoded(shape, kernel, found) != wanted).sum())
            if wrong:
                raise WrongResult(f"im2col_{kernel}: {wrong} of {wanted.size} elements differ")
            samples[kernel] = []
        for turn in range(ROUNDS):
            for kernel in KERNELS if turn % 2 == 0 else reversed(KERNELS):
                samples[kernel].append(opened[kernel].time(PROTOCOL, telemetry=telemetry).microseconds)
    finally:
        for one in opened.values():
            one.close()
        for buffer in held:
            buffer.free()
    return [
        {"kernel": kernel, "microseconds": statistics.median(times), "samples": times, "elements": wanted.size,
         "wrong": 0, "nonzeros": int(np.count_nonzero(wanted))}
        for kernel, times in samples.items()
    ]  # fmt: skip
