"""The picture of :class:`~subbyte.technique.packed_stores.PackedStores`: every byte in each of its five places.

A square is one byte, two channels of one pixel and image, and says which in ``data-u``, its index in the record; the
browser marks the squares of one index in all panels together.
"""

from __future__ import annotations

from collections.abc import Iterator

from subbyte.technique.packed_stores import (
    IMAGE_BYTES,
    IMAGES,
    PAIRS,
    PIXELS,
    PackedByte,
    PackedStores,
    WorkedStores,
)
from subbyte_widgets.svg import element, text

WIDE, HIGH = 760, 612
BYTE, LINE = 13.0, 16.0
TOPS = (66.0, 254.0, 430.0)
SUMS_X, REGISTERS_X, SHARED_X, WORDS_X, OUT_X = 96.0, 400.0, 96.0, 420.0, 96.0
BETWEEN, REGISTER = 26.0, 82.0
"""Pixels between two halves of a panel, and from one register to the next."""
HEADS = (
    (SUMS_X, 0, "1  What wgmma leaves: int32 sums", "number: the lane that holds them"),
    (REGISTERS_X, 0, "2  Requantized, a register for each lane", "4 bytes: 2 images of 2 pixels; no lane asks another"),
    (SHARED_X, 1, "3  stmatrix.trans: images by channels", "128 bytes of shared memory, values of 4 bits"),
    (WORDS_X, 1, "4  One load, prmt: whole words", "a lane: 16 channels of its image, two pixels"),
    (OUT_X, 2, "5  Stored into NHWCnc", "128 bytes of each pixel; the other half is the neighbour warp's"),
)  # fmt: skip
Places = list[tuple[float, float]]
STEPS = ("sums", "registers", "shared", "words", "store")
"""The step of the listing that fills each panel."""
VEILS = ((8, 50, 364, 186), (372, 50, 384, 186), (8, 238, 364, 174), (372, 238, 384, 174), (8, 414, 540, 190))
"""Parts of the picture that are dimmed until their panel is reached: x, y, width, height."""
VALUES_X = 556.0


def stores_svg(record: PackedStores, chosen: int = -1, numbers: WorkedStores | None = None) -> str:
    """The five panels; with ``chosen``, an index into the record's bytes, that byte is marked in each, and with
    ``numbers`` its values are shown beside them."""
    colours = "Blue: the first pixel, orange: the second. A square is two channels: one byte once they are packed."
    drawn = [text(14, 20, record.title(), "h"), text(14, 38, colours, "s")]
    for x, row, name, what in HEADS:
        drawn += [text(x - 4, TOPS[row] + 2, name, "b"), text(x - 4, TOPS[row] + 17, what, "s")]
    drawn += [*_labels(), *_lanes(record), *_neighbours(record)]
    for index, byte in enumerate(record.bytes):
        # Two squares of one lane's sums touch, so that the lane's number stands on one ground.
        wide = [BYTE if byte.image % 2 == 0 else BYTE - 1.5, *[BYTE - 1.5] * 4]
        squares = "".join(_square(x, y, side) for (x, y), side in zip(places(byte), wide, strict=True))
        drawn.append(element("path", d=squares, class_=f"u p{byte.pixel}" + " on" * (index == chosen), data_u=index))
    drawn.append(element("g", [text(x, y, lane, "n m") for x, y, lane in _numbers(record)], class_="numbers"))
    said = values_in_words(record, numbers, chosen) if numbers and chosen >= 0 else [("", "")] * len(STEPS)
    drawn.append(text(VALUES_X, TOPS[2] + 2, "Its values on the way", "b"))
    for i, (what, value) in enumerate(said):
        y = TOPS[2] + 24 + 31 * i
        line = text(VALUES_X, y, what, "s") + text(VALUES_X, y + 14, value, "v")
        drawn.append(element("g", line, class_="value", data_place=i))
    return element(
        "svg", drawn, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDE} {HIGH}",
        class_="sb-step-svg sb-stores-svg", role="img", aria_label=record.title(),
    )  # fmt: skip


def values_in_words(record: PackedStores, numbers: WorkedStores, index: int) -> list[tuple[str, str]]:
    """What the byte is in each panel, and its number there."""
    b = record.bytes[index]
    (low, high), (a, c) = numbers.sums[index], numbers.values[index]
    byte, word = numbers.bytes[index], numbers.words[index]
    return [
        (f"1  sums c{b.sums[0]}, c{b.sums[1]} of lane {b.lane}", f"{low} and {high}"),
        (f"2  int4, byte {b.register_byte} of its register", f"{a} and {c}: {byte:#04x}"),
        (f"3  byte {b.shared_byte} of shared memory", f"{byte:#04x}"),
        (f"4  byte {b.word_byte} of lane {b.reader}'s word {b.word}", f"{word:#010x}"),
        (f"5  byte {b.output_byte} of the pixel's 128", f"{byte:#04x}"),
    ]


