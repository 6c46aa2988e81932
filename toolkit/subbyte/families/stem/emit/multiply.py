"""A tile's sums: windows by weights, both in shared memory."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.stem.config import TILE_PIXELS
from subbyte.families.stem.emit.block import Block
from subbyte.families.stem.emit.constants import held_weights
from subbyte.families.stem.strings import STRIP_BYTES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers

CORE = 128
"""Bytes of a core matrix: 8 rows or columns by 16 bytes of K (PTX ISA, shared-memory matrix layout, no swizzle). For
weights the two of a step's K are contiguous, then the next 8 channels follow; for windows a piece is one."""


class Multiplier:
    """Descriptors of both operands, and the instructions of a tile. The upper words of descriptors are constants, but
    hidden from the assembler, which would rewrite them for every instruction."""

    def __init__(self, block: Block) -> None:
        self.block = block
        lay = block.plan.strings
        if block.plan.config.held_weights:
            self.held = held_weights(block)
            self.apart = [_upper(lay.pixel_words * lay.string_bytes)]
            return
        weights = registers("descriptor", 1)
        op.describe(weights[0], block.base, CORE // 16 << 16)
        self.weights = bind("weights_at", weights[0])
        self.apart = [_upper(distance) for distance in (lay.pixel_words * lay.string_bytes, 2 * CORE)]

    def sums(self) -> Any:
        """Registers for the sums of a tile in each output row that is accumulated together, one after
        the other."""
        return registers("sums", self.block.plan.config.together * self.block.plan.row_sums)

    def multiply(self, sums: Any, buffer: Any, tile: Any, first_row: int) -> None:
        """Start all products of a tile in each output row, from ``first_row`` on, that is accumulated together."""
        plan, lay, together = self.block.plan, self.block.plan.strings, self.block.plan.config.together
        started = registers("started", together)
        for row in range(together):
            T.buffer_store(started, T.uint32(0), [row])
        phase, unit = tile % lay.phases, tile // lay.phases * (1 + plan.config.wide)
        first = unit * (TILE_PIXELS * lay.pixel_words) + phase * lay.advance // 8
        place = first * lay.string_bytes + (phase * plan.kind_bytes if lay.kinds > 1 else 0)
        address = self.block.buffer_address(buffer) + T.cast(place, "uint32")
        windows = registers("windows", 1)
        op.describe(windows[0], address, 0)
        at = bind("windows_at", self.apart[0] | T.cast(windows[0], "uint64"))
        held = plan.config.held_weights
        weights = None if held else self.weights
        if lay.phases > 1 and not held:
            weights = bind("phase_at", weights + T.cast(phase * (plan.phase_bytes // 16), "uint32"))
        own = [self._held(step, phase) for step in range(lay.steps if held else 0)]
        op.wgmma_fence()
        for row in range(together):
            mine = [sums[row * plan.row_sums + i] for i in range(plan.row_sums)]
            for step in range(lay.steps):
                # With an odd number of pieces, the last step reads its piece twice, the second time multiplied by
                # zeros.
                both = 2 * step + 1 < lay.window_strings * lay.pieces
                low = ((first_row + row) * plan.row_bytes + step * 2 * STRIP_BYTES) // 16 + (
                    (STRIP_BYTES // 16 << 16) if both else 0
                )
                if held:
                    op.emit(T.ptx[plan.atom.ptx](*mine, *own[step], at + T.uint64(low), T.ptx.pred(started[row])))
                    T.buffer_store(started, T.uint32(1), [row])
                    continue
                values = self.apart[1] | T.cast(weights + T.uint32(step * plan.step_bytes // 16), "uint64")
                pixels = at + T.uint64(low)
                op.emit(T.ptx[plan.atom.ptx](*mine, pixels, values, T.ptx.pred(started[row])))
                T.buffer_store(started, T.uint32(1), [row])
        op.wgmma_commit()

    def _held(self, step: int, phase: Any) -> list[Any]:
        """A step's weights, of the phase that the tile has."""
        steps, phases = self.block.plan.strings.steps, self.block.plan.strings.phases
        both = [[self.held[4 * (one * steps + step) + word] for word in range(4)] for one in range(phases)]
        if phases == 1 or isinstance(phase, int):
            return both[phase if phases > 1 else 0]
        chosen = registers("chosen", 4)
        for word, (even, odd) in enumerate(zip(*both, strict=True)):
            T.buffer_store(chosen, T.Select(phase == 0, even, odd), [word])
        return [chosen[word] for word in range(4)]


def _upper(distance: int) -> Any:
    """The upper word of a descriptor: ``distance`` bytes from 8 rows or columns to the next 8."""
    word = bind("upper", T.cast(op.hidden("upper_word", T.int32(distance // 16)), "uint32"))
    return T.cast(word, "uint64") << T.uint64(32)
