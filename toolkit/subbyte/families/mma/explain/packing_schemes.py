"""The two packing programs, instruction by instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from subbyte.families.mma.explain import machine as m
from subbyte.families.mma.explain.machine import LANES, Registers

Action = Callable[[Registers, np.ndarray], None]
_LANE = np.arange(LANES)
_COLUMN = _LANE % 8


@dataclass(frozen=True)
class Instruction:
    """One warp-wide instruction: the register it writes, its text, what it does, and a shuffle's source lanes."""

    target: str
    operation: str
    run: Action
    source: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Scheme:
    """A packing scheme: ``code(tiles)`` gives the instructions of each labelled step for that many tiles."""

    about: str
    tiles: int
    labels: tuple[tuple[str, str], ...]
    code: Callable[[int], list[list[Instruction]]]


def _load(target: str, operation: str, tile: int, row: np.ndarray, column: np.ndarray) -> Instruction:
    """A lane's accumulator: ``values[tile, row[lane], column[lane]]``, don't care if the tile is missing."""

    def run(machine: Registers, values: np.ndarray) -> None:
        if tile < len(values):
            bounds = np.iinfo(np.int32)
            held = np.clip(values[tile, row, column], bounds.min, bounds.max)
            machine[target] = m.accumulator(held, 64 * tile + 8 * row + column)
        else:
            machine[target] = m.accumulator(np.zeros(LANES), np.full(LANES, m.NONE))

    return Instruction(target, operation, run)


# ---------------------------------------------------------------- quad: four tiles, two exchanges

QUAD_TILES = 4
EXCHANGES = ((1, 0x6240, 0x3715), (2, 0x5410, 0x3276))
"""Per exchange: lane distance, ``prmt`` selector for lanes whose bit is clear, and for lanes whose bit is set."""


def _pack_byte(tile: int) -> Instruction:
    def run(machine: Registers, _: np.ndarray) -> None:
        rest = machine.get("word", m.empty())
        low, high = machine.pop(f"tile{tile}.c0"), machine.pop(f"tile{tile}.c1")
        machine["word"] = m.cvt_pack(high, low, rest)

    return Instruction("word", "word = cvt.pack.sat.s4.s32(c1, c0, word << 8)", run)


def _exchange(distance: int) -> Instruction:
    source = _LANE ^ distance

    def run(machine: Registers, _: np.ndarray) -> None:
        machine["peer"] = m.shuffle(machine["word"], source)

    return Instruction("peer", f"peer = shfl.xor(word, {distance})", run, tuple(source.tolist()))


def _permute(distance: int, clear: int, set_: int) -> Instruction:
    selector = np.where(_LANE & distance, set_, clear)

    def run(machine: Registers, _: np.ndarray) -> None:
        machine["word"] = m.prmt(machine["word"], machine.pop("peer"), selector)

    text = f"word = prmt(word, peer, lane & {distance} ? {set_:#06x} : {clear:#06x})"
    return Instruction("word", text, run)


def _quad(_: int) -> list[list[Instruction]]:
    row, column = _LANE >> 2, 2 * (_LANE & 3)
    loads = [
        _load(f"tile{tile}.c{i}", "c[i] = tile[lane >> 2][2*(lane & 3) + i]", tile, row, column + i)
        for tile in range(QUAD_TILES)
        for i in range(2)
    ]
    code = [loads, [_pack_byte(tile) for tile in reversed(range(QUAD_TILES))]]
    for distance, clear, set_ in EXCHANGES:
        code += [[_exchange(distance)], [_permute(distance, clear, set_)]]
    return code


