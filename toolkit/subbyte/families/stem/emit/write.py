"""Windows to shared memory: a thread reads the words of a column of words, and writes them as strings of bytes."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.stem.emit.block import Block, Turn
from subbyte.families.stem.strings import PIECE_BYTES, STRIP_BYTES, WORD_BYTES, Part
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, every, registers, when
from subbyte.workload.conv import BATCH_GROUP

THREADS = 128


class Writer:
    """Reads and writes a warpgroup's strings. In each pass, a thread handles one image of a string. The last pass needs
    only a few warps: neighbouring warpgroups use different ones, since their first warps share a scheduler."""

    def __init__(self, block: Block) -> None:
        self.block = block
        plan = block.plan
        turned = block.thread % THREADS
        if plan.turn_strings * BATCH_GROUP % THREADS:
            first = (block.place * plan.config.consumers + block.warpgroup) % 4 * 32
            turned = (block.thread + first) % THREADS
        self.place = bind("string_place", turned)
        self.words = registers("strip_words", plan.whole_passes * plan.input_rows * plan.strings.span)
        if plan.last_shared:
            self.row = bind("own_row", self.place // plan.rest * plan.last_rows)
            self.own = bind("own_place", self.place % plan.rest)
            self.row_words = registers("row_words", plan.last_input_rows * plan.strings.span)

    def _inside(self, number: int) -> Any:
        """Whether a turn has such a string."""
        plan = self.block.plan
        if (number + 1) * THREADS <= plan.turn_strings * BATCH_GROUP:
            return True
        return self.place < plan.turn_strings * BATCH_GROUP - number * THREADS

    def _index(self, number: int, row: int, word: int) -> int:
        """Index of a word among those of a thread."""
        plan = self.block.plan
        return (number * plan.input_rows + row) * plan.strings.span + word

    def read(self, turn: Turn) -> None:
        """Start reading all words of a turn."""
        plan, lay, form = self.block.plan, self.block.plan.strings, self.block.plan.strings.form
        first = turn.segment * (plan.segment_units * lay.unit_words)
        top = turn.group * form.rows + turn.rows * (plan.config.turn_rows * plan.workload.stride)
        at = bind("strip_at", (top * form.words + first) * BATCH_GROUP + self.place)
        last = (plan.config.segments - 1) * plan.segment_units * lay.unit_words
        whole = form.words >= last + plan.turn_strings + lay.span - 1
        for number in range(plan.whole_passes):
            there = [self._inside(number)]
            if not whole:
                string = first + number * (THREADS // BATCH_GROUP) + self.place // BATCH_GROUP
                there.append(string + lay.span - 1 < form.words)
            with when(every([one for one in there if one is not True])):
                for row in range(plan.input_rows):
                    for word in range(lay.span):
                        more = (row * form.words + word) * BATCH_GROUP + number * THREADS
                        pointer = self.block.activations.ptr_to([at + more])
                        op.load_word(self.words, self._index(number, row, word), pointer)
        if plan.last_shared:
            skipped = plan.whole_passes * THREADS + self.own - self.place
            there = [one for one in [self._in_last()] if one is not True]
            if not whole:
                string = first + plan.whole_passes * (THREADS // BATCH_GROUP) + self.own // BATCH_GROUP
                there.append(string + lay.span - 1 < form.words)
            with when(every(there)):
                start = bind("own_at", at + self.row * (plan.workload.stride * form.words * BATCH_GROUP) + skipped)
                for row in range(plan.last_input_rows):
                    for word in range(lay.span):
                        pointer = self.block.activations.ptr_to([start + (row * form.words + word) * BATCH_GROUP])
                        op.load_word(self.row_words, row * lay.span + word, pointer)

    def write(self, buffer: Any) -> None:
        """Write the strings of a turn's output rows, and make them visible to wgmma."""
        plan, lay = self.block.plan, self.block.plan.strings
        address = self.block.buffer_address(buffer)
        image, string = self.place % BATCH_GROUP, self.place // BATCH_GROUP
        offset = T.cast(string * lay.string_bytes + image * PIECE_BYTES, "uint32")
        at = bind("string_at", address + offset)
        for number in range(plan.whole_passes):
            with when(self._inside(number)):
                skipped = number * (THREADS // BATCH_GROUP) * lay.string_bytes
                self._write_strings(at, skipped, plan.config.turn_rows, partial(self._read_word, number))
        if plan.last_shared:
            with when(self._in_last()):
                string = plan.whole_passes * (THREADS // BATCH_GROUP) + self.own // BATCH_GROUP
                own = self.row * plan.row_bytes + string * lay.string_bytes + image * PIECE_BYTES
                start = bind("own_string_at", address + T.cast(own, "uint32"))
                self._write_strings(start, 0, plan.last_rows, lambda row, word: self.row_words[row * lay.span + word])
        op.async_fence()
        self.block.meet()

    def _in_last(self) -> Any:
        """Whether the thread writes some rows in the pass that the warps share: a comparison, or True."""
        plan = self.block.plan
        threads = plan.rest * plan.config.turn_rows // plan.last_rows
        return self.place < threads if threads < THREADS else True

    def _write_strings(self, at: Any, skipped: int, rows: int, read: Any) -> None:
        """A thread's string of each of some output rows, from ``read(row, word)``."""
        plan, lay = self.block.plan, self.block.plan.strings
        made: dict[Any, Any] = {}
        for row in range(rows):
            for kind, parts in enumerate(lay.parts):
                top = row * plan.workload.stride
                words = [self._word(part, read, top, made) for part in parts]
                for piece in range(lay.pieces):
                    place = row * plan.row_bytes + kind * plan.kind_bytes + piece * STRIP_BYTES + skipped
                    op.store_shared16(at + T.uint32(place), words[4 * piece : 4 * piece + 4])

    def _read_word(self, number: int, row: int, word: int) -> Any:
        """One of the words that the thread has read."""
        return self.words[self._index(number, row, word)]

    def _word(self, part: Part, read: Any, top: int, made: dict[Any, Any]) -> Any:
        """A word of a string from the words of its rows; what output rows share is made once. Even values are split
        before bytes are selected, odd ones afterwards."""
        constants = sum(one << 8 * byte for byte, one in enumerate(part) if isinstance(one, int))
        given = {byte: one for byte, one in enumerate(part) if not isinstance(one, int)}
        if not given:
            return T.uint32(constants)
        sources = {byte: (top + row, value // WORD_VALUES) for byte, (row, value) in given.items()}
        places = {byte: value % WORD_VALUES // 2 for byte, (_, value) in given.items()}
        even = all(value % 2 == 0 for _, value in given.values())
        key = (part, top)
        if key not in made:
            found = list(dict.fromkeys(sources.values()))
            words = [self._even(read, one, made) if even else read(*one) for one in found]
            chosen = [byte + WORD_BYTES * len(found) for byte in range(WORD_BYTES)]  # constants, in a word of their own
            for byte in given:
                chosen[byte] = places[byte] + WORD_BYTES * found.index(sources[byte])
            if even and constants:
                words.append(T.uint32(constants))
            value = words[0] if chosen == [0, 1, 2, 3] else _bytes(words[0], words[-1], chosen)
            if not even:
                kept = sum(LOW_NIBBLES & 0xFF << 8 * byte for byte in given)
                value = (value & T.uint32(kept)) | T.uint32(constants) if constants else value & T.uint32(kept)
            made[key] = bind("part", value)
        return made[key]

    def _even(self, read: Any, source: tuple[int, int], made: dict[Any, Any]) -> Any:
        """The even values of a word."""
        if source not in made:
            made[source] = bind("even", (read(*source) << T.uint32(4)) & T.uint32(LOW_NIBBLES))
        return made[source]


def _bytes(first: Any, second: Any, chosen: list[int]) -> Any:
    """Select four of the eight bytes of two words."""
    both = registers("both", 1)
    op.permute_bytes(both[0], first, second, T.uint32(sum(byte % 8 << 4 * i for i, byte in enumerate(chosen))))
    return both[0]
