"""A warp's registers on the CPU: 32-bit words per lane, and the origin of the value in each nibble.

The words follow the instructions bit for bit (uint32). The origins follow the same moves nibble by nibble, so that a
picture can show where each output value is; a nibble without one has the origin -1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LANES = 32
NIBBLES = 8
NONE = -1


@dataclass
class Register:
    """One register of 32 lanes: ``words`` uint32 [32], ``origins`` int64 [32, 1 or 8], ``kind`` int32 or nibbles."""

    words: np.ndarray
    origins: np.ndarray
    kind: str = "nibbles"

    def values(self) -> list[list[int | None]]:
        """The signed values, None where there is none: [32][1 or 8]."""
        if self.kind == "int32":
            numbers = self.words.view(np.int32).astype(np.int64)[:, None]
        else:
            nibbles = (self.words[:, None] >> (4 * np.arange(NIBBLES, dtype=np.uint32))) & np.uint32(0xF)
            numbers = nibbles.astype(np.int64)
            numbers = numbers - 16 * (numbers > 7)
        return [
            [int(v) if o != NONE else None for v, o in zip(vs, os, strict=True)]
            for vs, os in zip(numbers, self.origins, strict=True)
        ]

    def origin_lists(self) -> list[list[int | None]]:
        """The origins, None where there is none: [32][1 or 8]."""
        return [[int(o) if o != NONE else None for o in lane] for lane in self.origins]

    def complete_lanes(self) -> list[int]:
        """Lanes whose word holds the eight channels of one row of one tile in order."""
        if self.kind != "nibbles":
            return []
        first = self.origins[:, :1]
        good = (first[:, 0] != NONE) & (first[:, 0] % 8 == 0)
        good &= (self.origins == first + np.arange(NIBBLES)).all(axis=1)
        return [int(lane) for lane in np.flatnonzero(good)]


class Registers(dict[str, Register]):
    """The registers of one warp by name, in order of first use."""


def empty() -> Register:
    """A register of zeros that holds no output value."""
    return Register(np.zeros(LANES, np.uint32), np.full((LANES, NIBBLES), NONE, np.int64))


def accumulator(values: np.ndarray, origins: np.ndarray) -> Register:
    """An int32 accumulator register: ``values`` and ``origins`` are integers [32]."""
    words = values.astype(np.int32).view(np.uint32)
    return Register(words.copy(), origins.astype(np.int64)[:, None], "int32")


def saturate(register: Register) -> Register:
    """An int32 register clipped to the int4 range -8..7."""
    clipped = np.clip(register.words.view(np.int32), -8, 7).astype(np.int32)
    return Register(clipped.view(np.uint32).copy(), register.origins.copy(), "int32")


def low_nibble(register: Register) -> Register:
    """``x & 0xF`` of an int32 register that is already in range: one value in the lowest nibble."""
    origins = np.full((LANES, NIBBLES), NONE, np.int64)
    origins[:, 0] = register.origins[:, 0]
    return Register(register.words & np.uint32(0xF), origins)


def cvt_pack(high: Register, low: Register, rest: Register) -> Register:
    """``cvt.pack.sat.s4.s32.b32``: saturated ``low`` in bits 0..3, ``high`` in bits 4..7, ``rest`` shifted up by 8."""
    h, v = (saturate(r).words & np.uint32(0xF) for r in (high, low))
    origins = np.concatenate([low.origins, high.origins, rest.origins[:, : NIBBLES - 2]], axis=1)
    return Register((rest.words << np.uint32(8)) | (h << np.uint32(4)) | v, origins)


def shift_left(register: Register, bits: int) -> Register:
    """``x << bits`` with ``bits`` a multiple of 4 below 32."""
    origins = np.full((LANES, NIBBLES), NONE, np.int64)
    origins[:, bits // 4 :] = register.origins[:, : NIBBLES - bits // 4]
    return Register(register.words << np.uint32(bits), origins)


def bitwise_or(a: Register, b: Register) -> Register:
    """``a | b``; if both hold a value in the same nibble, the result holds neither (it is not an output value)."""
    words = a.words | b.words
    clash = (a.origins != NONE) & (b.origins != NONE) & (a.origins != b.origins)
    origins = np.where(a.origins != NONE, a.origins, b.origins)
    return Register(words, np.where(clash, NONE, origins))


def shuffle(register: Register, source: np.ndarray) -> Register:
    """Each lane takes the register of lane ``source[lane]``."""
    return Register(register.words[source], register.origins[source], register.kind)


def prmt(a: Register, b: Register, selector: np.ndarray) -> Register:
    """``prmt.b32``: byte j is byte ``(selector >> 4j) & 7`` of the eight bytes of ``a`` (0..3) and ``b`` (4..7)."""
    both = a.words.astype(np.uint64) | (b.words.astype(np.uint64) << np.uint64(32))
    words = np.zeros(LANES, np.uint64)
    pick = np.zeros((LANES, NIBBLES), np.int64)
    for byte in range(4):
        chosen = (selector >> (4 * byte)) & 7
        moved = (both >> (np.uint64(8) * chosen.astype(np.uint64))) & np.uint64(0xFF)
        words |= moved << np.uint64(8 * byte)
        pick[:, 2 * byte], pick[:, 2 * byte + 1] = 2 * chosen, 2 * chosen + 1
    origins = np.take_along_axis(np.concatenate([a.origins, b.origins], axis=1), pick, axis=1)
    return Register(words.astype(np.uint32), origins)


def where(mask: np.ndarray, a: Register, b: Register) -> Register:
    """Lanes of ``a`` where ``mask`` bool [32] is true, else of ``b``; both of one kind."""
    return Register(np.where(mask, a.words, b.words), np.where(mask[:, None], a.origins, b.origins), b.kind)
