"""Measuring tiles and chains of products on an open GPU."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.latency_texts import (
    SPACES,
    STORED,
    TILE_WORDS,
    Chain,
    chains,
    load_text,
    store_text,
)
from subbyte.device.memory import LINE, WORD, bank_conflicts, sectors
from subbyte.errors import WrongResult
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.telemetry import Telemetry
from subbyte.gpu.timing import command_line
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.measure.latency.program import TimedProgram
from subbyte.workload.operand import WORD_BITS

SCHEMA = 1
TURNS = 1024
LOADED = tuple(range(4, 33, 4))
"""Row distances, in words, of a tile of bits: TCBNN's 128 to 1,024 bits in steps of 128."""
SAVED = tuple(range(8, 1025, 8))
"""Row distances, in words, of a tile of sums: TCBNN's 8 to 1,024 in steps of 8."""
_WARP = np.arange(32)
Build = Callable[[str, str], bytes]
"""Maps CUDA text and architecture to a cubin."""


def _nvrtc(text: str, arch: str) -> bytes:
    return compile_cubin(text, arch)[0]


def measure_strides(
    device: CudaDevice, build: Build = _nvrtc, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The record of loads, stores and chains on a GPU: plain data, ready for JSON.

    ``loads`` and ``stores`` have a row for each memory space and distance, with the cycles of one access of a warp and
    the model's count; ``chains`` has one for each instruction and length, with the cycles of a group. Raises
    WrongResult if a program did not move, or add up, what it should; BuildFailed, MissingDependency without NVRTC,
    CudaError.
    """
    telemetry = Telemetry(device.info.bus_id)
    arch = device.info.arch
    before = telemetry.snapshot()
    record: dict[str, Any] = {
        "schema": SCHEMA, "kind": "strides", "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(), "device": {**device.info.to_dict(), "uuid": telemetry.uuid()},
        "protocol": {"turns": TURNS, "launches": 5, "blocks": 1, "clock": "of the multiprocessor, 32 bits"},
        "loads": [], "stores": [],
    }  # fmt: skip
    for space in SPACES:
        record["loads"] += _loads(space, device, build(load_text(space), arch))
        say(f"loads, {space}")
    for space in STORED:
        record["stores"] += _stores(space, device, build(store_text(space), arch))
        say(f"stores, {space}")
    record["chains"] = [_chain(one, device, build(one.text, arch)) for one in chains(arch)]
    say("chains of products")
    record["clocks"] = {"before": before.to_dict(), "after": telemetry.snapshot().to_dict()}
    return record


def _loads(space: str, device: CudaDevice, cubin: bytes) -> list[dict[str, Any]]:
    rows = []
    with TimedProgram(cubin, device, shared_bytes=_shared(space)) as program:
        for distance in LOADED:
            _, words = program.run(3, distance)
            places = _WARP // 4 * distance + _WARP % 4
            _same(words[:32], 3 * program.data[places], f"a load from {space}, {distance} words from row to row")
            found = program.cycles(TURNS, distance)
            rows.append({"space": space, "ldm": distance * WORD_BITS, "cycles": found.median,
                         "samples": list(found.samples), **_model(space, places, 1)})  # fmt: skip
    return rows


def _stores(space: str, device: CudaDevice, cubin: bytes) -> list[dict[str, Any]]:
    rows = []
    with TimedProgram(cubin, device, shared_bytes=_shared(space)) as program:
        for distance in SAVED:
            _, words = program.run(3, distance)
            places = _WARP // 4 * distance + _WARP % 4 * 2
            for next_one in (0, 1):
                what = f"a store to {space}, {distance} words from row to row"
                _same(words[32:][places + next_one], (2 + _WARP).astype(np.uint32), what)
            found = program.cycles(TURNS, distance)
            rows.append({"space": space, "ldm": distance, "cycles": found.median, "samples": list(found.samples),
                         **_model(space, places, 2)})  # fmt: skip
    return rows


def _shared(space: str) -> int:
    return WORD * TILE_WORDS if space == "shared" else 0


def _model(space: str, places: NDArray[np.int64], words: int) -> dict[str, int]:
    """The modelled cost of an access to these words, in wavefronts, or in sectors and lines touched."""
    addresses = [WORD * int(place) for place in places]
    if space == "shared":
        return {"wavefronts": bank_conflicts(addresses, WORD * words).wavefronts}
    return {"sectors": len(sectors(addresses, WORD * words).sectors), "lines": len({one // LINE for one in addresses})}


def _chain(chain: Chain, device: CudaDevice, cubin: bytes) -> dict[str, Any]:
    what = f"{chain.count} x {chain.instruction}"
    with TimedProgram(cubin, device, chain.threads, chain.shared_bytes) as program:
        once, thrice = (program.run(turns)[1][: chain.threads] for turns in (1, 3))
        _same(thrice, 3 * once, f"{what}, three times once")
        if not once.any():
            raise WrongResult(f"{what} on random words: all sums are zero")
        found = program.cycles(TURNS)
    return {"instruction": chain.instruction, "dependent": chain.dependent, "count": chain.count,
            "cycles": found.median, "samples": list(found.samples)}  # fmt: skip


def _same(found: NDArray[np.uint32], wanted: NDArray[np.uint32], what: str) -> None:
    wrong = int(np.count_nonzero(found != wanted))
    if wrong:
        raise WrongResult(f"{what}: {wrong} of {found.size} words are not those that belong there")
