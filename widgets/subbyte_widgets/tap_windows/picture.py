"""Pictures of :class:`~subbyte.technique.taps.TapAddresses`: a panel for each tap, and one tap in detail.

A panel shows the rows of shared memory with the tap's window over them. Below, for the chosen tap: its row with the
numbers of the pixels, the bytes of its first pixel, and the 64 bits of the descriptor, decoded from the record's.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from subbyte.device.shared_operand import PIECE_BYTES, SharedOperand
from subbyte.technique.taps import PIXEL_BYTES, StoredRow, Tap, TapAddresses
from subbyte_widgets.svg import element, text

WIDE, LEFT, TOP = 760, 12, 52
ROW, GAP, HEAD = 13, 26, 18
DETAIL_HIGH = 348
MULTIPLY_Y = 284.0
"""From the top of a tap taken apart to its matrix instruction."""
IMAGES = 8
LINE, CELL, NARROW = 22, 8.0, 140
CORE_X, BITS_X, BITS_W = 56.0, 372.0, 376.0
FIELDS = (
    ("start", 0, "where the tap begins; all else is the same for every tap"),
    ("half", 16, "from the even channels of a pixel to its odd ones"),
    ("pixel", 32, "from one pixel (8 images) to the next"),
)
"""Name, first bit and meaning of the fields of 14 bits, each in units of 16 bytes."""
SWIZZLE_BIT, FIELD_BITS = 62, 14
TIMES, ARROW = "\u00d7", "\u2192"


def windows_svg(record: TapAddresses, chosen: int = -1) -> str:
    """All taps, and with ``chosen`` (an index) that tap in detail."""
    places = panel_places(record)
    head, _, what = record.title().partition(": ")
    drawn = [text(LEFT, 18, what[:1].upper() + what[1:], "h"), text(LEFT, 34, head, "s")]
    for index, (tap, (x, y, wide, high)) in enumerate(zip(record.taps, places, strict=True)):
        ring = element("rect", class_="ring", x=x - 6, y=y - 5, width=wide + 12, height=high, rx=5)
        panel = _panel(record, tap, x, y, wide)
        drawn.append(element("g", [ring, *panel], class_="tap" + " on" * (index == chosen), data_tap=index))
    below = top_height(record)
    if 0 <= chosen < len(record.taps):
        drawn.append(detail_svg(record, chosen))
    return element(
        "svg", element("g", drawn, class_="panel"),
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDE} {below + DETAIL_HIGH}",
        class_="sb-step-svg sb-taps-svg", role="img", aria_label=record.title(),
    )  # fmt: skip


def in_words(record: TapAddresses, chosen: int) -> str:
    """The picture in words."""
    tap = record.taps[chosen]
    return (
        f"{record.title()}. {len(record.taps)} taps read {len(record.stored)} rows of shared memory; "
        f"tap ({tap.r}, {tap.s}) begins at byte {tap.start:,}, descriptor {tap.descriptor:#018x}."
    )


def sentence(record: TapAddresses, index: int) -> str:
    """What is done for a tap, compared with the previous one."""
    tap, before = record.taps[index], record.taps[index - 1] if index else None
    if not record.shared:
        return (
            f"Tap ({tap.r}, {tap.s}): its pixels come from global memory once more, into a stage buffer of their own."
        )
    if before is None:
        return f"Tap ({tap.r}, {tap.s}): the instruction reads {record.width} pixels from byte {tap.start:,} on."
    return (
        f"Tap ({tap.r}, {tap.s}): no pixel moves. The start address goes from {before.start:,} to {tap.start:,}, the "
        "instruction reads the same shared memory from there."
    )


def panel_places(record: TapAddresses) -> list[tuple[float, float, float, float]]:
    """x, y, width and height of every tap's panel: kernel rows below each other."""
    lines = sorted({tap.r for tap in record.taps})
    across = max(sum(tap.r == r for tap in record.taps) for r in lines)
    panel = (WIDE - LEFT) / across
    high = HEAD + _rows(record) * ROW + GAP
    return [(LEFT + tap.s * panel, TOP + lines.index(tap.r) * high, panel - 18, high - 6) for tap in record.taps]


