"""The picture of :class:`~subbyte.sparse.TileSteps`: A, B and the accumulators arranged as an outer product, beside
them the condensed vectors and one OHMMA, below them all OHMMA of all k.

A *place* is one OHMMA of one k, issued or skipped; ``step`` determines how much is visible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from subbyte.sparse.stepping import OhmmaSlot, TileSteps
from subbyte_widgets._revealed import Place, bits_row, marks_row, part, states_row, words_row
from subbyte_widgets.bitmap_stepper.words import place_words, why_short
from subbyte_widgets.svg import element, text

WIDTH, LEFT, TOP = 760.0, 24.0, 62.0
SPAN, GAP = 306.0, 30.0
"""Side of the drawing of A, B and the accumulators together, and the gap between them."""
RIGHT, END = 410.0, 746.0
"""Where the condensed vectors and the OHMMA are drawn."""
LEVEL1, LEVEL2, CONDENSED, POPC, OHMMA, BOHMMA, GATHER, ADD, SCATTER, WHOLE = range(1, 11)
"""Steps."""
MAP = TOP + SPAN + 42
HEIGHT = MAP + 80
STATES = {None: "i", "a_tile_empty": "t", "b_tile_empty": "t", "a_vector_empty": "v", "b_vector_empty": "v",
          "a_condensed": "c", "b_condensed": "c"}  # fmt: skip
"""Letters for issued OHMMA and for the reasons to skip one."""
LEGEND = (("i", "issued"), ("t", "level 1: tile empty"), ("v", "level 2: k empty"), ("c", "condensed: group empty"))


Box = tuple[float, float, float, float]
"""x, y, width, height."""


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of its parts."""

    record: TileSteps

    @property
    def digits(self) -> bool:
        """Whether there is room for every number."""
        return self.record.geometry.name == "toy"

    @property
    def n(self) -> int:
        """Positions of a warp tile."""
        return self.record.geometry.positions

    @property
    def depth(self) -> int:
        """Values of k."""
        return self.record.geometry.depth

    @property
    def cell(self) -> float:
        """Side of a matrix's cell."""
        return (SPAN - GAP) / (self.n + self.depth)

    @property
    def corner(self) -> tuple[float, float]:
        """Upper left of the accumulators."""
        side = self.depth * self.cell + GAP
        return LEFT + side, TOP + side

    @cached_property
    def per_k(self) -> int:
        """OHMMA of a dense k."""
        return self.record.dense // self.depth

    @cached_property
    def start(self) -> int:
        """The OHMMA to start with: among those in a k that also has skipped ones, the one that gathers most from
        earlier sums."""
        slots, per = self.record.slots, self.per_k

        def gathered(number: int) -> tuple[bool, int]:
            mates = slots[number - number % per : number - number % per + per]
            mixed = slots[number].skipped is None and any(one.skipped for one in mates)
            return mixed, sum(value != 0 for line in slots[number].gathered for value in line)

        return max(range(len(slots)), key=lambda number: (gathered(number), -number))


def places(drawing: Drawing) -> list[Place]:
    """The contents of the rows for every OHMMA."""
    sums: dict[int, int] = {}
    found = []
    for number, slot in enumerate(drawing.record.slots):
        before = dict(sums)
        for row, line in zip(slot.rows, slot.sums, strict=True):
            sums |= {drawing.n * row + column: value for column, value in zip(slot.columns, line, strict=True)}
        rows = _vectors(drawing, slot) | _block(drawing, slot) | _accumulators(drawing, slot, before, sums)
        rows["here"] = "".join(str(int(at == number)) for at in range(drawing.record.dense))
        found.append(Place(rows, place_words(drawing.record, slot)))
    return found


