"""Pictures cannot lie: the records against the trace of the generated kernel, run on the CPU.

Same addresses by the same lanes for every copy, fragment load and store of a block, and the same registers after every
shuffle of the packing program.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.technique import Access, Accesses, accesses, duplicates, packing_program
from subbyte.workload import ConvWorkload

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("the emulator needs g++ or clang++", allow_module_level=True)

WORKLOAD = ConvWorkload(8, 8, 8, 64, 64, 3, 3, 1)
BLOCK = (3, 0)
ARCH = "sm_80"
CONFIGS = {
    "full": MmaConfig(2, 2, 4, 4),
    "full, row by row": MmaConfig(2, 1, 4, 4, reorder_inner=1),
    "shared, NHWC": MmaConfig(2, 1, 4, 4, duplicate_aware="shared", layout="nhwc"),
    "none, row by row": MmaConfig(1, 2, 4, 4, duplicate_aware="none", reorder_inner=1),
    "channels split over warps": MmaConfig(2, 1, 2, 4, chunk=2, split_channels=2),
    "packed after shared memory": MmaConfig(2, 1, 2, 4, register_packing=False),
}
Counts = Counter[tuple[int, int]]
"""How often a lane touches a byte or word address."""


@dataclass(frozen=True)
class Traced:
    """One block of a kernel's run: its rows by kind, the output it wrote, and the warps it has."""

    rows: dict[str, np.ndarray]
    buffers: dict[str, int]
    output: np.ndarray
    warps: int
    iterations: int
    parameter_base: int
    """First byte of shared memory that holds requantization parameters."""

    def copies(self, buffer: str, warp: int) -> Counts:
        """(lane, byte) of the copies that read something."""
        rows = self.rows["copy"]
        mine = rows[(rows["warp"] == warp) & (rows["buffer"] == self.buffers[buffer]) & (rows["valid"] > 0)]
        return Counter(zip(mine["lane"].tolist(), mine["offset"].tolist(), strict=True))


@lru_cache(maxsize=8)
def _traced(name: str) -> Traced:
    from subbyte.emulator import run_cuda
    from subbyte.emulator.trace import KINDS
    from subbyte.kernel import Kernel
    from subbyte.kernel.execute import random_operands

    kernel = Kernel(plan(WORKLOAD, CONFIGS[name], ARCH))
    x, w, requant = random_operands(kernel, 0)
    kernel = kernel.for_requantization(requant)
    out = np.zeros(kernel.argument("Out").shape, np.uint32)
    number = BLOCK[1] * kernel.launch.grid[0] + BLOCK[0]
    buffers = {**kernel.pack(x, w, requant), "Out": out}
    run = run_cuda(kernel.cuda, kernel.launch, buffers, trace=True, blocks=(number,))
    assert run.trace is not None
    rows = {kind: run.trace[run.trace["kind"] == i] for i, kind in enumerate(KINDS)}
    planned = kernel.plan
    return Traced(
        rows,
        {argument: i for i, argument in enumerate(run.arguments)},
        kernel.unpack(out),
        planned.config.threads // 32,
        planned.iterations,
        4 * planned.parameter_base,
    )


def _record(name: str, warp: int, iteration: int = 0) -> Accesses:
    return accesses(WORKLOAD, CONFIGS[name], arch=ARCH, block=BLOCK, warp=warp, iteration=iteration)


