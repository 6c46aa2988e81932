"""Windows into shared memory: a thread reads the words of a column of words, and writes them as a string of bytes."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.stem.emit.block import Block, Turn
from subbyte.families.stem.strings import CONSTANT, PIECE_BYTES, STRIP_BYTES, Part
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when
from subbyte.workload.conv import BATCH_GROUP


class Writer:
    """Reads and writes a warpgroup's strings. A thread has an image of a string, in each pass."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.place = bind("string_place", block.thread % 128)
        self.words = registers("strip_words", block.plan.passes * block.plan.input_rows)

    def _inside(self, number: int) -> Any:
        """Whether there is such a string in a turn."""
        plan = self.block.plan
        if (number + 1) * 128 <= plan.turn_strings * BATCH_GROUP:
            return True
        return self.place < plan.turn_strings * BATCH_GROUP - number * 128

    def read(self, turn: Turn) -> None:
        """Begin to read all words of a turn."""
        plan, form = self.block.plan, self.block.plan.strings.form
        first = turn.segment * (plan.segment_units * plan.strings.unit_words)
        top = turn.group * form.rows + turn.rows * (plan.config.turn_rows * plan.workload.stride)
        at = bind("strip_at", (top * form.words + first) * BATCH_GROUP + self.place)
        whole = form.words >= (plan.config.segments - 1) * plan.segment_units * plan.strings.unit_words + plan.turn_strings
        for number in range(plan.passes):
            there = [self._inside(number)]
            if not whole:
                there.append(first + number * (128 // BATCH_GROUP) + self.place // BATCH_GROUP < form.words)
            with when(every([one for one in there if one is not True])):
                for row in range(plan.input_rows):
                    pointer = self.block.activations.ptr_to([at + (row * form.words * BATCH_GROUP + number * 128)])
                    op.load_word(self.words, number * plan.input_rows + row, pointer)

    def write(self, buffer: Any) -> None:
        """Write the strings of a turn's output rows, and make them visible to wgmma."""
        plan, lay = self.block.plan, self.block.plan.strings
        address = self.block.buffer_address(buffer)
        image, string = self.place % BATCH_GROUP, self.place // BATCH_GROUP
        offset = T.cast(string * lay.string_bytes + image * PIECE_BYTES, "uint32")
        at = bind("string_at", address + offset)
        for number in range(plan.passes):
            with when(self._inside(number)):
                made: dict[Any, Any] = {}
                for row in range(plan.config.turn_rows):
                    top = number * plan.input_rows + row * plan.workload.stride
                    words = [self._word(part, top, made) for part in lay.parts]
                    for piece in range(lay.pieces):
                        place = row * plan.row_bytes + number * (16 * lay.string_bytes) + piece * STRIP_BYTES
                        op.store_shared16(at + T.uint32(place), words[4 * piece : 4 * piece + 4])
        op.async_fence()
        self.block.meet()

    def _word(self, part: Part, top: int, made: dict[Any, Any]) -> Any:
        """A word of a string from the words of its rows; rows that output rows share are split once."""
        if not part.rows:
            return T.uint32(CONSTANT)
        rows = tuple(top + row for row in part.rows)
        if (rows, part.even) not in made:
            given = [self.words[row] for row in rows]
            if part.even:
                value = (given[0] << T.uint32(4)) & T.uint32(LOW_NIBBLES)
            elif len(rows) == 1:
                value = given[0] & T.uint32(LOW_NIBBLES)
            else:
                both = registers("both", 1)
                kept = [value // 2 for _, value in part.values]
                selector = sum((byte + (4 if i >= 2 else 0)) << (4 * i) for i, byte in enumerate(kept))
                op.permute_bytes(both[0], given[0], given[1], T.uint32(selector))
                value = both[0] & T.uint32(LOW_NIBBLES)
            made[rows, part.even] = bind("part", value)
        return made[rows, part.even]
