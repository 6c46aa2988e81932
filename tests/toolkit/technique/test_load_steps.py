"""The steps of the duplicate-aware load against the kernel's run: the same slots, the same words, the right sums."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.numerics import pack_words, reference
from subbyte.technique.duplicates import duplicates
from subbyte.technique.load_steps import LoadStep, LoadSteps, load_steps
from subbyte.workload import ConvWorkload

if not (shutil.which("g++") or shutil.which("clang++")):
    pytest.skip("the emulator needs g++ or clang++", allow_module_level=True)

WORKLOAD = ConvWorkload(8, 9, 9, 32, 32, 3, 3, 1)
WIDE = replace(WORKLOAD, c=64)
CONFIG = MmaConfig(2, 1, 4, 2)
CASES = {
    "full": (WORKLOAD, CONFIG, "sm_80", 0, 0),
    "full, inside the image": (WORKLOAD, CONFIG, "sm_80", 4, 1),
    "shared": (WORKLOAD, replace(CONFIG, duplicate_aware="shared"), "sm_80", 0, 1),
    "none": (WORKLOAD, replace(CONFIG, duplicate_aware="none"), "sm_80", 3, 0),
    "unpacked to bytes": (WORKLOAD, CONFIG, "sm_90a", 0, 0),
    "one pixel for each warp": (WORKLOAD, MmaConfig(2, 1, 1, 4), "sm_80", 1, 1),
    "row by row": (WORKLOAD, replace(CONFIG, reorder_inner=1), "sm_80", 0, 0),
    "two column warps, NHWC": (WORKLOAD, MmaConfig(1, 2, 4, 2, layout="nhwc"), "sm_80", 2, 1),
    "two blocks of channels": (WIDE, replace(CONFIG, chunk=2), "sm_80", 5, 0),
    "channels split over warps": (WIDE, replace(CONFIG, chunk=2, split_channels=2), "sm_80", 5, 3),
    "stride": (replace(WORKLOAD, stride=2), MmaConfig(1, 1, 4, 2), "sm_80", 1, 0),
    "dilation": (replace(WORKLOAD, dilation=2, pad=2), MmaConfig(1, 1, 4, 2), "sm_80", 0, 0),
}


class Run:
    """A kernel's run of one block: its trace and the operands it was given."""

    def __init__(self, name: str) -> None:
        from subbyte.kernel import Kernel
        from subbyte.kernel.execute import random_operands

        workload, config, arch, self.block, self.warp = CASES[name]
        self.kernel = Kernel(plan(workload, config, arch))
        self.plan = self.kernel.plan
        self.x, self.w, _ = random_operands(self.kernel, 0)
        run = self.kernel.trace(blocks=(self.block,))
        self.rows: Any = run.trace
        self.argument = run.arguments.index("A")
        self.channel_block = self.warp // 2 if config.split_channels == 2 else 0

    @property
    def record(self) -> LoadSteps:
        """The steps of this run."""
        return load_steps(self.kernel, block=self.block, warp=self.warp)

    def values(self, pixel: tuple[int, int], channel_block: int | None = None) -> np.ndarray:
        """int8 [8 images, 32 channels] of an input pixel, zeros outside the image."""
        w, first = self.plan.workload, 32 * (self.channel_block if channel_block is None else channel_block)
        if not (0 <= pixel[0] < w.h and 0 <= pixel[1] < w.w):
            return np.zeros((8, 32), np.int8)
        return self.x[:, pixel[0], pixel[1], first : first + 32]


def problems(record: LoadSteps, run: Run) -> list[str]:
    """Everything in which a record differs from what the kernel did and from what a convolution is."""
    return [*_copy_problems(record, run), *_load_problems(record, run), *_sum_problems(record, run)]


def _copy_problems(record: LoadSteps, run: Run) -> list[str]:
    """Each slot's bytes come from its datum, once, and padding reads nothing."""
    rows = of_kind(run.rows, "copy")
    stage = rows["shared"] < 4 * run.plan.activation_words
    rows = rows[(rows["buffer"] == run.argument) & (rows["phase"] == 0) & stage]
    read = {int(row["shared"]): (int(row["offset"]), int(row["valid"])) for row in rows}
    images = run.kernel.pack(run.x, run.w, None if run.kernel.output == "int32" else _requant(run))["A"].view(np.uint8)
    found, filled = [], []
    for step in (step for step in record.steps if step.kind == "copy"):
        for slot, datum in zip(step.slots, step.data, strict=True):
            filled.append(slot)
            wanted = pack_words(run.values(record.data[datum], 0)).view(np.uint8).reshape(8, 16)
            for image in range(8):
                offset, valid = read[128 * slot * run.plan.config.chunk + 16 * image]
                data = images.ravel()[offset : offset + 16] if valid else np.zeros(16, np.uint8)
                if (data != wanted[image]).any() or bool(valid) == record.padding[datum]:
                    found.append(f"slot {slot} is not filled from datum {datum}")
            if record.slots[slot] != datum:
                found.append(f"slot {slot} is said to hold {record.slots[slot]}")
    return found + ([] if sorted(filled) == list(range(run.plan.slots)) else ["slots are missing"])


