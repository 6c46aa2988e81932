"""Exercises on register-level packing: a word from eight values, the same across lanes, the address of the word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.exercises.feedback import Feedback, call, call_each, mistake
from subbyte.numerics import pack_words

LANES, GROUP, BITS = 32, 8, 4
FEWEST_SHUFFLES = 3
EXAMPLES = ((1, 2, 3, 4, 5, 6, 7, 0), (-1, 0, 0, 0, 0, 0, 0, 0), (-8, 7, -3, 2, -5, 4, -1, 6))
"""Eight values each: positive ones show the order, a single -1 shows what a sign does, then everything together."""
Words = NDArray[np.uint32]


def check_pack(pack: Callable[[list[int]], int]) -> Feedback:
    """Check ``pack(values)``: eight values from -8 to 7 as one 32-bit word, value i in bits 4*i to 4*i + 3."""
    for values in EXAMPLES:
        answer, problem = call(pack, list(values), case=f"values {list(values)}")
        if problem is not None:
            return problem
        if not isinstance(answer, (int, np.integer)):
            return Feedback(False, f"Return an integer, not {answer!r}.")
        right = _word(values)
        if int(answer) != right:
            about = _about_word(int(answer), list(values))
            return Feedback(False, f"{list(values)} is {right:#010x}, not {int(answer):#x}. {about}".rstrip())
    return Feedback(True, "Eight values, one word.")


def _word(values: Any) -> int:
    return int(pack_words(np.array(values, np.int8))[0])


def _about_word(answer: int, values: list[int]) -> str:
    loose = [sum(v << (BITS * i) for i, v in enumerate(values)), _ored([v << (BITS * i) for i, v in enumerate(values)])]
    magnitudes = [abs(v) << (BITS * i) for i, v in enumerate(values)]
    known: dict[str, Callable[[], Any]] = {
        "A negative value has ones in all its upper bits: keep only the lowest four with & 0xF before shifting.": (
            lambda: answer if answer in (*loose, *(x & 0xFFFFFFFF for x in loose)) else None
        ),
        "The order is reversed: the first value belongs in the lowest bits.": lambda: _word(values[::-1]),
        "The mask 7 keeps three bits and drops the sign: four bits are 0xF.": (
            lambda: _ored([(v & 7) << (BITS * i) for i, v in enumerate(values)])
        ),
        "abs drops the sign. A value is kept in two's complement: -1 is 0xF, which & 0xF gives.": (
            lambda: answer if answer in (_ored(magnitudes), sum(magnitudes)) else None
        ),
        "Values are stored in two's complement, -1 as 0xF; you added 8 to them.": (
            lambda: _ored([(v + 8) << (BITS * i) for i, v in enumerate(values)])
        ),
        "Each value has 4 bits here, not 8.": lambda: _ored([(v & 0xF) << (8 * i) for i, v in enumerate(values)]),
        "Value i moves up by 4*i bits, not by i.": lambda: _ored([(v & 0xF) << i for i, v in enumerate(values)]),
        "Every value landed in the lowest bits: shift value i up by 4*i.": lambda: _ored([v & 0xF for v in values]),
    }
    return mistake(answer, known)


def _ored(parts: list[int]) -> int:
    word = 0
    for part in parts:
        word |= part
    return word


class Warp:
    """32 lanes that exchange registers as on a GPU; a register is an array of 32 words, uint32 [32].

    Arithmetic on such an array is done by every lane on its own word.
    """

    def __init__(self) -> None:
        self.shuffles = 0
        self.lane = np.arange(LANES)

    def shuffle_down(self, word: Words, offset: int, width: int = GROUP) -> Words:
        """Each lane reads the word of the lane ``offset`` positions further in its group of ``width`` lanes.

        A lane without such a neighbour reads its own word. Raises InvalidInput.
        """
        if width not in (2, 4, 8, 16, 32) or not 0 <= offset < width:
            raise InvalidInput(f"offset {offset}, width {width}: width is 2, 4, 8, 16 or 32, offset 0 to width - 1")
        source = self.lane + offset
        return self._read(word, np.where(self.lane % width + offset < width, source, self.lane))

    def shuffle_xor(self, word: Words, mask: int) -> Words:
        """Each lane reads the word of lane ``lane ^ mask``. Raises InvalidInput."""
        if not 0 <= mask < LANES:
            raise InvalidInput(f"mask {mask}: must be 0 to {LANES - 1}")
        return self._read(word, self.lane ^ mask)

    def _read(self, word: Words, source: NDArray[Any]) -> Words:
        held = np.asarray(word)
        if held.shape != (LANES,):
            raise InvalidInput(f"a register has one word for each of 32 lanes, not shape {held.shape}")
        self.shuffles += 1
        read: Words = held.astype(np.uint32)[source]
        return read


def check_gather(gather: Callable[[Warp, Words], Words]) -> Feedback:
    """Check ``gather(warp, word)``: the values of eight neighbouring lanes as one word in the first of them.

    ``word`` is uint32 [32]: lane l holds one value in its lowest four bits, the other bits are zero. Afterwards lanes
    0, 8, 16 and 24 must hold the words; what the others hold does not matter.
    """
    rng = np.random.default_rng(0)
    values = rng.permuted(np.tile(np.arange(16), 2)).astype(np.uint32)
    warp = Warp()
    answer, problem = call(gather, warp, values.copy(), case="a warp of 32 values", arrays=True)
    if problem is not None:
        return problem
    if not isinstance(answer, np.ndarray) or answer.shape != (LANES,):
        return Feedback(False, "Return the register after gathering: an array with one word for each of the 32 lanes.")
    given = [int(word) & 0xFFFFFFFF for word in answer[::GROUP]]
    right = _gathered(values, (4, 2, 1), BITS)
    if given != right:
        lanes = [GROUP * i for i, (a, b) in enumerate(zip(given, right, strict=True)) if a != b]
        about = _about_gather(given, values, warp.shuffles)
        return Feedback(
            False, f"Lane {lanes[0]} holds {given[lanes[0] // 8]:#010x}, not {right[lanes[0] // 8]:#010x}. {about}"
        )
    if warp.shuffles > FEWEST_SHUFFLES:
        return Feedback(
            True,
            f"It takes {warp.shuffles} shuffles, though; with offsets 4, 2 and 1 partial words move and 3 suffice.",
        )
    return Feedback(True, f"Eight values into one word with {warp.shuffles} shuffles.")


def _about_gather(given: list[int], values: Words, shuffles: int) -> str:
    rounds = [(4,), (2,), (1,), (4, 2), (2, 1), (4, 1)]
    known: dict[str, Callable[[], Any]] = {
        "Nothing has moved yet: read the neighbour's word with warp.shuffle_down and combine it with your own.": (
            lambda: [int(word) for word in values[::GROUP]]
        ),
        "The word moves up by one bit for each lane crossed; a value has 4 bits, so shift by 4 * offset.": (
            lambda: given if given in [_gathered(values, order, 1) for order in ((4, 2, 1), (1, 2, 4))] else None
        ),
        "The neighbour's word is combined without moving it up: shift it by 4 * offset bits.": (
            lambda: given if given in [_gathered(values, order, 0) for order in ((4, 2, 1), (1, 2, 4))] else None
        ),
        "One of the rounds is missing: offsets 4, 2 and 1 bring in all eight values.": (
            lambda: given if given in [_gathered(values, order, BITS) for order in rounds] else None
        ),
        "The order is reversed: the value of the group's first lane belongs in the lowest bits.": (
            lambda: [_word_of(values[i : i + GROUP][::-1]) for i in range(0, LANES, GROUP)]
        ),
    }
    if words := mistake(given, known):
        return words
    if not shuffles:
        return "There was no shuffle; a lane cannot read another lane's register without one."
    return (
        "Follow one value: after the round with offset d, a lane's word also holds the values of the lane d further on."
    )


def _word_of(values: Words) -> int:
    return _ored([int(value) << (BITS * i) for i, value in enumerate(values)])


def _gathered(values: Words, offsets: tuple[int, ...], bits: int) -> list[int]:
    """Words of lanes 0, 8, 16 and 24 after rounds with these offsets, each shifting left by ``bits`` per lane
    distance."""
    warp, word = Warp(), values.astype(np.uint64)
    for offset in offsets:
        peer = warp.shuffle_down(word.astype(np.uint32), offset).astype(np.uint64)
        word = (word | peer << np.uint64(bits * offset)) & np.uint64(0xFFFFFFFF)
    return [int(value) for value in word[::GROUP]]


def check_address(byte: Callable[[int, int], int]) -> Feedback:
    """Check ``byte(image, tile)``: where the word of an image's tile of 8 channels starts in its NHWCnc block.

    The block holds 8 images, each with 32 channels (4 tiles of 8), 4 bits per value: 128 bytes.
    """
    places = [(image, tile) for image in range(8) for tile in range(4)]
    answers, problem = call_each(byte, places, lambda image, tile: f"image {image}, tile {tile}")
    if problem is not None:
        return problem
    if answers == [16 * image + 4 * tile for image, tile in places]:
        return Feedback(True, "Lane l = 4 * image + tile stores at byte 4 * l: 32 lanes fill 128 bytes without a gap.")
    known: dict[str, Callable[[], Any]] = {
        "That counts bits; a byte has 8 of them.": lambda: [8 * (16 * i + 4 * t) for i, t in places],
        "That counts 4-bit values; a byte holds two of them.": lambda: [2 * (16 * i + 4 * t) for i, t in places],
        "That counts words; a word has 4 bytes.": lambda: [4 * i + t for i, t in places],
        "That puts the images of one tile together; the 32 channels of an image are neighbours.": lambda: [
            32 * t + 4 * i for i, t in places
        ],
        "Tiles are left out: the four tiles of an image follow each other, 4 bytes apart.": lambda: [
            16 * i for i, _ in places
        ],
    }
    first = next(k for k, (i, t) in enumerate(places) if answers[k] != 16 * i + 4 * t)
    image, tile = places[first]
    about = mistake(answers, known)
    return Feedback(
        False,
        f"Image {image}, tile {tile} starts at byte {16 * image + 4 * tile}, not {answers[first]!r}. {about}".rstrip(),
    )