def _vectors(drawing: Drawing, slot: OhmmaSlot) -> dict[str, Sequence[str]]:
    """Level 2 of both sides, the condensed values, and which k it is."""
    one, k = drawing.record.geometry, slot.k
    rows: dict[str, Sequence[str]] = {"k": "".join(str(int(at == k)) for at in range(drawing.depth)) * 2}
    groups = {"a": (one.rows, slot.group[0]), "b": (one.columns, slot.group[1])}
    for side, (size, own) in groups.items():
        vector = drawing.record.vector(side, k)
        kept = [value for value in vector if value]
        rows[f"{side}2"] = "".join(str(int(value != 0)) for value in vector)
        letters = ["0" if at >= len(kept) else "2" if at // size == own else "1" for at in range(drawing.n)]
        rows[f"{side}c"] = "".join(letters)
        rows[f"{side}v"] = [str(value) for value in kept] if drawing.digits else []
        full = -(-len(kept) // size)
        rows[f"{side}n"] = [f"{side.upper()}: {len(kept)} values, {full} of {drawing.n // size} groups of {size}"]
    return rows


def _block(drawing: Drawing, slot: OhmmaSlot) -> dict[str, Sequence[str]]:
    """The numbers of the OHMMA; for a skipped one, why it has none."""
    one = drawing.record.geometry
    name = f"OHMMA {slot.group[0] * one.groups[1] + slot.group[1]} of k = {slot.k}"
    rows: dict[str, Sequence[str]] = {
        "name": [name if slot.skipped is None else f"{name}: skipped"],
        "why": [why_short(drawing.record, slot)] if slot.skipped else [],
        "ha": [str(value) for value in slot.a], "hb": [str(value) for value in slot.b],
        "has": "1" * len(slot.a) + "0" * (one.rows - len(slot.a)),
        "hbs": "1" * len(slot.b) + "0" * (one.columns - len(slot.b)),
        "frame": "g" * (one.rows * one.columns) if slot.skipped else "".join(
            "p" if i < len(slot.a) and j < len(slot.b) else "e" for i in range(one.rows) for j in range(one.columns)
        ),
    }  # fmt: skip
    for key, grid in (("products", slot.products), ("gathered", slot.gathered), ("sums", slot.sums)):
        lines = [[str(value) for value in line] + [""] * (one.columns - len(line)) for line in grid]
        rows[key] = [word for line in lines for word in line]
    return rows


def _accumulators(
    drawing: Drawing, slot: OhmmaSlot, before: Mapping[int, int], after: Mapping[int, int]
) -> dict[str, Sequence[str]]:
    """A digit for each accumulator: 1 if something was added before, 2 in the bitmap of BOHMMA, 4 for this OHMMA."""
    n = drawing.n
    states = bytearray(b"0" * n * n)
    for at in before:
        states[at] += 1
    rows, columns = ([at for at, value in enumerate(drawing.record.vector(side, slot.k)) if value] for side in "ab")
    for value, some, others in ((2, rows, columns), (4, slot.rows, slot.columns)):
        for row in some:
            for column in others:
                states[n * row + column] += value
    found: dict[str, Sequence[str]] = {"c": states.decode()}
    if drawing.digits:
        found["before"] = [str(before.get(at, "")) for at in range(n * n)]
        found["after"] = [str(after.get(at, "")) for at in range(n * n)]
    return found


def stepper_svg(drawing: Drawing, place: Place, step: int) -> str:
    """The picture at a place after a step."""
    record = drawing.record
    one = record.geometry
    what = "the toy: every size a quarter of the unit's or less" if drawing.digits else "the proposed unit's own sizes"
    content = [
        text(LEFT, 22, f"A {drawing.n} x {drawing.depth} times B {drawing.depth} x {drawing.n}, zeros skipped", "h"),
        text(LEFT, 40, f"{what}; OHMMA {one.rows} x {one.columns}; {record.source}", "s"),
        *_matrices(drawing), *_current(drawing, place), *_levels(drawing, place, step),
        *_accumulator_cells(drawing, place, step), *_condensed(drawing, place, step), *_ohmma(drawing, place, step),
        *_map(drawing, place),
    ]  # fmt: skip
    return element(
        "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        class_="sb-step-svg sb-bitmap-svg", data_step=step, role="img", aria_label=record.title(),
    )  # fmt: skip


def _cells(at: tuple[float, float], rows: int, columns: int, size: float) -> Iterator[Box]:
    side = size - (1.5 if size > 12 else 1)
    for row in range(rows):
        for column in range(columns):
            yield at[0] + column * size, at[1] + row * size, side, side


def _middles(at: tuple[float, float], rows: int, columns: int, size: tuple[float, float]) -> list[tuple[float, float]]:
    wide, high = size
    return [
        (at[0] + (j + 0.5) * wide - 0.7, at[1] + (i + 0.5) * high + 3.8) for i in range(rows) for j in range(columns)
    ]


def _matrices(drawing: Drawing) -> list[str]:
    """A on the left, B on top; non-zeros filled, in the toy with their values."""
    x, y = drawing.corner
    drawn = []
    for name, at, grid in (("a", (LEFT, y), drawing.record.a), ("b", (x, TOP), drawing.record.b)):
        size = len(grid), len(grid[0])
        values = [value for row in grid for value in row]
        cells = [
            element("rect", class_=f"n{int(value != 0)}", x=round(left, 1), y=round(top, 1), width=wide, height=wide)
            for (left, top, wide, _), value in zip(_cells(at, *size, drawing.cell), values, strict=True)
        ]
        if drawing.digits:
            middles = _middles(at, *size, (drawing.cell, drawing.cell))
            cells += [text(*middle, value, "m") for middle, value in zip(middles, values, strict=True) if value]
        drawn.append(element("g", cells, class_=f"x{name}"))
    return [*drawn, text(LEFT, y + drawing.n * drawing.cell + 15, "A: columns are k", "s"),
            text(x, TOP - 7, "B: rows are k", "s"),
            text(x, y + drawing.n * drawing.cell + 15, "accumulators", "s")]  # fmt: skip


def _current(drawing: Drawing, place: Place) -> list[str]:
    """Outlines of the k of the place: columns of A, then rows of B."""
    (x, y), size, long = drawing.corner, drawing.cell, drawing.n * drawing.cell
    cells = [
        (
            "rect",
            "at",
            {
                "x": LEFT + k * size - 1,
                "y": y - 1,
                "width": size + 0.5,
                "height": long + 0.5,
                "data_go": k * drawing.per_k,
            },
        )
        for k in range(drawing.depth)
    ]
    cells += [("rect", "at", {"x": x - 1, "y": TOP + k * size - 1, "width": long + 0.5, "height": size + 0.5,
                              "data_go": k * drawing.per_k}) for k in range(drawing.depth)]  # fmt: skip
    return [marks_row("k", cells, place.rows["k"])]


def _levels(drawing: Drawing, place: Place, step: int) -> list[str]:
    """Level 1 beside each tile with the empty ones crossed out, level 2 of the k between matrices and accumulators."""
    (x, y), size, long = drawing.corner, drawing.cell, drawing.n * drawing.cell
    wide = drawing.record.geometry.slice * size
    bits: list[str] = [text(LEFT, y - 28, "level 1", "s"), text(x - 44, TOP + 10, "level 1", "s e")]
    for side in "ab":
        for number, live in enumerate(drawing.record.level1(side)):
            left, top = (LEFT + number * wide, y - 23) if side == "a" else (x - 40, TOP + number * wide)
            box = (wide - 2, 16.0) if side == "a" else (16.0, wide - 2)
            bits.append(element("rect", class_=f"bit l{int(live)}", x=left, y=top, width=box[0], height=box[1], rx=2))
            bits.append(text(left + box[0] / 2, top + box[1] / 2 + 4, int(live), "m"))
            if not live:
                dead = (left - 1, y - 1, wide, long) if side == "a" else (x - 1, top - 1, long, wide)
                bits.append(element("rect", class_="dead", x=dead[0], y=dead[1], width=dead[2], height=dead[3]))
    strip = min(size, 17.0)
    words: list[str] = []
    for side, at, shape in (("a", (x - GAP / 2 - strip / 2, y), (drawing.n, 1)),
                            ("b", (x, y - GAP / 2 - strip / 2), (1, drawing.n))):  # fmt: skip
        if drawing.digits:
            corners = [
                (at[0] + j * size * (side == "b"), at[1] + i * size) for i in range(shape[0]) for j in range(shape[1])
            ]
            words.append(element("g", bits_row(f"{side}2", corners, (strip, size if side == "a" else strip),
                                               place.rows[f"{side}2"]), class_=f"x{side}"))  # fmt: skip
        else:
            row = states_row(f"{side}2", _cells(at, *shape, size), str(place.rows[f"{side}2"]))
            words.append(element("g", row, class_=f"x{side} bits"))
    return [part(bits, step, LEVEL1), part(words, step, LEVEL2)]


def _accumulator_cells(drawing: Drawing, place: Place, step: int) -> list[str]:
    size, at = drawing.cell, drawing.corner
    cells = element("g", states_row("c", _cells(at, drawing.n, drawing.n, size), str(place.rows["c"])), class_="sums")
    if not drawing.digits:
        return [cells]
    middles = _middles(at, drawing.n, drawing.n, (size, size))
    before = words_row("before", middles, place.rows["before"])
    after = words_row("after", middles, place.rows["after"])
    return [cells, part([before], step, 0, ADD), part([after], step, SCATTER)]


def _condensed(drawing: Drawing, place: Place, step: int) -> list[str]:
    """Both vectors of the k without their zeros, group by group."""
    one, wide = drawing.record.geometry, (END - RIGHT) / drawing.n
    drawn = [text(RIGHT, TOP - 7, "condensed vectors of this k", "s")]
    for line, (side, size) in enumerate((("a", one.rows), ("b", one.columns))):
        y = TOP + 2 + 42 * line
        cells = [(RIGHT + i * wide + 1.5 * (i // size), y, wide - 1.5, 20.0) for i in range(drawing.n)]
        row = [states_row(f"{side}c", cells, str(place.rows[f"{side}c"]))]
        if drawing.digits:
            row.append(words_row(f"{side}v", [(x + w / 2, y + 14.5) for x, _, w, _ in cells], place.rows[f"{side}v"]))
        drawn.append(element("g", row, class_=f"x{side} packed"))
        drawn.append(words_row(f"{side}n", [(RIGHT, y + 35)], place.rows[f"{side}n"], "t"))
    return [part(drawn, step, CONDENSED)]


def _ohmma(drawing: Drawing, place: Place, step: int) -> list[str]:
    """One OHMMA: values of A down, of B across, and between them products, accumulators, sums.

    The toy has room for all three below each other.
    """
    one, y = drawing.record.geometry, TOP + 98
    wide, high = min((END - RIGHT) / (one.columns + 1), 52.0), 24.0 if drawing.digits else 19.5
    at = (RIGHT + wide, y + 32)
    frame = _grid(at, one.rows, one.columns, wide, high)
    heads = [words_row("why", [(at[0] + 8, at[1] + one.rows * high / 2 + 4)], place.rows["why"], "w"),
             element("g", states_row("frame", frame, str(place.rows["frame"])), class_="block")]  # fmt: skip
    for side, corner, size in (("a", (RIGHT, at[1]), (one.rows, 1)), ("b", (at[0], at[1] - 21), (1, one.columns))):
        boxes = _grid(corner, *size, wide, high if side == "a" else 20.0)
        row = [states_row(f"h{side}s", boxes, str(place.rows[f"h{side}s"])), _numbers(f"h{side}", boxes, place)]
        heads.append(element("g", row, class_=f"x{side} heads"))
    drawn = [part([words_row("name", [(RIGHT, y + 4)], place.rows["name"], "key"), *heads], step, OHMMA)]
    moments = (("products", "products", OHMMA, BOHMMA), ("gathered", "accumulators, gathered", GATHER, GATHER),
               ("sums", "sums: gathered + products", ADD, None))  # fmt: skip
    for number, (key, label, first, last) in enumerate(moments):
        below = 74 * number if drawing.digits else 0
        boxes = _grid((at[0], at[1] + below), one.rows, one.columns, wide, high)
        shown = [_numbers(key, boxes, place), text(END, y + 4 + below + 20 * (below > 0), label, "s e")]
        if below:
            shown.insert(0, element("g", states_row("frame", boxes, str(place.rows["frame"])), class_="block"))
        drawn.append(part(shown, step, first, None if drawing.digits else last))
    return drawn


def _grid(at: tuple[float, float], rows: int, columns: int, wide: float, high: float) -> list[Box]:
    return [(at[0] + j * wide, at[1] + i * high, wide - 1, high - 1) for i in range(rows) for j in range(columns)]


def _numbers(name: str, boxes: Sequence[Box], place: Place) -> str:
    """A word in the middle of each box."""
    return words_row(name, [(x + w / 2, y + h / 2 + 4.4) for x, y, w, h in boxes], place.rows[name])


def _map(drawing: Drawing, place: Place) -> list[str]:
    """All OHMMA: a small block for each k, groups of A down and of B across."""
    record, (down, across) = drawing.record, drawing.record.geometry.groups
    pitch = min(78.0, (END - LEFT) / drawing.depth)
    wide, high = (pitch - 9) / across, 11.0
    spots = [
        (LEFT + slot.k * pitch + slot.group[1] * wide, MAP + slot.group[0] * high, wide - 1.5, high - 1.5)
        for slot in record.slots
    ]
    cells = [
        element("rect", class_=f"slot {STATES[slot.skipped]}", x=x, y=y, width=w, height=h, data_go=number)
        for number, (slot, (x, y, w, h)) in enumerate(zip(record.slots, spots, strict=True))
    ]
    marks = marks_row("here", [("rect", "here", {"x": x - 1.5, "y": y - 1.5, "width": w + 3, "height": h + 3})
                               for x, y, w, h in spots], place.rows["here"])  # fmt: skip
    head = f"all {record.dense} OHMMA of a dense tile: {record.issued} run, {record.dense - record.issued} are skipped"
    drawn = [text(LEFT, MAP - 9, head, "key"), *cells, marks]
    drawn += [text(LEFT + k * pitch + (pitch - 9) / 2, MAP + down * high + 13, f"k {k}", "s m")
              for k in range(drawing.depth)]  # fmt: skip
    x = LEFT
    for letter, words in LEGEND:
        drawn.append(element("rect", class_=f"slot {letter}", x=x, y=HEIGHT - 16, width=14, height=10))
        drawn.append(text(x + 20, HEIGHT - 7, words, "s"))
        x += 48 + 6.6 * len(words)
    return drawn
