"""The duplicate-aware load step by step, as one warp of a generated kernel does it (Algorithm 1, Choi et al. 2022).

The steps are condensed from the trace of the kernel's own CUDA text on the CPU: which warp-wide copy fills which slots
of shared memory from which input pixels, which fragment load reads which slot, and which multiplication follows. They
show the first stage of one block and, in registers, its first block of 32 channels in one warp. Weights are loaded as
well, but not shown, as in the algorithm. A *datum* is one input pixel of 8 images and 32 channels: 128 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.emulator.trace import KINDS, Rows, of_kind, warp_groups
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.mma.explain.warp import Warp
from subbyte.families.mma.plan import BLOCK_WORDS, Plan
from subbyte.families.shared.listing import Listing, listed
from subbyte.families.topic import Trace
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.workload import ConvWorkload

DATUM_BYTES = 4 * BLOCK_WORDS
MOST_STEPS = 1500
"""The most instructions of one warp in a record; a stage with more is too long to step through."""


@dataclass(frozen=True)
class LoadStep:
    """One warp-wide instruction. ``data`` are the indices of the input pixels that it moves or multiplies."""

    kind: str
    """``copy`` (global to shared memory), ``load`` (shared memory to registers) or ``mma``."""
    data: tuple[int, ...]
    slots: tuple[int, ...] = ()
    """Slots of shared memory written by a copy or read by a load."""
    registers: tuple[int, ...] = ()
    """The fragment written by a load; the fragments that an mma multiplies, one for each of its pixels."""
    tap: tuple[int, int] | None = None
    """Kernel position (r, s) whose weights an mma multiplies."""
    pixels: tuple[int, ...] = ()
    """Indices of the warp's output pixels to which an mma adds."""
    column: int | None = None
    """The warp's tile of 8 output channels to which an mma adds."""
    line: int = 0
    """Line of the generated CUDA text, counted from 1."""
    repeats: int = 0
    """How many of ``data`` an earlier step has already copied or loaded; for an mma, fragments reused from another
    tap."""
    done: tuple[int, int, int] = (0, 0, 0)
    """Slots filled, fragments loaded and mma executed, this step included."""
    lanes: int = 32
    """Lanes of the warp that move each datum."""


@dataclass(frozen=True)
class Level:
    """The loads at one level of memory, each of one datum, and their number without sharing."""

    name: str
    loads: int
    unshared: int

    @property
    def saved(self) -> int:
        """Loads saved compared with no sharing."""
        return self.unshared - self.loads


@dataclass(frozen=True)
class LoadSteps(InfoRecord):
    """What one warp of a block does with the block's input pixels; see :func:`load_steps`."""

    workload: ConvWorkload
    config: str
    arch: str
    sharing: str
    block: int
    warp: int
    tile: tuple[int, int]
    """Rows and columns of the block's output pixels."""
    region: tuple[int, int]
    """Rows and columns of the input pixels the block stages."""
    data: tuple[tuple[int, int], ...]
    """Input pixel (row, column) of each datum, row by row; padding if negative or outside the image."""
    padding: tuple[bool, ...]
    """Whether a datum is outside the image and filled with zeros."""
    slots: tuple[int, ...]
    """The datum that each slot of shared memory holds."""
    slot_columns: int
    """Slots in one row: input columns, or output pixels of the lowered tile."""
    fragments: int
    """Fragments of the input that a lane holds at a time."""
    fragment_columns: int
    """Fragments in one row."""
    pixels: tuple[tuple[int, int], ...]
    """The warp's output pixels, (row, column) within the block's tile."""
    columns: int
    """The warp's tiles of 8 output channels."""
    taps: tuple[tuple[int, int], ...]
    """Kernel positions of the stage."""
    levels: tuple[Level, Level]
    """Global to shared memory (of the block), shared memory to registers (of the warp)."""
    steps: tuple[LoadStep, ...]
    listing: Listing = field(default_factory=lambda: Listing(""))
    """The kernel's CUDA text; its accesses are those of the steps, in the same order, with all lanes."""

    @property
    def multiplications(self) -> int:
        """Matrix instructions among the steps."""
        return sum(step.kind == "mma" for step in self.steps)

    def title(self) -> str:
        """One line that names the workload, the sharing, the block and the warp."""
        return (
            f"loads of {self.workload.label}, sharing {self.sharing}: block {self.block} (tile {self.tile[0]}x"
            f"{self.tile[1]}), warp {self.warp} ({len(self.pixels)} pixels)"
        )

    def table(self) -> Table:
        """One row per step."""
        columns = ("step", "kind", "input pixels", "slots", "fragments", "tap", "output pixels", "column tile", "line")
        rows = [
            (i, s.kind, tuple(self.data[d] for d in s.data), s.slots, s.registers, s.tap, s.pixels, s.column, s.line)
            for i, s in enumerate(self.steps)
        ]
        return Table(columns, tuple(rows))

    def level_table(self) -> Table:
        """Loads of one datum at each level, with and without sharing."""
        rows = tuple((level.name, level.loads, level.unshared, level.saved) for level in self.levels)
        return Table(("level", "loads", "without sharing", "saved"), rows)

    def text(self) -> str:
        """The counts, then the steps."""
        return "\n\n".join([self.title(), columns_text(self.level_table()), columns_text(self.table())])