def _requant(run: Run) -> Any:
    from subbyte.kernel.execute import random_operands

    return random_operands(run.kernel, 0)[2]


def _load_problems(record: LoadSteps, run: Run) -> list[str]:
    """The words that all lanes loaded are the datum's, and every load of the stage is there."""
    rows = of_kind(run.rows, "shared_load")
    rows = rows[(rows["warp"] == run.warp) & (rows["shared"] < 4 * run.plan.activation_words)]
    blocks = rows["shared"] // 128 % run.plan.config.chunk == run.channel_block
    rows = rows[blocks & (rows["phase"] <= 1 + record.multiplications * run.plan.config.chunk)]
    loads = [step for step in record.steps if step.kind == "load"]
    found = []
    for lane in range(32):
        mine = rows[rows["lane"] == lane]
        mine = mine[np.argsort(mine["sequence"])][: len(loads)]
        for step, row in zip(loads, mine, strict=True):
            word = pack_words(run.values(record.data[step.data[0]])).view(np.uint32).ravel()[lane]
            place = 128 * (step.slots[0] * run.plan.config.chunk + run.channel_block) + 4 * lane
            named = record.slots[step.slots[0]] == step.data[0]
            if int(row["value"]) != int(word) or int(row["shared"]) != place or not named:
                found.append(f"lane {lane}: load of slot {step.slots[0]} is not datum {step.data[0]}")
    return found


def _sum_problems(record: LoadSteps, run: Run) -> list[str]:
    """Doing what the steps say, fragment by fragment, gives the convolution of these channels."""
    w, first = run.plan.workload, 32 * run.channel_block
    fragments: dict[int, np.ndarray] = {}
    datum: dict[int, int] = {}
    sums = np.zeros((len(record.pixels), 8, 8 * record.columns), np.int64)
    column0 = 8 * record.columns * (run.warp // run.plan.config.blk_row_warps % run.plan.config.blk_col_warps)
    for step in record.steps:
        if step.kind == "load":
            fragments[step.registers[0]] = run.values(record.data[step.data[0]])
            datum[step.registers[0]] = step.data[0]
        elif step.kind == "mma":
            assert step.tap is not None
            assert step.column is not None
            filters = slice(column0 + 8 * step.column, column0 + 8 * step.column + 8)
            weights = run.w[filters, step.tap[0], step.tap[1], first : first + 32].astype(np.int64)
            if step.data != tuple(datum.get(register) for register in step.registers):
                return [f"fragments {step.registers} do not hold data {step.data}"]
            for pixel, register in dict(zip(step.pixels, step.registers, strict=True)).items():
                held = fragments[register]
                sums[pixel, :, 8 * step.column : 8 * step.column + 8] += held.astype(np.int64) @ weights.T
    used = run.w[..., first : first + 32].copy()
    used[:, run.plan.rows_staged :] = 0  # row by row, the first stage holds kernel row 0 alone
    right = reference(replace(w, c=32, name=""), run.x[..., first : first + 32], used)
    return _compare(record, run, sums, right, column0)


def _compare(record: LoadSteps, run: Run, sums: np.ndarray, right: np.ndarray, column0: int) -> list[str]:
    down, across = run.plan.pixel_tiles
    row0 = record.block // across % down * record.tile[0]
    col0 = record.block % across * record.tile[1]
    found = []
    for number, (row, col) in enumerate(record.pixels):
        p, q = row0 + row, col0 + col
        if p < run.plan.workload.p and q < run.plan.workload.q:
            wanted = right[:, p, q, column0 : column0 + sums.shape[2]]
            found += [] if (sums[number] == wanted).all() else [f"output pixel {number} is wrong"]
    return found


@pytest.mark.sample("full", "row by row")
@pytest.mark.parametrize("name", CASES)
def test_the_steps_are_what_the_kernel_did(name: str) -> None:
    run = Run(name)
    assert not problems(run.record, run)


def _changed(record: LoadSteps, kind: str, **fields: Any) -> LoadSteps:
    """The record with the fourth step of a kind changed."""
    at = [i for i, step in enumerate(record.steps) if step.kind == kind][3]
    steps = list(record.steps)
    steps[at] = replace(steps[at], **fields)
    return replace(record, steps=tuple(steps))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("copy", {"data": (1, 2, 3, 4)}),
        ("copy", {"slots": (0, 1, 2, 3)}),
        ("load", {"data": (2,)}),
        ("load", {"slots": (2,)}),
        ("load", {"registers": (9,)}),
        ("mma", {"registers": (1, 2)}),
        ("mma", {"tap": (1, 1)}),
        ("mma", {"pixels": (0, 1)}),
        ("mma", {"column": 0}),
        ("mma", {"data": (1, 2)}),
    ],
)
def test_a_changed_record_is_told_apart(kind: str, fields: dict[str, Any]) -> None:
    run = Run("full, inside the image")
    assert problems(_changed(run.record, kind, **fields), run)


