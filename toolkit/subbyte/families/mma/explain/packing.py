"""Register-level packing as a program that runs on data: which lane moves which 4-bit value where.

Source: Choi et al. 2022 (arXiv 2202.06819), section 3.2, Figures 8 to 10 (scheme ``width8``), and the byte transpose
of accumulator fragments inside each group of four lanes (scheme ``quad``), which also restores the NHWCnc layout.
One output tile is 8 images (rows) x 8 channels (columns) of requantized values; a warp's 32 lanes turn tiles into
32-bit words of eight channels and store them into a block of 8 images x 32 channels (word ``4*row + tile``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.mma.explain.machine import LANES, Registers
from subbyte.families.mma.explain.packing_schemes import SCHEMES, Instruction
from subbyte.families.mma.plan import Plan
from subbyte.info_record import InfoRecord, Table, columns_text, plain

BYTES_UNPACKED = 256
"""Shared-memory bytes of one 8x8 tile staged as int32 accumulators."""

BYTES_PACKED = 32
"""Shared-memory bytes of one 8x8 tile staged as packed int4."""


@dataclass(frozen=True)
class Step:
    """One step of a packing program, the same for every lane except for what the lane index selects."""

    name: str
    does: str
    """What each lane does, in one sentence."""
    operation: str
    """The instruction, with its constants for each lane if they differ."""
    source: tuple[int, ...] | None
    """For a shuffle, the lane each lane reads from; None otherwise."""
    shuffles: int
    """Shuffle instructions per warp in this step, for a full set of tiles."""
    writes: tuple[str, ...]
    """Registers written."""


@dataclass(frozen=True)
class RegisterState:
    """One register of all 32 lanes after a step.

    ``kind`` is ``int32`` (one value per lane) or ``nibbles`` (eight 4-bit values per lane, lowest bits first).
    ``values`` [32][1 or 8]: the signed value, or None where no output value is held (don't care).
    ``origins`` [32][1 or 8]: where it came from, as ``64*tile + 8*row + column``, or None.
    """

    name: str
    kind: str
    words: tuple[int, ...]
    values: tuple[tuple[int | None, ...], ...]
    origins: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class StepState:
    """The registers in use after one step. A lane is useful if one of its registers holds a complete output word."""

    step: str
    registers: tuple[RegisterState, ...]
    useful_lanes: int


@dataclass(frozen=True)
class StoredWord:
    """One word a lane stores: ``word`` is its index in the NHWCnc blocks of 8 images x 32 channels (32 words each)."""

    lane: int
    register: str
    tile: int
    row: int
    word: int
    value: int


@dataclass(frozen=True)
class PackingTrace(InfoRecord):
    """A packing program run on data: the complete state after each step, and every stored word."""

    scheme: str
    tiles: int
    states: tuple[StepState, ...]
    stores: tuple[StoredWord, ...]

    def words(self) -> np.ndarray:
        """The packed result, uint32 [tiles, 8 rows]: the word of row n and tile t holds channels 8t to 8t+7."""
        words = np.zeros((self.tiles, 8), np.uint32)
        for store in self.stores:
            words[store.tile, store.row] = store.value
        return words

    def title(self) -> str:
        """One line that names the scheme and the number of tiles."""
        return f"packing trace: scheme {self.scheme}, {self.tiles} tile{'s' if self.tiles != 1 else ''} of 8x8"

    def table(self) -> Table:
        """One row per stored word."""
        rows = [(s.lane, s.register, s.tile, s.row, s.word, f"{s.value:08x}") for s in self.stores]
        return Table(("lane", "register", "tile", "row (image)", "word in block", "value"), tuple(rows))

    def text(self) -> str:
        """The useful lanes after each step, then the state of the first eight lanes."""
        parts = [self.title()]
        for before, state in zip((None, *self.states), self.states, strict=False):
            if before is not None and before.registers == state.registers:
                continue  # a step of a tile that was not given
            lines = [f"after {state.step}: {state.useful_lanes} of 32 lanes hold a complete word"]
            for register in state.registers[:_TEXT_REGISTERS]:
                lanes = "  ".join(_lane_text(values, register.kind) for values in register.values[:8])
                lines.append(f"  {register.name:<10} {lanes}")
            if len(state.registers) > _TEXT_REGISTERS:
                lines.append(f"  ... and {len(state.registers) - _TEXT_REGISTERS} more registers")
            parts.append("\n".join(lines))
        legend = "lanes 0 to 7; a packed word is written highest nibble first, '.' is a don't-care nibble"
        return "\n\n".join([parts[0] + "\n" + legend, *parts[1:]])


@dataclass(frozen=True)
class PackingProgram(InfoRecord):
    """How a warp packs ``tiles`` accumulator tiles into words without leaving its registers."""

    scheme: str
    about: str
    tiles: int
    """Tiles packed together so that every lane's store is useful."""
    steps: tuple[Step, ...]
    shuffles: int
    """Shuffle instructions per warp for all tiles."""
    shuffles_per_tile: float
    stores: int
    """Store instructions per warp for all tiles, each with 32 useful lanes."""
    shared_bytes_before: int
    """Shared-memory bytes per tile when int32 accumulators are staged, as without register-level packing."""
    shared_bytes_after: int
    """Shared-memory bytes per tile if the packed words are staged."""

    def run(self, values: Any) -> PackingTrace:
        """Run the program on ``values``: integers [tiles, 8 images, 8 channels], at most :attr:`tiles` tiles.

        The first step saturates values outside -8..7, as the kernel does after requantization. With fewer tiles the
        remaining lanes hold don't-care values. Raises InvalidInput for another shape or dtype.
        """
        tiles = self._checked(values)
        machine = Registers()
        states = []
        for step, instructions in zip(self.steps, SCHEMES[self.scheme].code(len(tiles)), strict=True):
            for instruction in instructions:
                instruction.run(machine, tiles)
            states.append(_state(step.name, machine))
        stores = tuple(_stores(machine))
        return PackingTrace(self.scheme, len(tiles), tuple(states), stores)

    def _checked(self, values: Any) -> np.ndarray:
        array = np.asarray(values)
        good = array.ndim == 3 and array.shape[1:] == (8, 8) and 1 <= array.shape[0] <= self.tiles
        if not good or array.dtype.kind not in "iu":
            raise InvalidInput(
                f"packing values of shape {array.shape} and dtype {array.dtype}: scheme {self.scheme} takes integers "
                f"[1..{self.tiles} tiles, 8 images, 8 channels]"
            )
        return array.astype(np.int64)

    def title(self) -> str:
        """One line that names the scheme."""
        return f"packing program {self.scheme}: {self.about}"

    def table(self) -> Table:
        """One row per step."""
        rows = [(i, s.name, s.operation, s.shuffles, ", ".join(_brief(s.writes))) for i, s in enumerate(self.steps)]
        return Table(("step", "name", "operation", "shuffles", "writes"), tuple(rows))

    def text(self) -> str:
        """The steps, the lanes each shuffle reads from, and the counts."""
        sentences = "\n".join(f"{i}. {step.name}: {step.does}" for i, step in enumerate(self.steps))
        sources = [
            f"{step.name}: lanes 0..7 read from lanes {' '.join(map(str, step.source[:8]))}"
            for step in self.steps
            if step.source
        ]
        counts = (
            f"for {self.tiles} tiles: {self.shuffles} shuffles ({self.shuffles_per_tile:g} per tile), "
            f"{self.stores} store instruction{'s' if self.stores != 1 else ''} with all 32 lanes useful\n"
            f"shared memory per tile, if staged: {self.shared_bytes_before} bytes of int32 before packing, "
            f"{self.shared_bytes_after} bytes after"
        )
        return "\n\n".join([self.title(), columns_text(self.table()), sentences, "\n".join(sources), counts])


_TEXT_REGISTERS = 4


@checked
def packing_program(scheme: str = "quad") -> PackingProgram:
    """The packing program with this name: ``quad`` or ``width8``. Raises InvalidInput for another name."""
    name = str(scheme).lower()
    if name not in SCHEMES:
        raise InvalidInput(f"unknown packing scheme {scheme!r}: {did_you_mean(name, SCHEMES)}")
    chosen = SCHEMES[name]
    code = chosen.code(chosen.tiles)
    steps = tuple(
        _step(label, does, instructions) for (label, does), instructions in zip(chosen.labels, code, strict=True)
    )
    shuffles = sum(step.shuffles for step in steps)
    return PackingProgram(
        scheme=name,
        about=chosen.about,
        tiles=chosen.tiles,
        steps=steps,
        shuffles=shuffles,
        shuffles_per_tile=shuffles / chosen.tiles,
        stores=chosen.tiles * 8 // LANES,
        shared_bytes_before=BYTES_UNPACKED,
        shared_bytes_after=BYTES_PACKED,
    )


def _step(name: str, does: str, instructions: list[Instruction]) -> Step:
    shuffles = [i for i in instructions if i.source is not None]
    operations = list(dict.fromkeys(i.operation for i in instructions))
    writes = tuple(dict.fromkeys(i.target for i in instructions))
    return Step(name, does, "; ".join(operations), shuffles[0].source if shuffles else None, len(shuffles), writes)


def _state(step: str, machine: Registers) -> StepState:
    registers = tuple(
        RegisterState(
            name,
            register.kind,
            tuple(int(word) for word in register.words),
            tuple(tuple(lane) for lane in register.values()),
            tuple(tuple(lane) for lane in register.origin_lists()),
        )
        for name, register in sorted(machine.items(), key=lambda item: not item[0].startswith("out"))
    )
    useful = {lane for register in machine.values() for lane in register.complete_lanes()}
    return StepState(step, registers, len(useful))


def _stores(machine: Registers) -> list[StoredWord]:
    """What each lane stores: every complete word in the registers that remain at the end."""
    found = []
    for name, register in machine.items():
        for lane in register.complete_lanes():
            tile, row = divmod(int(register.origins[lane, 0]) // 8, 8)
            word = tile // 4 * 32 + row * 4 + tile % 4
            found.append(StoredWord(lane, name, tile, row, word, int(register.words[lane])))
    return found


def _brief(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) <= 3 else (names[0], "...", names[-1])


def _lane_text(values: tuple[int | None, ...], kind: str) -> str:
    if kind == "int32":
        return f"{'.' if values[0] is None else values[0]:>8}"
    return "".join("." if v is None else f"{v & 0xF:x}" for v in reversed(values))


@dataclass(frozen=True)
class PackingRun(InfoRecord):
    """A packing program, the random values [tiles][8][8] that it was run on, and the result."""

    program: PackingProgram
    values: tuple[tuple[tuple[int, ...], ...], ...]
    trace: PackingTrace

    def title(self) -> str:
        """The program's title."""
        return self.program.title()

    def table(self) -> Table:
        """The trace's table."""
        return self.trace.table()

    def text(self) -> str:
        """The program, then the result of running it."""
        return f"{self.program.text()}\n\n{self.trace.text()}"

    def to_dict(self) -> dict[str, Any]:
        """The program's fields, the values and the trace."""
        return {**self.program.to_dict(), "values": plain(self.values), "trace": self.trace.to_dict()}


def packing_run(plan: Plan | None = None, scheme: str = "quad", tiles: int | None = None, seed: int = 0) -> PackingRun:
    """A packing program run on random int4 values, on as many tiles as a warp of the plan has, or as the program takes.

    Raises InvalidInput for an unknown scheme, more tiles than the program takes, or a plan that packs in shared memory.
    """
    if plan is not None and not plan.config.register_packing:
        raise InvalidInput(
            f"{plan.config.key} packs its outputs through shared memory, not in registers: there is nothing to step "
            "through. Choose register_packing=true."
        )
    program = packing_program(scheme)
    most = (
        program.tiles if plan is None else min(program.tiles, plan.config.warp_row_tiles * plan.config.warp_col_tiles)
    )
    count = most if tiles is None else tiles
    if not 1 <= count <= program.tiles:
        raise InvalidInput(f"--tiles {tiles}: scheme {program.scheme} takes 1 to {program.tiles}")
    values = np.random.default_rng(seed).integers(-8, 8, (count, 8, 8))
    kept = tuple(tuple(tuple(row) for row in tile) for tile in values.tolist())
    return PackingRun(program, kept, program.run(values))