def top_height(record: TapAddresses) -> float:
    """Height of the panels, with the title."""
    return max(y + high for _, y, _, high in panel_places(record)) + 16


def detail_svg(record: TapAddresses, index: int) -> str:
    """The chosen tap: its row in shared memory, its first pixel, its descriptor."""
    tap, y = record.taps[index], top_height(record)
    what = (
        "a start address, nothing else" if record.shared else "its pixels were loaded, unpacked and stored just for it"
    )
    q = record.width - 1
    return element("g", [
        element("path", class_="cut", d=f"M{LEFT} {y - 10:.4g}H{WIDE - LEFT}"),
        text(LEFT, y + 8, f"Tap ({tap.r}, {tap.s}): {what}", "h"),
        "" if record.shared else text(WIDE - LEFT, y + 8, "from global memory", "s e"),
        text(LEFT, y + 26, f"Output columns 0 to {q} read input row {tap.input_row} in stage buffer {tap.buffer}, from "
                           f"its pixel {tap.column} on (numbers: input columns):", "s"),
        *_row(record, tap, y + 38),
        *_core_matrices(tap, y + 108),
        *_descriptor(tap, y + 108),
        *_multiply(record, tap, y + MULTIPLY_Y),
    ], class_="detail")  # fmt: skip


def _multiply(record: TapAddresses, tap: Tap, y: float) -> list[str]:
    """The matrix instruction of the tap: what it reads from registers and what from shared memory."""
    box: dict[str, Any] = {"y": y + 8, "height": 30, "rx": 5}
    return [
        element("rect", x=LEFT, width=WIDE - 2 * LEFT, y=y, height=46, rx=6, class_="instruction"),
        text(LEFT + 6, y + 28, "sums +=", "b"),
        element("rect", x=80, width=206, class_="operand weights", **box),
        text(183, y + 28, f"registers: weights of tap ({tap.r}, {tap.s})", "s m"),
        text(294, y + 28, TIMES, "m"),
        element("rect", x=302, width=292, class_="operand", **box),
        text(448, y + 28, f"shared memory: {record.width} pixels from byte {tap.start:,} on", "s m"),
        text(602, y + 28, f"{ARROW} in one wgmma", "s"),
    ]


def ways(record: TapAddresses) -> list[dict[str, Any]]:
    """For each tap what moves: its window over the row (``row``, ``x``), its pixels into the matrix instruction
    (``read``), and before that from global memory into the row where it is stored for this tap alone (``stored``)."""
    found = []
    for index, tap in enumerate(record.taps):
        y, box = top_height(record), _row_box(record, tap)
        middle = LEFT + (tap.column + record.width * _step(tap) / 2) * box
        top, bottom = y + 38 + LINE / 2, y + MULTIPLY_Y + 23
        read = f"M{middle:.1f} {top:.1f}C{middle:.1f} {top + 110:.1f} 448 {bottom - 110:.1f} 448 {bottom:.1f}"
        stored = "" if record.shared else f"M{WIDE - 70} {y + 4:.1f}L{middle:.1f} {top:.1f}"
        found.append({"row": tap.buffer if record.shared else index, "x": LEFT + tap.column * box, "read": read,
                      "stored": stored})  # fmt: skip
    return found


def _rows(record: TapAddresses) -> int:
    return len(record.stored) if record.shared else 1


def _panel(record: TapAddresses, tap: Tap, x: float, y: float, wide: float) -> list[str]:
    """One tap: the stored rows, the window, and its numbers below."""
    box = min(ROW - 2.0, wide / (record.pitch + 1))
    shown = record.stored if record.shared else (StoredRow(tap.buffer, tap.input_row, tap.pixels),)
    drawn = [text(x, y + 10, f"tap ({tap.r}, {tap.s})")]
    for place, row in enumerate(shown):
        top = y + HEAD + place * ROW
        drawn += _cells(_reached(record, tap, row), x, top, box, ROW - 3)
        if row.buffer == tap.buffer:
            drawn.append(_window(record, tap, x, top, box, ROW))
    below = f"buffer {tap.buffer}, start {tap.start:,}" if wide > NARROW else f"start {tap.start:,}"
    return [*drawn, text(x, y + HEAD + len(shown) * ROW + 11, below, "s")]


