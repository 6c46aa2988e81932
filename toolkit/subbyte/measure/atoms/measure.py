"""Measuring the peaks on an open GPU."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from subbyte.device.atom_cases import Case, cases
from subbyte.device.atom_texts import EMPTY_TEXT, INPUT_WORDS
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import Timing, TimingProtocol, command_line, time_launch

SCHEMA = 1
PROTOCOL = TimingProtocol(launches=2, warmup_ms=3, min_total_ms=20, repeats=7, cold=False)
"""Kernels' timing protocol, but short, so that a power limit does not lower the clocks half-way."""
_LAUNCH_PROTOCOL = TimingProtocol(launches=200, warmup_ms=3, min_total_ms=20, repeats=7, cold=False)
_FIRST_TURNS, _TARGET_MICROSECONDS = 256, 1000.0
_COPY_BYTES, _COPY_PATTERN, _COPIES = 2 << 30, 1 << 26, 4
_STREAM_LAUNCHES = 400
Build = Callable[[str, str], bytes]
"""Maps CUDA text and architecture to a cubin."""


def _nvrtc(text: str, arch: str) -> bytes:
    from subbyte.kernel.nvrtc import compile_cubin

    return compile_cubin(text, arch)[0]


def measure_atoms(
    device: CudaDevice, build: Build = _nvrtc, say: Callable[[str], None] = lambda _: None, seed: int = 0,
    only: str = "",
) -> dict[str, Any]:  # fmt: skip
    """The record of all measured peaks of a GPU: plain data, ready for JSON. ``only`` restricts it to instructions
    whose names contain this text.

    ``atoms`` has one row per instruction with its 10^12 operations per second (two per multiply-accumulate), ``copy``
    the bytes read plus written, in 10^12 per second, ``launch`` the microseconds of an empty kernel. Raises
    InvalidInput for an architecture without cases, BuildFailed, MissingDependency without NVRTC, CudaError.
    """
    arch = device.info.arch
    chosen = cases(arch)
    if not chosen:
        known = sorted({name for case in cases() for name in case.archs})
        raise InvalidInput(f"no peaks can be measured on {arch}: there are cases for {', '.join(known)}")
    asked = [case for case in chosen if only in case.atom]
    if not asked:
        raise InvalidInput(
            f"no instruction of {arch} has {only!r} in its name; {did_you_mean(only, (case.atom for case in chosen))}"
        )
    telemetry = Telemetry(device.info.bus_id)
    rows = []
    for case in asked:
        rows.append(_measure(case, device, build(case.text, arch), telemetry, seed))
        say(f"{case.atom}: {rows[-1]['tops']:,.0f} TOPS")
    copy, launch = _copy(device, telemetry), _launch(device, build(EMPTY_TEXT, arch), telemetry)
    return {
        "schema": SCHEMA,
        "kind": "atoms",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(),
        "device": {**device.info.to_dict(), "uuid": telemetry.uuid()},
        "protocol": PROTOCOL.to_dict(),
        "data": f"random words, seed {seed}; operands that are unpacked change in every turn",
        "atoms": rows,
        "copy": copy,
        "launch": launch,
    }


def _measured(timing: Timing) -> dict[str, Any]:
    return {"microseconds": timing.microseconds, "samples": list(timing.samples), "clocks": timing.clocks()}


def _measure(case: Case, device: CudaDevice, cubin: bytes, telemetry: Telemetry, seed: int) -> dict[str, Any]:
    """The row of one instruction, with the number of blocks at which it is fastest."""
    tried = [_measure_with(case, per_sm, device, cubin, telemetry, seed) for per_sm in case.blocks_per_sm]
    best = max(tried, key=lambda row: float(row["tops"]))
    return {**best, "tried": {str(row["blocks_per_sm"]): row["tops"] for row in tried}}


def _measure_with(
    case: Case, per_sm: int, device: CudaDevice, cubin: bytes, telemetry: Telemetry, seed: int
) -> dict[str, Any]:
    blocks = per_sm * device.info.sms
    words = np.random.default_rng(seed).integers(0, 2**32, INPUT_WORDS, np.uint32)
    with GpuKernel(cubin, case.launch(blocks), device) as kernel:

        def timed(turns: int, protocol: TimingProtocol) -> Timing:
            words[0] = turns
            return kernel.time(protocol, {"In": words}, telemetry)

        short = TimingProtocol(launches=1, warmup_ms=0, min_total_ms=0, repeats=3, cold=False)
        first = timed(_FIRST_TURNS, short).microseconds
        turns = max(_FIRST_TURNS, round(_FIRST_TURNS * _TARGET_MICROSECONDS / first))
        timing = timed(turns, PROTOCOL)
        attributes = kernel.attributes
    operations = case.operations(blocks, turns)
    return {
        "atom": case.atom,
        "title": case.title,
        "instruction": case.opcode,
        "native": device.info.arch in case.native,
        "tops": round(timing.tops(operations), 2),
        "operations": operations,
        "blocks_per_sm": per_sm,
        "blocks": blocks,
        "turns": turns,
        "registers": attributes.registers,
        "local_bytes": attributes.local_bytes,
        **_measured(timing),
    }


def _copy(device: CudaDevice, telemetry: Telemetry) -> dict[str, Any]:
    """A copy between two buffers much larger than the L2, repeated in one stream."""
    size = min(_COPY_BYTES, device.info.memory_bytes // 8 // _COPY_PATTERN * _COPY_PATTERN)
    source, target = device.alloc(size), device.alloc(size)
    pattern = device.upload(np.random.default_rng(1).integers(0, 2**32, min(size, _COPY_PATTERN) // 4, np.uint32))

    def copy(to: int, start: int, count: int) -> None:
        device.call("cuMemcpyDtoDAsync", to, start, count, device.stream)

    def copies() -> None:
        for _ in range(_COPIES):
            copy(target.pointer, source.pointer, size)

    try:
        for start in range(0, size, pattern.nbytes):
            copy(source.pointer + start, pattern.pointer, pattern.nbytes)
        device.elapsed_us(copies)
        before = telemetry.snapshot()
        samples = [device.elapsed_us(copies) / _COPIES for _ in range(PROTOCOL.repeats)]
        after = telemetry.snapshot()
    finally:
        for buffer in (source, target, pattern):
            buffer.free()
    microseconds = float(np.median(samples))
    return {
        "bytes": 2 * size,
        "terabytes_per_second": 2 * size / microseconds / 1e6,
        "microseconds": microseconds,
        "samples": samples,
        "clocks": {"before": before.to_dict(), "after": after.to_dict()},
    }


def _launch(device: CudaDevice, cubin: bytes, telemetry: Telemetry) -> dict[str, Any]:
    """An empty kernel: as a node of a graph, and launched one at a time into a stream by this process."""
    function = device.load(cubin, "atom_kernel")
    launch, handle, stream = device.api.cuLaunchKernel, function._handle, device.stream

    def once() -> None:
        launch(handle, 1, 1, 1, 32, 1, 1, 0, stream, 0, 0)

    def many() -> None:
        for _ in range(_STREAM_LAUNCHES):
            once()

    try:
        graph = time_launch(device, once, _LAUNCH_PROTOCOL, telemetry)
        device.elapsed_us(many)
        samples = [device.elapsed_us(many) / _STREAM_LAUNCHES for _ in range(_LAUNCH_PROTOCOL.repeats)]
    finally:
        function.unload()
    return {
        "graph_microseconds": graph.microseconds,
        "graph_samples": list(graph.samples),
        "stream_microseconds": float(np.median(samples)),
        "stream_samples": samples,
        "clocks": graph.clocks(),
    }