def moves(record: PackedStores) -> list[list[list[float]]]:
    """Left upper corners of every byte, panel by panel."""
    return [[[x, y] for x, y in places(byte)] for byte in record.bytes]


def places(byte: PackedByte) -> Places:
    """Left upper corner of the byte's square in each of the five panels."""
    pair, quad = byte.channel // 2, byte.lane % 4
    halves = (byte.pixel * (IMAGES * BYTE + BETWEEN), byte.pixel * (PAIRS * BYTE + BETWEEN))
    rows = [top + 24 for top in TOPS]
    word = byte.word * 4 + byte.word_byte
    out = byte.pixel * (IMAGE_BYTES * BYTE + BETWEEN) + byte.output_byte % IMAGE_BYTES * BYTE
    return [
        (SUMS_X + halves[0] + byte.image * BYTE, rows[0] + pair * LINE),
        (REGISTERS_X + quad * REGISTER + byte.register_byte * BYTE, rows[0] + byte.lane // 4 * LINE),
        (SHARED_X + byte.shared_byte % IMAGE_BYTES * BYTE, rows[1] + byte.shared_byte // IMAGE_BYTES * LINE),
        (WORDS_X + halves[1] + word * BYTE, rows[1] + byte.reader * LINE),
        (OUT_X + out, rows[2] + byte.output_byte // IMAGE_BYTES * LINE),
    ]


def in_words(record: PackedStores, index: int) -> str:
    """The path of one byte."""
    b = record.bytes[index]
    first = 16 * record.warp + b.channel
    return (
        f"Channels {first} and {first + 1} of pixel {b.pixel}, image {b.image}: sums in registers c{b.sums[0]} and "
        f"c{b.sums[1]} of the pixel in lane {b.lane}; byte {b.register_byte} of its packed register; byte "
        f"{b.shared_byte} of 128 in shared memory; lane {b.reader} loads it and stores it as byte {b.word_byte} of its "
        f"word {b.word}: byte {b.output_byte} of the pixel's 128."
    )


def _square(x: float, y: float, side: float = BYTE - 1.5) -> str:
    high = LINE - 2
    return f"M{x:.4g} {y:.4g}h{side:.4g}v{high:.4g}h{-side:.4g}z"


def _labels() -> list[str]:
    """The names of rows and columns."""
    drawn = []
    for i in range(PAIRS):
        y = TOPS[0] + 36 + i * LINE
        drawn.append(text(SUMS_X - 8, y, f"ch. {2 * i}, {2 * i + 1}", "n e"))
        for line, x in ((1, SHARED_X), (2, OUT_X)):
            drawn.append(text(x - 8, TOPS[line] + 36 + i * LINE, f"image {i}", "n e"))
        drawn.append(text(WORDS_X - 8, TOPS[1] + 36 + i * LINE, f"lane {i}", "n e"))
    below = TOPS[0] + 36 + PAIRS * LINE
    for pixel in range(PIXELS):
        x = SUMS_X + pixel * (IMAGES * BYTE + BETWEEN)
        drawn.append(text(x, below, f"images 0-7, pixel {pixel}", "s"))
        x = OUT_X + pixel * (IMAGE_BYTES * BYTE + BETWEEN)
        drawn.append(text(x, TOPS[2] + 36 + IMAGES * LINE, f"pixel {pixel}", "s"))
    return drawn


def _numbers(record: PackedStores) -> Iterator[tuple[float, float, int]]:
    """Where a lane's number is written over its two squares of the sums."""
    for byte in record.bytes:
        if byte.image % 2 == 0:
            x, y = places(byte)[0]
            yield x + BYTE - 0.5, y + 11.5, byte.lane


def _lanes(record: PackedStores) -> list[str]:
    """The lanes' numbers left of their registers."""
    held = {byte.lane: places(byte)[1] for byte in record.bytes if byte.register_byte == 0}
    return [text(x - 5, y + 12, lane, "n e") for lane, (x, y) in held.items()]


def _neighbours(record: PackedStores) -> list[str]:
    """The bytes that the neighbour warp stores."""
    mine = {place[4] for place in map(places, record.bytes)}
    every = [
        (OUT_X + pixel * (IMAGE_BYTES * BYTE + BETWEEN) + i * BYTE, TOPS[2] + 24 + image * LINE)
        for pixel in range(PIXELS) for image in range(IMAGES) for i in range(IMAGE_BYTES)
    ]  # fmt: skip
    return [element("path", d="".join(_square(x, y) for x, y in every if (x, y) not in mine), class_="other")]