def _reached(record: TapAddresses, tap: Tap, row: StoredRow) -> tuple[int, ...]:
    """A row's columns, and for the row of the tap the zeros behind it that its window reaches."""
    beyond = tap.column + (record.width - 1) * _step(tap) + 1 - len(row.columns) if row.buffer == tap.buffer else 0
    return row.columns + (-1,) * max(0, beyond)


def _cells(columns: Iterable[int], x: float, top: float, box: float, high: float) -> list[str]:
    """A row of boxes: neighbouring pixels as one dashed line as thick as they are high, zeros as outlines."""
    drawn, place, gap = [], 0, min(1.0, box / 5)
    for zero, run in groupby(columns, lambda column: column < 0):
        count, left = len([*run]), x + place * box
        if zero:
            boxes = "".join(
                f"M{left + i * box:.4g} {top:.4g}h{box - 1:.4g}v{high:.4g}h{1 - box:.4g}z" for i in range(count)
            )
            drawn.append(element("path", class_="zero", d=boxes))
        else:
            line = f"M{left:.5g} {top + high / 2:.4g}h{count * box - 1:.5g}"
            drawn.append(
                element(
                    "path", class_="cells", d=line, stroke_width=high, stroke_dasharray=f"{box - gap:.4g} {gap:.4g}"
                )
            )
        place += count
    return drawn


def _window(record: TapAddresses, tap: Tap, x: float, top: float, box: float, high: float) -> str:
    """What one instruction reads: neighbouring pixels as one box, every second one (stride 2) as a box each."""
    step, wide = _step(tap), box + 1
    starts = range(tap.column, tap.column + record.width * step, step)
    if step == 1:
        starts, wide = range(tap.column, tap.column + 1), record.width * box + 1
    return "".join(
        element("rect", x=x + start * box - 1, y=top - 1.5, width=wide, height=high, class_="window")
        for start in starts
    )


