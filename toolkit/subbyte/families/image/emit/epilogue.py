"""Sums to global memory: as in the wgmma family, with core matrices of pixels instead of its pixels, and the
columns of one instead of its 8 images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from tvm.script import tirx as T

from subbyte.families.image.emit.block import Block
from subbyte.families.image.plan import CORE, ImagePlan
from subbyte.families.wgmma.emit.epilogue import Group, Target
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, loop, registers, when
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS


def load_parameters(block: Block) -> Any:
    """The requantization parameters of the thread's two channels."""
    plan = block.plan
    if plan.output == SUMS:
        return None
    own, padded = registers("own_parameters", 6), plan.workload.padded_filters
    channel = block.tile * 64 + block.member // 32 * 16 + block.lane // 4 * 2
    channel = bind("channel", T.min(channel, padded - 2))
    for row in range(3):
        op.load8(own, 2 * row, block.parameters.ptr_to([row * padded + channel]))
    return own


class ImageTarget(Target):
    """The output destinations of a warpgroup's results."""

    def __init__(self, block: Block, own: Any) -> None:
        self.block, self.own = cast(Any, block), own
        self.plan: ImagePlan = block.plan
        self.place = block
        self.warp = bind("warp", block.member // 32)
        self.channel_block = bind("channel_block", block.tile * 2 + self.warp // 2)

    def store_all(self, sums: Any) -> None:
        """Requantize, pack and store."""
        with when(self._exists()):
            if self.plan.output == SUMS:
                self._store_sums(sums)
            else:
                self._store_int4(sums, [self._parameters(parity) for parity in range(2)])

    def clear_padding(self) -> None:
        """Write zeros for the images that pad the last group of 8: a next layer may read them, and every word is
        written."""
        w = self.plan.workload
        padding = w.batch_groups * BATCH_GROUP - w.n
        if not padding:
            return
        sums = self.plan.output == SUMS
        zeros = registers("zeros", 2, "int32" if sums else "uint32")
        for i in range(2):
            T.buffer_store(zeros, T.int32(0) if sums else T.uint32(0), [i])
        last = self.place.image == w.n - 1 if w.n > 1 else True
        with when(every([last, self._exists()])):
            for _, row, col, exists in self._sum_columns() if sums else self._word_columns():
                with when(exists):
                    for image in range(w.n, w.n + padding):
                        self._store_pair(zeros, row, col, image)

    def _exists(self) -> Any:
        blocks = self.plan.workload.filter_blocks
        return True if self.plan.filter_tiles * 2 <= blocks else self.channel_block < blocks

    def _store_int4(self, sums: Any, parameters: list[list[Any]]) -> None:
        plan, lane = self.plan, self.place.lane
        warp = self.place.warpgroup * 4 + self.warp
        start = plan.packing_base + warp * (plan.packing_bytes // (4 * plan.config.warpgroups)) + lane * 16
        place = bind("packing", self.place.base + T.cast(start, "uint32"))
        groups = self._groups()
        packed, read = registers("packed", 4), registers("read", 4 * len(groups))
        for index, group in enumerate(groups):
            for register in range(group.registers):
                self._pack(sums, group, register, packed, parameters)
            words = [packed[min(i, group.registers - 1)] for i in range(group.matrices)]
            op.store_transposed(place + T.uint32(index * 512), words)
        op.emit(T.cuda.warp_sync())
        for index, group in enumerate(groups):
            with when(True if group.matrices == 4 else lane < 8 * group.matrices):
                op.load_shared16(read, place + T.uint32(index * 512), 4 * index)
        words = registers("words", 2)
        for column, row, col, exists in self._word_columns():
            index, odd = divmod(column, 2)
            with when(exists):
                for half in range(2):
                    at = 4 * index + 2 * half
                    op.permute_bytes(words[half], read[at], read[at + 1], T.uint32((0x6420, 0x7531)[odd]))
                    T.buffer_store(words, self.finished(words[half]), [half])
                self._store_pair(words, row, col)

    def _groups(self) -> list[Group]:
        slots = self.plan.slots
        return [Group(first, min(CORE, slots - first)) for first in range(0, slots, CORE)]

    def _word_columns(self) -> Iterator[tuple[int, Any, Any, Any]]:
        """Columns that a lane packs, from two core matrices of a group, 16 channels each: output row and column, and
        whether they exist in the output."""
        for index, group in enumerate(self._groups()):
            for odd in range(2):
                matrix = self.place.lane // 8 * 2 + odd
                conditions = [matrix < group.pixels] if group.pixels < CORE else []
                row, col, exists = self._position(group.first + matrix, self.place.lane % 8)
                yield 2 * index + odd, row, col, every([*conditions, exists])

    def _sum_columns(self) -> Iterator[tuple[int, Any, Any, Any]]:
        """Columns for which a lane holds sums, two of each core matrix: output row and column, and whether they exist
        in the output."""
        for column in range(2 * self.plan.slots):
            yield column, *self._position(column // 2, self.place.lane % 4 * 2 + column % 2)

    def _store_pair(self, values: Any, row: Any, col: Any, image: Any = None) -> None:
        """Store the lane's two words of a pixel, or the sums of its two channels."""
        sums = self.plan.output == SUMS
        channel = self.place.lane // 4 * 2
        first = self.warp % 2 * 16 + channel if sums else self.warp % 2 * 2
        target = self._word(row, col, image) * (8 if sums else 1) + first
        with loop("i", 2, T.vectorized) as i:
            T.buffer_store(self.place.output, values[i], [target + i])

    def _position(self, slot: Any, column: Any) -> tuple[Any, Any, Any]:
        """Output row and column of a column of a core matrix, and whether it exists in the output."""
        plan, w, ways = self.plan, self.plan.workload, self.plan.config.ways
        group = slot if ways == 1 else slot * ways + self.place.way
        place = bind("pixel", self.place.first + group * CORE + column)
        row, col = bind("out_row", place // plan.pitch), bind("out_col", place % plan.pitch)
        conditions = [row < w.p, col < w.q]
        if plan.groups % ways:
            conditions.append(group < plan.groups)
        return row, col, every(conditions)

    def _word(self, row: Any, col: Any, image: Any = None) -> Any:
        w = self.plan.workload
        image = self.place.image if image is None else image
        return self.plan.word((w.p, w.q, w.filter_blocks), image, row, col, self.channel_block)

    def _store_sums(self, sums: Any) -> None:
        scale = T.int32(self.plan.atom.scale_log2)
        for column, row, col, exists in self._sum_columns():
            slot, odd = divmod(column, 2)
            with when(exists):
                pair = registers("pair", 2, "int32")
                for parity in range(2):
                    value = self._sum(sums, 4 * slot + parity * 2 + odd) >> scale
                    T.buffer_store(pair, value, [parity])
                self._store_pair(pair, row, col)