QUAD = Scheme(
    about="four tiles in accumulator fragment order, a byte transpose in each group of four lanes",
    tiles=QUAD_TILES,
    labels=(
        ("accumulators", "lane l holds, of each tile, row l >> 2 and the two columns from 2*(l & 3)."),
        ("pack bytes", "each lane saturates its two values of tile t and packs them into byte t of one register."),
        ("exchange 1", "each lane reads the register of its neighbour l ^ 1."),
        ("permute 1", "even lanes keep the bytes of tiles 0 and 2 of both, odd lanes those of tiles 1 and 3."),
        ("exchange 2", "each lane reads the register of lane l ^ 2."),
        ("permute 2", "lane l now holds all eight channels of row l >> 2 of tile l & 3: word l of the NHWCnc block."),
    ),
    code=_quad,
)

# ---------------------------------------------------------------- width8: the paper's shuffle-down in groups of eight

WIDTH8_TILES = 8
OFFSETS = (4, 2, 1)
_HALVES = (0, 1)


def _clip(name: str) -> Instruction:
    def run(machine: Registers, _: np.ndarray) -> None:
        machine[name] = m.low_nibble(m.saturate(machine[name]))

    return Instruction(name, "word = clip(word, -8, 7) & 0xF", run)


def _gather(name: str, offset: int) -> Instruction:
    source = np.where(_LANE % 8 + offset < 8, _LANE + offset, _LANE)
    kept = np.isin(_COLUMN, range(offset))

    def run(machine: Registers, _: np.ndarray) -> None:
        word = machine[name]
        joined = m.bitwise_or(word, m.shift_left(m.shuffle(word, source), 4 * offset))
        joined.origins[~kept] = m.NONE
        machine[name] = joined

    text = f"word |= shfl.down(word, {offset}, width 8) << {4 * offset}"
    return Instruction(name, text, run, tuple(source.tolist()))


def _place(tile: int, half: int) -> Instruction:
    source = _LANE // 8 * 8
    own, target = f"tile{tile}.h{half}", f"out.h{half}"

    def run(machine: Registers, _: np.ndarray) -> None:
        word = machine.pop(own)
        machine[target] = m.where(np.equal(_COLUMN, tile), m.shuffle(word, source), machine[target]) if tile else word

    if tile == 0:
        return Instruction(target, "out = word of tile 0", run)
    text = f"out = lane % 8 == {tile} ? shfl.idx(word of tile {tile}, 0, width 8) : out"
    return Instruction(target, text, run, tuple(source.tolist()))


def _width8(tiles: int) -> list[list[Instruction]]:
    names = [(tile, half) for tile in range(tiles) for half in _HALVES]
    text = "word = tile[4*half + lane / 8][lane % 8]"
    code = [
        [_load(f"tile{t}.h{h}", text, t, 4 * h + _LANE // 8, _LANE % 8) for t, h in names],
        [_clip(f"tile{t}.h{h}") for t, h in names],
    ]
    code += [[_gather(f"tile{t}.h{h}", offset) for t, h in names] for offset in OFFSETS]
    code += [[_place(t, h) for h in _HALVES if t < tiles] for t in range(WIDTH8_TILES)]
    return code


WIDTH8 = Scheme(
    about="row-major 8x8 tiles over 32 lanes twice, shuffle-down by 4, 2, 1 in groups of eight lanes",
    tiles=WIDTH8_TILES,
    labels=(
        ("accumulators", "lane l holds, of each half of four rows of each tile, row l / 8 and column l % 8."),
        ("clip", "each lane saturates its values to -8..7 and keeps the lowest four bits."),
        ("gather 4", "lanes 0..3 of each eight add the value of the lane 4 further on, 16 bits up."),
        ("gather 2", "lanes 0 and 1 of each eight add the partial word of the lane 2 further on, 8 bits up."),
        ("gather 1", "lane 0 of each eight adds the partial word of its neighbour, 4 bits up; 4 lanes are useful."),
        ("place tile 0", "lane 0 of each eight keeps its word of tile 0; the other seven lanes are still idle."),
        *(
            (f"place tile {t}", f"lane {t} of each eight takes the word of tile {t} from lane 0 of its eight.")
            for t in range(1, WIDTH8_TILES)
        ),
    ),
    code=_width8,
)

SCHEMES = {"quad": QUAD, "width8": WIDTH8}