def _lanes(group: tuple[Access, ...]) -> Counts:
    return Counter(
        (lane, address) for access in group for lane, address in enumerate(access.addresses) if address is not None
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_copies(name: str) -> None:
    traced = _traced(name)
    for warp in range(traced.warps):
        records = [_record(name, warp, iteration) for iteration in range(traced.iterations)]
        for kind, buffer in (("activation load", "A"), ("weight load", "Wt")):
            expected = sum((_lanes(record.of(kind)) for record in records), Counter())
            assert expected == traced.copies(buffer, warp)
            assert expected


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CONFIGS)
def test_stores(name: str) -> None:
    traced = _traced(name)
    rows = traced.rows["global_store"]
    for warp in range(traced.warps):
        mine = rows[rows["warp"] == warp]
        stored = Counter(zip(mine["lane"].tolist(), mine["offset"].tolist(), strict=True))
        assert stored == _lanes(_record(name, warp).of("output store"))
        # Of the warps that share the input channels, the first one stores the sum of all.
        assert bool(stored) == (warp < traced.warps // CONFIGS[name].split_channels)


def _traced_words(rows: np.ndarray, warp: int) -> Counts:
    """(lane, byte of each word) of shared accesses: the text may split or join vectors, so words are compared."""
    mine = rows[rows["warp"] == warp]
    columns = (mine[name].tolist() for name in ("lane", "shared", "size"))
    return Counter((lane, first + i) for lane, first, size in zip(*columns, strict=True) for i in range(0, size, 4))


def _recorded_words(group: tuple[Access, ...]) -> Counts:
    return Counter(
        (lane, address + i)
        for access in group
        for lane, address in enumerate(access.addresses)
        if address is not None
        for i in range(0, access.bytes_per_lane, 4)
    )


def _between_barriers(traced: Traced, first: int) -> np.ndarray:
    """Shared loads between the first barrier and the next: the multiplications of one stage."""
    barriers = sorted(set(traced.rows["barrier"]["phase"].tolist()))
    rows = traced.rows["shared_load"]
    chosen: np.ndarray = rows[(rows["phase"] > barriers[first]) & (rows["phase"] <= barriers[first + 1])]
    return chosen


@pytest.mark.parametrize("name", CONFIGS)
def test_fragment_loads_of_the_first_stage(name: str) -> None:
    traced = _traced(name)
    rows = _between_barriers(traced, 0)
    for warp in range(traced.warps):
        record = _record(name, warp)
        expected = _recorded_words((*record.of("activation fragment"), *record.of("weight fragment")))
        assert _traced_words(rows, warp) == expected
        assert expected


@pytest.mark.parametrize("name", CONFIGS)
def test_loads_are_those_of_the_duplicates_record(name: str) -> None:
    """One 16-byte copy for each datum, image and channel block.

    Every lowered entry without the switch; with it each datum once, or once per kernel row when rows come one by one.
    """
    traced, config = _traced(name), CONFIGS[name]
    loads = duplicates(WORKLOAD, plan(WORKLOAD, config, ARCH).tile).loads
    copies = traced.rows["copy"]
    count = int((copies["buffer"] == traced.buffers["A"]).sum())
    shared = loads.width if config.reorder_inner else loads.full
    assert count == 8 * WORKLOAD.channel_blocks * (loads.none if config.duplicate_aware == "none" else shared)


def test_spills_and_reads_of_sums() -> None:
    name = "packed after shared memory"
    traced = _traced(name)
    reads = traced.rows["shared_load"]
    reads = reads[reads["phase"] > traced.rows["barrier"]["phase"].max()]
    sums = reads[reads["shared"] < traced.parameter_base]
    for warp in range(traced.warps):
        record = _record(name, warp)
        assert _traced_words(traced.rows["shared_store"], warp) == _recorded_words(record.of("sum spill"))
        assert _traced_words(sums, warp) == _recorded_words(record.of("sum read"))


def test_shuffles_move_the_registers_of_the_packing_program() -> None:
    name = "full"
    traced = _traced(name)
    program = packing_program("quad")
    for warp in range(traced.warps):
        rows = traced.rows["shuffle"]
        mine = rows[rows["warp"] == warp]
        phases = sorted(set(mine["phase"].tolist()))
        stores = _record(name, warp).of("output store")
        assert len(phases) == 2 * len(stores)
        for i, store in enumerate(stores):
            images, row, column, tile = np.array([place for place in store.places if place is not None]).T
            assert len(set(zip(row.tolist(), column.tolist(), strict=True))) == 1
            channels = traced.output[:, row[0], column[0], 8 * tile.min() : 8 * tile.min() + 32]
            trace = program.run(np.ascontiguousarray(channels.reshape(8, 4, 8).transpose(1, 0, 2)))
            assert images.tolist() == [lane // 4 for lane in range(32)]
            for half, step in enumerate(("exchange 1", "exchange 2")):
                moved = np.sort(mine[mine["phase"] == phases[2 * i + half]], order="lane")
                source = next(s.source for s in program.steps if s.name == step)
                assert tuple(moved["source_lane"].tolist()) == source
                state = next(s for s in trace.states if s.step == step)
                peer = next(register for register in state.registers if register.name == "peer")
                assert tuple(moved["value"].tolist()) == peer.words