def load_steps(plan: Plan, trace: Trace, block: int | None = None, warp: int = 0) -> LoadSteps:
    """Run one block of a plan's kernel and return the loads and multiplications of its first stage, step by step; see
    :func:`subbyte.technique.load_steps`.

    Raises InvalidInput for a block or warp that does not exist, a configuration that is rejected or too many steps;
    Unsupported if copies are not asynchronous or an instruction takes two blocks of channels; MissingDependency without
    a C++ compiler.
    """
    if block is None:
        block = plan.pixel_tiles[1] if plan.pixel_tiles[0] > 1 else 0
    place = Warp.of(plan, None, (block, 0), warp, 0)
    if not plan.arch.async_copy or plan.atom.blocks > 1:
        raise Unsupported(
            f"{plan.atom.name} on {plan.arch.name} cannot be stepped through: choose sm_80 or later and an instruction "
            "with 32 channels, such as atom s4.m16n8k32"
        )
    expected = plan.slots + plan.config.warp_row_tiles * plan.taps_staged * (1 + plan.config.warp_col_tiles)
    if expected > MOST_STEPS:
        raise InvalidInput(f"about {expected} steps, at most {MOST_STEPS}: choose fewer pixels, column tiles or taps")
    return _condense(place, trace(blocks=(block,)))


def _condense(place: Warp, run: Any) -> LoadSteps:
    plan, block = place.plan, place.block[0]
    rows: Rows = run.trace
    fills = _copies(place, rows, run.arguments.index("A"))
    where = {slot: pixel for step in fills for slot, pixel in zip(step.slots, step.data, strict=True)}
    data = tuple(sorted(set(where.values())))
    number = {pixel: i for i, pixel in enumerate(data)}
    slots = tuple(number[where[slot]] for slot in range(plan.slots))
    steps = [LoadStep("copy", tuple(number[p] for p in f.data), f.slots, line=f.line, lanes=f.lanes) for f in fills]
    own, firsts = _warp_steps(place, rows, slots)
    steps += own
    acting = {int(group[0]): group for kind in ("shared_load", "mma") for group in warp_groups(rows, kind)}
    groups = [f.group for f in fills] + [acting[first] for first in firsts]
    taps = tuple((r, s) for r in range(plan.rows_staged) for s in range(plan.workload.s))
    full = plan.config.duplicate_aware == "full"
    w = plan.workload
    return LoadSteps(
        workload=w,
        config=plan.config.key,
        arch=plan.arch.name,
        sharing=plan.config.duplicate_aware,
        block=block,
        warp=place.number,
        tile=plan.tile,
        region=(len({y for y, _ in data}), len({x for _, x in data})),
        data=data,
        padding=tuple(not (0 <= y < w.h and 0 <= x < w.w) for y, x in data),
        slots=slots,
        slot_columns=plan.config.pixels if plan.lowered else plan.cols.count,
        fragments=plan.fragments if full else plan.pairs * plan.atom.pixels,
        fragment_columns=plan.warp_cols.count if full else plan.atom.pixels,
        pixels=tuple(place.pixel(i) for i in range(plan.config.warp_row_tiles)),
        columns=plan.config.warp_col_tiles,
        taps=taps,
        levels=(
            Level("global to shared memory", len(slots), len(taps) * plan.config.pixels),
            Level(
                "shared memory to registers",
                sum(step.kind == "load" for step in steps),
                len(taps) * plan.config.warp_row_tiles,
            ),
        ),
        steps=tuple(_counted(steps)),
        listing=listed(f"{w.label} {plan.config.key}", run, groups),
    )


@dataclass(frozen=True)
class _Fill:
    """One warp-wide copy: the slots it fills, and the input pixels it reads (for padding, derived from the slot)."""

    slots: tuple[int, ...]
    data: tuple[tuple[int, int], ...]
    line: int
    group: NDArray[np.intp]
    lanes: int


