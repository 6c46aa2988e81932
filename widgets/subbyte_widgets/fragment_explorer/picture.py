"""The picture of an instruction's fragments: its three matrices, the registers of a warp, and one register in detail.

Every rectangle of a matrix is one 32-bit register of one lane and says so in its attribute ``data-w``: operand, lane,
register, row and column of its first element, number of elements. The browser works from these attributes; nothing
about an instruction is known outside the record. For a warpgroup, the rows of A and C that one warp holds are drawn:
the other warps hold the rows above and below in the same way. Its lanes are numbered on from warp to warp; its B is in
shared memory, where a rectangle is a piece of 16 bytes and has its number in place of the lane's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from subbyte.device.fragments import LANES, Fragments
from subbyte.device.shared_operand import PIECE_BYTES
from subbyte_widgets.svg import element, text

WIDTH = 760.0
LEFT, RIGHT_X, TOP = 44.0, 482.0, 22.0
A_W, CELL_W, CELL_H = 400.0, 33.0, 15.5
WARP_ROWS = 16
DETAIL_X, DETAIL_Y, DETAIL_W = 18.0, 156.0, 400.0
PACKED_H = 56.0
LANE_W, LANE_H, LANE_X, LANE_Y = 17.0, 13.0, 32.0, 62.0
BETWEEN, OPERANDS = 14.0, 6.0
"""Pixels between the two pictures where they are one, and between the registers of two operands."""
NAMES = {"a": "A", "b": "B", "c": "C and D"}
MARKS = {"native": "\u25cf", "emulated": "\u25d0", "absent": "\u25cb"}
TIMES = "\u00d7"


@dataclass(frozen=True)
class Word:
    """One register of one lane: the run of matrix elements it holds."""

    operand: str
    lane: int
    register: int
    row: int
    column: int
    count: int


@dataclass(frozen=True)
class Chosen:
    """The selected element."""

    operand: str
    row: int
    column: int


def words(record: Fragments, operand: str, warp: int = 0) -> list[Word]:
    """The registers of an operand, lane by lane: those of one warp of a warpgroup; for B all pieces."""
    every = list(enumerate(record.map(operand)))
    held = every if record.warps == 1 or operand == "b" else every[LANES * warp : LANES * (warp + 1)]
    return [
        Word(operand, lane, register, *elements[0], len(elements))
        for lane, registers in held
        for register, elements in enumerate(registers)
    ]


def fragments_svg(record: Fragments, chosen: Chosen | None = None) -> str:
    """One picture of an instruction; with ``chosen``, its lane and register are marked and shown in detail.

    For a warpgroup the chosen element's warp is drawn, else the first; the browser switches to another.
    """
    (matrices, wide, high), (lanes, beside, long) = _matrices(record, chosen), _registers(record, chosen)
    beside_them = element("g", lanes, transform=f"translate({wide + BETWEEN:.0f} 0)")
    parts, size = [*matrices, beside_them], (wide + BETWEEN + beside, max(high, long))
    return _svg(record, parts, *size, class_="sb-frag-svg" + (" chosen" if chosen else ""))


def fragments_html(record: Fragments) -> str:
    """The same without a selection, in two pictures: side by side in a wide page, else one below the other."""
    pictures = [_svg(record, *made) for made in (_matrices(record, None), _registers(record, None))]
    warps = record.warps if record.warps > 1 else None
    return element("div", pictures, class_="sb-frag-svg", data_bits=record.bits, data_warps=warps)


def _svg(record: Fragments, parts: str | list[str], width: float, height: float, class_: str | None = None) -> str:
    return element(
        "svg",
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        preserveAspectRatio="xMinYMin meet",
        class_=class_,
        role="group",
        aria_label=record.title(),
        data_bits=record.bits if class_ else None,
        data_warps=record.warps if class_ and record.warps > 1 else None,
    )


def _matrices(record: Fragments, chosen: Chosen | None) -> tuple[list[str], float, float]:
    """What the instruction is, its matrices and the register of ``chosen`` in detail; their width and height."""
    per = len(record.b[0][0])
    rows_of_b = record.k // per
    b_height = 22.0 if rows_of_b > 4 else 42.0
    packed = bool(record.shared) and record.bits == 8
    middle = TOP + 22 + rows_of_b * b_height + 46 + 86 * bool(record.shared) + PACKED_H * packed
    high, warp = CELL_H, _warp(record, chosen)
    places = {
        "a": (LEFT, middle, A_W / record.k, high),
        "b": (RIGHT_X, TOP + 22, CELL_W, b_height / per),
        "c": (RIGHT_X, middle, CELL_W, high),
    }
    lane = record.owner(chosen.operand, chosen.row, chosen.column)[0] if chosen else -1
    parts = [
        text(18, 20, record.name, "h"),
        text(18, 40, f"D = A {TIMES} B + C: {record.m} {TIMES} {record.k} by {record.k} {TIMES} {record.n}", "s"),
        _support(record),
        text(DETAIL_X, DETAIL_Y + 42, "Number = lane, colour = register: 0 blue, 1 orange, 2 green, 3 pink.", "s"),
        text(DETAIL_X, DETAIL_Y + 57, _rectangles(record), "s"),
        _packed_word() if packed else "",
        *(_matrix(record, p, places[p], lane, chosen, warp) for p in "abc"),
        element("g", _detail(record, chosen) if chosen else "", class_="detail"),
    ]
    return parts, WIDTH, middle + record.m // record.warps * high + 10


def _packed_word() -> str:
    """How four bytes of operand A of a warpgroup are stored: in the low nibbles of a word of int4 weights."""
    wide, y, parts = DETAIL_W / 8, DETAIL_Y + 84, []
    for byte in range(4):
        for high in range(2):
            x = DETAIL_X + DETAIL_W - (2 * byte + high + 1) * wide
            name = "k" + f" + {byte}" * bool(byte)
            parts.append(
                element("rect", x=x + 1, y=y, width=wide - 2, height=20, rx=2, class_="nibble" + " high" * high)
            )
            parts.append(text(x + wide / 2, y + 14, name, "m"))
    words = ("Int4 weights keep four bytes of A, from column k on, in the low nibbles of a word:",
             "its high nibbles (dashed) are the same columns of the next instruction.")  # fmt: skip
    lines = [text(DETAIL_X, y - 7, words[0], "s"), text(DETAIL_X, y + 34, words[1], "s")]
    return element("g", [*lines, *parts], class_="packed")


def _rectangles(record: Fragments) -> str:
    if record.shared:
        return f"A rectangle is one register; in B {PIECE_BYTES} bytes of shared memory, by their place."
    return "A rectangle is one register with all the elements it holds."


def _warp(record: Fragments, chosen: Chosen | None) -> int:
    """The warp of a warpgroup that is drawn."""
    if chosen is None or record.warps == 1 or chosen.operand == "b":
        return 0
    return record.owner(chosen.operand, chosen.row, chosen.column)[0] // LANES


def rows_of(warp: int) -> str:
    """The rows of A and C that a warp of a warpgroup holds."""
    return f"warp {warp}: rows {WARP_ROWS * warp} to {WARP_ROWS * (warp + 1) - 1}"


def in_words(record: Fragments, chosen: Chosen) -> str:
    """The selected element in one sentence."""
    lane, register, index = record.owner(chosen.operand, chosen.row, chosen.column)
    bits = 32 if chosen.operand in "cd" else record.bits
    where = f"bits {index * bits} to {index * bits + bits - 1} of register {chosen.operand}{register}"
    where = f"bit {index} of register {chosen.operand}{register}" if bits == 1 else where
    where = f"register {chosen.operand}{register}" if bits == 32 else where
    holder = f"lane {lane}" if record.warps == 1 else f"lane {lane % LANES} of warp {lane // LANES}"
    if record.shared and chosen.operand == "b":
        bytes_ = [
            (layout.swizzle, record.address(chosen.row, chosen.column, layout.swizzle)) for layout in record.shared
        ]
        holder = f"shared memory: byte {bytes_[0][1]} of the operand without swizzle"
        where = ", ".join(f"{byte} with {swizzle}-byte swizzle" for swizzle, byte in bytes_[1:])
    status = ", ".join(
        f"{kind} on {' '.join(support.arch for support in group)}"
        for kind, group in groupby(sorted(record.support, key=lambda s: s.status, reverse=True), lambda s: s.status)
    )
    return (
        f"{record.name}: {chosen.operand.upper()}[{chosen.row},{chosen.column}] lies in {holder}, "
        f"{where}. The instruction is {status}."
    )


def _support(record: Fragments) -> str:
    """Where the instruction is native, emulated or absent: one line for each operation."""
    parts = []
    groups = groupby(record.support, lambda support: support.operation)
    for line, (operation, group) in enumerate(groups):
        y = 70.0 + 34 * line
        name = "" if operation == "mma" else f"{operation}:"
        parts.append(text(18, y - 3, name, "s")) if name else None
        for i, support in enumerate(group):
            x = (18 if not name else 84) + i * (82 if not name else 68)
            parts.append(text(x, y - 9, support.arch, "t"))
            parts.append(text(x, y + 6, f"{MARKS[support.status]} {support.status}", f"s {support.status}"))
    return element("g", parts, class_="support")


def _matrix(
    record: Fragments, operand: str, place: tuple[float, float, float, float], lane: int, chosen: Chosen | None,
    warp: int,
) -> str:  # fmt: skip
    x0, y0, wide, high = place
    rows, columns = record.shape(operand)
    first, heads = 0, [text(x0, y0 - 22, f"{NAMES[operand]}  {rows} {TIMES} {columns}", "h")]
    if record.warps > 1 and operand != "b":
        rows, first = WARP_ROWS, WARP_ROWS * warp
        heads.append(text(x0 + columns * wide, y0 - 22, rows_of(warp), "s e rows"))
    shown = [_word(record, word, place, lane, chosen, first) for word in words(record, operand, warp)]
    width, height = columns * wide, rows * high
    ticks_x = [(j, x0 + (j + 0.5) * wide) for j in _ticks(columns, wide, 30.0 if columns > 100 else 18.0)]
    ticks_y = [(i, y0 + (i + 0.5) * high) for i in _ticks(rows, high, 13.0)]
    heads += [text(x, y0 - 6, j, "n m") for j, x in ticks_x]
    heads += [text(x0 - 6, y + 4, first + i, "n e row") for i, y in ticks_y]
    lines = "".join(f"M{x0 + j * wide:.1f} {y0:.1f}v{height:.1f}" for j in range(1, columns) if 4 < wide < 20)
    lines += "".join(f"M{x0:.1f} {y0 + i * high:.1f}h{width:.1f}" for i in range(1, rows) if 2.5 < high < 10)
    marker = _marker(place, chosen if chosen and chosen.operand == operand else None, first)
    ring = element("rect", class_="ring", x=x0 - 4, y=y0 - 4, width=width + 8, height=height + 8, rx=5)
    return element(
        "g",
        [*heads, ring, *shown, element("path", d=lines, class_="grid") if lines else "", marker],
        class_="panel " + operand,
        tabindex=0,
        data_lm_suppress_shortcuts="true",
        role="application",
        aria_label=f"Matrix {NAMES[operand]}: arrow keys move the selected element",
        data_x=x0, data_y=y0, data_w=round(wide, 4), data_h=round(high, 4), data_rows=rows, data_columns=columns,
    )  # fmt: skip


def _ticks(count: int, size: float, room: float) -> range:
    step = next(step for step in (1, 2, 4, 8, 16, 32, 64) if step * size >= room or step >= count)
    return range(0, count, step)


def _marker(place: tuple[float, float, float, float], chosen: Chosen | None, first: int) -> str:
    x0, y0, wide, high = place
    if chosen is None:
        return element("rect", class_="at", width=0, height=0)
    x, y = x0 + chosen.column * wide, y0 + (chosen.row - first) * high
    return element("rect", class_="at", x=x - 1, y=y - 1, width=wide + 2, height=high + 2, rx=2)


def _word(
    record: Fragments,
    word: Word,
    place: tuple[float, float, float, float],
    lane: int,
    chosen: Chosen | None,
    first: int,
) -> str:
    x0, y0, wide, high = place
    along = word.count if word.operand == "a" else 1
    down = word.count if word.operand == "b" else 1
    x, y = x0 + word.column * wide, y0 + (word.row - first) * high
    w, h = along * wide, down * high
    holds = chosen is not None and record.owner(chosen.operand, chosen.row, chosen.column)[:2] == (
        word.lane,
        word.register,
    )
    piece = bool(record.shared) and word.operand == "b"
    same = chosen is not None and piece == (bool(record.shared) and chosen.operand == "b")
    class_ = f"w k{word.register}" + " mine" * (same and word.lane == lane)
    class_ += " here" * (holds and chosen is not None and chosen.operand == word.operand)
    label = element(
        "text", str(word.lane if piece else word.lane % LANES), x=round(x + w / 2, 1), y=round(y + h / 2 + 4, 1)
    )
    what = f"{word.operand} {word.lane} {word.register} {word.row} {word.column} {word.count}"
    return element("g", [element("path", d=_box(x, y, w, h)), label], class_=class_, data_w=what)


def _box(x: float, y: float, w: float, h: float) -> str:
    """A rectangle with a small gap around it, in few characters."""
    return f"M{x + 0.8:.4g} {y + 0.8:.4g}h{w - 1.6:.4g}v{h - 1.6:.4g}h{1.6 - w:.4g}z"


def _registers(record: Fragments, chosen: Chosen | None) -> tuple[str, float, float]:
    """The registers of the 32 lanes of a warp, a row each, and the size of their picture."""
    registers = [(p, r) for p in ("ac" if record.shared else "abc") for r in range(len(record.map(p)[0]))]
    holder = record.owner(chosen.operand, chosen.row, chosen.column) if chosen else (-1, -1, -1)
    piece = bool(record.shared) and chosen is not None and chosen.operand == "b"
    warp, lane = (0, -1) if piece or chosen is None else divmod(holder[0], LANES)
    whose = f"warp {warp}" if record.warps > 1 else "the warp"
    parts = [text(LANE_X, 20, f"Registers of {whose}", "h warp"), text(LANE_X, 38, "a row for each lane", "s")]
    parts += [text(LANE_X - 7, LANE_Y + i * LANE_H + 11, i, "n e") for i in range(LANES)]
    x = LANE_X
    for number, (operand, register) in enumerate(registers):
        x += OPERANDS if number and operand != registers[number - 1][0] else 0
        parts.append(text(x + LANE_W / 2, LANE_Y - 6, f"{operand}{register}", "t m"))
        for i in range(LANES):
            here = chosen is not None and (operand, register, i) == (chosen.operand, holder[1], holder[0] % LANES)
            class_ = f"q k{register}" + " mine" * (i == lane) + " here" * here
            d = _box(x, LANE_Y + i * LANE_H, LANE_W, LANE_H)
            parts.append(element("path", class_=class_, d=d, data_w=f"{operand} {i} {register}"))
        x += LANE_W
    wide, high = x - LANE_X, LANES * LANE_H
    ring = element("rect", class_="ring", x=LANE_X - 4, y=LANE_Y - 4, width=wide + 8, height=high + 8, rx=5)
    panel = element(
        "g", [ring, *parts], class_="panel lanes", tabindex=0, data_lm_suppress_shortcuts="true", role="application",
        aria_label="Registers: up and down arrow keys change the lane, left and right the register",
    )  # fmt: skip
    return panel, max(x, LANE_X + 170) + 6, LANE_Y + high + 8


def _detail(record: Fragments, chosen: Chosen) -> list[str]:
    """The 32 bits of the register that holds the selected element, lowest bits to the right."""
    lane, register, index = record.owner(chosen.operand, chosen.row, chosen.column)
    held = record.map(chosen.operand)[lane][register]
    wide = DETAIL_W / len(held)
    piece = bool(record.shared) and chosen.operand == "b"
    whose = f"Lane {lane % LANES}" if record.warps == 1 else f"Warp {lane // LANES}, lane {lane % LANES}"
    title = f"{whose}, register {chosen.operand}{register}"
    title = f"Bytes {lane * PIECE_BYTES} to {(lane + 1) * PIECE_BYTES - 1} of shared memory" if piece else title
    ends = (f"byte {PIECE_BYTES - 1}", "byte 0") if piece else ("bit 31", "bit 0")
    parts = [text(DETAIL_X, DETAIL_Y - 22, title, "h"), text(DETAIL_X, DETAIL_Y - 5, ends[0], "n")]
    parts.append(text(DETAIL_X + DETAIL_W, DETAIL_Y - 5, ends[1], "n e"))
    for i, (row, column) in enumerate(held):
        x = DETAIL_X + DETAIL_W - (i + 1) * wide
        class_ = f"bits k{register}" + " here" * (i == index)
        parts.append(element("rect", x=x + 1, y=DETAIL_Y, width=wide - 2, height=26, rx=2, class_=class_))
        if wide >= 34:
            name = f"{chosen.operand.upper()}[{row},{column}]" if wide > 64 else f"{row},{column}"
            parts.append(text(x + wide / 2, DETAIL_Y + 17, name, "m b"))
    return parts