def _step(tap: Tap) -> int:
    """Pixels from one that is read to the next."""
    return max(1, _field(tap, 2) * 16 // PIXEL_BYTES)


def _row(record: TapAddresses, tap: Tap, y: float) -> list[str]:
    """The tap's row of shared memory, wide enough for numbers, and what of it becomes the bytes below."""
    rows = record.stored if record.shared else ()
    row = next((row for row in rows if row.buffer == tap.buffer), StoredRow(tap.buffer, tap.input_row, tap.pixels))
    columns = _reached(record, tap, row)
    box = _row_box(record, tap)
    drawn = _cells(columns, LEFT, y, box, LINE - 3)
    drawn.append(_window(record, tap, LEFT, y, box, LINE))
    if box > 14:
        drawn += [text(LEFT + (i + 0.5) * box - 0.5, y + 14, column, "t m")
                  for i, column in enumerate(columns) if column >= 0]  # fmt: skip
    first = LEFT + tap.column * box
    left, right, bottom = CORE_X, CORE_X + 2 * PIECE_BYTES * CELL + _gap(tap), y + 66
    zoom = f"M{first:.4g} {y + LINE:.4g}L{left:.4g} {bottom:.4g}H{right:.4g}L{first + box - 1:.4g} {y + LINE:.4g}"
    return [*drawn, element("path", class_="zoom", d=zoom)]


def _row_box(record: TapAddresses, tap: Tap) -> float:
    """Width of a pixel in the tap's row, as wide as the widest row of all taps allows."""
    reach = max(one.column + (record.width - 1) * _step(one) + 1 for one in record.taps)
    longest = max(reach, *(len(row.columns) for row in record.stored))
    return min(34.0, (WIDE - 2 * LEFT) / (longest + 0.5))


def _core_matrices(tap: Tap, y: float) -> list[str]:
    """The first pixel of the window, 256 bytes in the order of their addresses: 8 images, 2 pieces of 16 channels.

    Unpacking puts low nibbles, the even channels, into the first piece, and high nibbles into the second.
    """
    layout = SharedOperand(IMAGES, 32 if tap.descriptor >> SWIZZLE_BIT else 0, _field(tap, 1) * 16, _field(tap, 2) * 16)
    wide, high, line = PIECE_BYTES * CELL, IMAGES * CELL * 1.5, CELL * 1.5
    gap = _gap(tap)
    drawn = [text(LEFT, y + 10, "image", "s")]
    for image in range(IMAGES):
        drawn.append(text(CORE_X - 6, y + 26 + image * line, image, "n e"))
        for half in range(2):
            place = layout.address(image, half * PIECE_BYTES) // PIECE_BYTES
            row, number = divmod(place, 2) if layout.swizzle else (place % IMAGES, place // IMAGES)
            x = CORE_X + number * (wide + gap)
            drawn.append(element("rect", x=x, y=y + 16 + row * line, width=wide, height=line, class_=f"core c{half}"))
    for number in range(2):
        x = CORE_X + number * (wide + gap)
        lines = "".join(f"M{x + i * CELL:.4g} {y + 16:.4g}v{high:.4g}" for i in range(PIECE_BYTES + 1))
        lines += "".join(f"M{x:.4g} {y + 16 + i * line:.4g}h{wide:.4g}" for i in range(IMAGES + 1))
        drawn += [element("path", class_="grid", d=lines),
                  element("rect", x=x, y=y, width=10, height=10, class_=f"core c{number}"),
                  text(x + 14, y + 10, ("channels 0, 2 .. 30", "channels 1, 3 .. 31")[number], "s")]  # fmt: skip
        if not layout.swizzle:
            start = tap.start + number * layout.leading
            drawn.append(text(x, y + 30 + high, f"bytes {start:,} to {start + 127:,}", "s"))
    if layout.swizzle:
        drawn.append(text(CORE_X, y + 30 + high, f"bytes {tap.start:,} to {tap.start + 255:,}, halves exchanged", "s"))
        said = ("Its first pixel: 8 rows of 32 bytes; with the swizzle,", "neighbouring rows meet other banks.")
    else:
        said = ("Its first pixel: two core matrices, 8 rows of 16 bytes,", "which is how wgmma reads shared memory.")
    return [*drawn, *(text(LEFT, y + 50 + high + 15 * i, words, "s") for i, words in enumerate(said))]


def _gap(tap: Tap) -> int:
    """The gap between the two core matrices; swizzled rows are contiguous."""
    return 0 if tap.descriptor >> SWIZZLE_BIT else 24


def _field(tap: Tap, number: int) -> int:
    return tap.descriptor >> FIELDS[number][1] & (1 << FIELD_BITS) - 1


def _descriptor(tap: Tap, y: float) -> list[str]:
    """The 64 bits, highest to the left, with each field's value in bytes."""
    bit, swizzle = BITS_W / 64, tap.descriptor >> SWIZZLE_BIT

    def at(first: int, bits: int) -> float:
        return BITS_X + BITS_W - (first + bits) * bit

    drawn = [text(BITS_X, y + 10, f"Its descriptor, 64 bits: {tap.descriptor:#018x}", "t")]
    drawn.append(element("rect", x=BITS_X, y=y + 18, width=BITS_W, height=20, class_="bits"))
    for number, (name, first, meaning) in enumerate(FIELDS):
        value = _field(tap, number)
        x, wide = at(first, FIELD_BITS), FIELD_BITS * bit
        drawn.append(element("rect", x=x, y=y + 18, width=wide, height=20, class_=f"field f{number}"))
        drawn.append(text(x + wide / 2, y + 32, f"{value:,}", "n m v"))
        line = y + 58 + number * 34
        drawn.append(element("rect", x=BITS_X, y=line - 10, width=12, height=12, class_=f"field f{number}"))
        if swizzle and name == "half":
            meaning = "without a meaning in a swizzled layout"
        if name == "pixel" and _step(tap) > 1:
            meaning = f"from one pixel that is read to the next: the stride of {_step(tap)}"
        said = f"{name}: {value:,} x 16 = {value * 16:,} bytes (bits {first} to {first + FIELD_BITS - 1})"
        drawn += [text(BITS_X + 18, line, said, "t"), text(BITS_X + 18, line + 14, meaning, "s")]
    drawn.append(text(BITS_X + 18, y + 58 + 3 * 34, f"swizzle: {swizzle} (bits 62 and 63)", "t"))
    return drawn