def _copies(place: Warp, rows: Rows, argument: int) -> list[_Fill]:
    """The copies of the first stage's first channel block, in thread order."""
    plan = place.plan
    found = []
    for group in warp_groups(rows, "copy"):
        lanes = rows[group[group >= 0]]
        lanes = lanes[(lanes["buffer"] == argument) & (lanes["shared"] < 4 * plan.activation_words)]
        # The first stage's copies come before the first barrier; later ones may fill the same place again.
        lanes = lanes[lanes["phase"] < _first_barrier(rows, int(lanes["warp"][0]))] if len(lanes) else lanes
        lanes = lanes[lanes["shared"] // DATUM_BYTES % plan.config.chunk == 0]
        lanes = lanes[lanes["shared"] % DATUM_BYTES == 0]  # one of the eight lanes that share a datum
        if len(lanes):
            slots = tuple((lanes["shared"] // (DATUM_BYTES * plan.config.chunk)).tolist())
            read = zip(lanes["offset"].tolist(), lanes["valid"].tolist(), slots, strict=True)
            pixels = tuple(_input_pixel(plan, offset) if n else _padding_pixel(place, s) for offset, n, s in read)
            found.append(_Fill(slots, pixels, int(lanes["line"][0]), group, DATUM_BYTES // int(lanes["size"][0])))
    return sorted(found, key=lambda fill: fill.slots[0])


def _first_barrier(rows: Rows, warp: int) -> int:
    barriers = of_kind(rows, "barrier")
    return int(barriers["phase"][barriers["warp"] == warp].min()) + 1


def _input_pixel(plan: Plan, offset: int) -> tuple[int, int]:
    """Input pixel of a byte of the activations; the inverse of the layout's address."""
    w = plan.workload
    per_pixel = w.channel_blocks * (DATUM_BYTES if plan.config.layout == "nhwcnc" else DATUM_BYTES // 8)
    pixel = offset // per_pixel
    return pixel // w.w % w.h, pixel % w.w


def _padding_pixel(place: Warp, slot: int) -> tuple[int, int]:
    w, (_, row, col) = place.plan.workload, place.origin
    down, right = place.plan.slot_pixel(slot)
    return row * w.stride + down - w.pad, col * w.stride + right - w.pad


def _warp_steps(place: Warp, rows: Rows, slots: tuple[int, ...]) -> tuple[list[LoadStep], list[int]]:
    """Fragment loads and multiplications of the warp's first channel block, in the order of its first lane; also
    returns that lane's rows in the trace."""
    plan = place.plan
    shown = [KINDS.index(kind) for kind in ("shared_load", "mma", "barrier")]
    index = np.flatnonzero((rows["warp"] == place.number) & (rows["lane"] == 0) & np.isin(rows["kind"], shown))
    index = index[np.argsort(rows["sequence"][index])]
    index = index[np.flatnonzero(rows["size"][index] == 0)[0] + 1 :]  # after the first barrier
    block = place.split * (plan.config.chunk // plan.config.split_channels)
    targets, operands = iter(_fragment_order(plan)), iter(_operand_order(plan))
    count = plan.taps_staged * plan.pairs * plan.config.warp_col_tiles
    held: dict[int, int] = {}
    steps: list[LoadStep] = []
    firsts: list[int] = []
    for number in index.tolist():
        row = rows[number]
        line, byte = int(row["line"]), int(row["shared"])
        if byte >= 0:
            slot, channel_block = divmod(byte // DATUM_BYTES, plan.config.chunk)
            if byte < 4 * plan.activation_words and channel_block == block:
                target = next(targets)
                held[target] = slots[slot]
                steps.append(LoadStep("load", (slots[slot],), (slot,), (target,), line=line))
                firsts.append(number)
        else:
            tap, pixels, registers, column = next(operands)
            data = tuple(held[register] for register in registers)
            steps.append(LoadStep("mma", data, (), registers, tap, pixels, column, line))
            firsts.append(number)
            count -= 1
            if not count:
                break
    return steps, firsts


def _fragment_order(plan: Plan) -> list[int]:
    """The fragment that each activation load of a channel block fills, in program order."""
    if plan.config.duplicate_aware == "full":
        width = plan.warp_cols.count
        return [row * width + i for fresh in plan.fresh_rows for row in fresh for i in range(width)]
    halves, pairs = range(plan.atom.pixels), range(plan.pairs)
    return [pair * plan.atom.pixels + half for half in halves for pair in pairs] * plan.taps_staged


def _operand_order(plan: Plan) -> list[tuple[tuple[int, int], tuple[int, ...], tuple[int, ...], int]]:
    """Tap, output pixels, fragments and column tile of each multiplication of a channel block, in program order."""
    order = []
    wide, full = plan.warp_tile[1], plan.config.duplicate_aware == "full"
    for r in range(plan.rows_staged):
        for s in range(plan.workload.s):
            for pair in range(plan.pairs):
                pixels = tuple(plan.partner(pair, half) for half in range(plan.atom.pixels))
                held = tuple(
                    plan.fragment(p // wide, p % wide, r, s) if full else pair * plan.atom.pixels + half
                    for half, p in enumerate(pixels)
                )
                order += [((r, s), pixels, held, column) for column in range(plan.config.warp_col_tiles)]
    return order


def _counted(steps: list[LoadStep]) -> list[LoadStep]:
    """The steps with their running counts, and how much is moved or used again."""
    done = {"copy": 0, "load": 0, "mma": 0}
    seen: dict[str, set[int]] = {"copy": set(), "load": set()}
    first_tap: dict[int, tuple[int, int] | None] = {}
    counted = []
    for step in steps:
        done[step.kind] += len(step.slots) if step.kind == "copy" else 1
        if step.kind == "mma":
            kept = dict.fromkeys(step.registers)
            repeats = sum(first_tap.setdefault(register, step.tap) != step.tap for register in kept)
        else:
            repeats = sum(datum in seen[step.kind] for datum in step.data)
            seen[step.kind].update(step.data)
            for register in step.registers:
                first_tap.pop(register, None)
        counted.append(replace(step, done=(done["copy"], done["load"], done["mma"]), repeats=repeats))
    return counted