def test_a_missing_step_is_told_apart() -> None:
    run = Run("full")
    assert problems(replace(run.record, steps=run.record.steps[1:]), run)
    assert problems(replace(run.record, steps=run.record.steps[:-1]), run)
    assert problems(replace(run.record, slots=run.record.slots[::-1]), run)


@pytest.mark.parametrize(("way", "shared", "registers"), [("none", 72, 36), ("shared", 24, 36), ("full", 24, 18)])
def test_the_counts_are_those_of_the_duplicates_record(way: str, shared: int, registers: int) -> None:
    record = load_steps(WORKLOAD, MmaConfig(2, 1, 4, 2, tile_height=2, duplicate_aware=way))
    block = duplicates(WORKLOAD, record.tile)
    warp = block.warp(0, 4)
    assert (block.loads.none, block.loads.full, warp.loads.none, warp.loads.full) == (72, 24, 36, 18)
    assert [(level.loads, level.unshared) for level in record.levels] == [(shared, 72), (registers, 36)]
    assert [level.saved for level in record.levels] == [72 - shared, 36 - registers]
    assert record.steps[-1].done == (shared, registers, record.multiplications)
    assert record.multiplications == 9 * 2 * 2
    again = {kind: sum(step.repeats for step in record.steps if step.kind == kind) for kind in ("copy", "load")}
    assert again == {"copy": shared - 24, "load": registers - 18}
    # Each fragment that two or three taps of a kernel row share is multiplied again for all but the first of them.
    kept = sum(step.repeats for step in record.steps if step.kind == "mma")
    assert kept == (2 * (36 - 18) if way == "full" else 0)


def test_fragments_of_the_steps_are_those_of_the_duplicates_record() -> None:
    record = load_steps(WORKLOAD, MmaConfig(2, 1, 4, 2, tile_height=2), warp=1)
    mapped = duplicates(WORKLOAD, record.tile).warp(1, 4)
    order = {
        (pixel, tap): k for k, (*pixel_, r, s) in enumerate(mapped.index) for pixel, tap in [(tuple(pixel_), (r, s))]
    }
    for step in record.steps:
        for pixel, register in zip(step.pixels, step.registers, strict=step.kind == "mma"):
            if step.kind == "mma":
                assert mapped.fragment[order[record.pixels[pixel], step.tap]] == register  # type: ignore[index]


def test_the_record_prints_and_is_json() -> None:
    record = load_steps(WORKLOAD, CONFIG)
    assert "without sharing" in record.text()
    assert record.to_dict()["steps"][0]["kind"] == "copy"
    assert len(record.table().rows) == len(record.steps)
    assert isinstance(record.steps[0], LoadStep)


def test_what_cannot_be_stepped_through_is_said() -> None:
    with pytest.raises(InvalidInput, match="block's pixel tile 99"):
        load_steps(WORKLOAD, CONFIG, block=99)
    with pytest.raises(InvalidInput, match="warp 2"):
        load_steps(WORKLOAD, CONFIG, warp=2)
    with pytest.raises(Unsupported, match="sm_80 or later"):
        load_steps(WORKLOAD, CONFIG, arch="sm_75")
    with pytest.raises(Unsupported, match="32 channels"):
        load_steps(WIDE, replace(CONFIG, chunk=2, atom="s4.m16n8k64"))
    with pytest.raises(InvalidInput, match="fewer pixels"):
        load_steps("n8h16w16c32k32r7s7p3", MmaConfig(1, 1, 8, 4, duplicate_aware="none"))
    with pytest.raises(InvalidInput, match="cannot be built: divisibility: chunk 4"):
        load_steps(WORKLOAD, replace(CONFIG, chunk=4))
    run = Run("full")
    with pytest.raises(InvalidInput, match="has its own"):
        load_steps(run.kernel, CONFIG)
