"""The picture of :class:`~subbyte.technique.composition.PlaneComposition`: planes of the activations as rows, those of
the weights as columns, the lane that has an output's counts, and their sum.

A *place* is one of 32 output channels. Every number comes from the record; ``step`` determines how much is visible.
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.technique.composition import Composed, PlaneComposition, Term
from subbyte_widgets._revealed import Place, marks_row, part, words_row
from subbyte_widgets.svg import element, text

WIDTH, LEFT, RIGHT, TOP = 760.0, 146.0, 742.0, 92.0
ROWS, LANES, ONES_PAIRS = 64, 32, 4
STEPS = 7
"""Instruction, rows, columns, registers, counts, factors, sum."""
AT_ROWS, AT_COLUMNS, AT_REGISTERS, AT_COUNTS, AT_FACTORS, AT_SUM = range(1, STEPS)
COLOURS = 4
TIMES = "\u00d7"


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of its parts."""

    record: PlaneComposition

    @property
    def high(self) -> float:
        """Height of a plane's 64 rows."""
        return min(64.0, 210 / self.record.planes)

    @property
    def lanes(self) -> float:
        """Where the lanes of the warp begin."""
        return TOP + self.record.planes * (self.high + 8) + 22

    @property
    def grid(self) -> float:
        """Where the counts begin."""
        return self.lanes + 62

    @property
    def line(self) -> float:
        """Height of a row of counts."""
        return 36.0 if self.record.sets <= 4 else 30.0

    @property
    def height(self) -> float:
        """Height of the picture."""
        return self.grid + 28 + self.record.sets * self.line + 34

    def y(self, plane: int) -> float:
        """Where the rows of a plane of the activations begin."""
        return TOP + plane * (self.high + 8)

    def row_y(self, plane: int) -> float:
        """Where the output's row of a plane is."""
        return self.y(plane) + (self.record.row + 0.5) / ROWS * self.high

    def x(self, column: float) -> float:
        """Where a column begins."""
        return LEFT + column / self.record.columns * (RIGHT - LEFT)

    @property
    def kinds(self) -> list[int]:
        """Weight planes for which an output has counts; -1 is the columns of ones."""
        return [term.weight_plane for term in self.record.outputs[0].terms if term.set == 0]

    def centre(self, kind: int) -> float:
        """The middle of a column of counts."""
        count = len(self.kinds)
        return LEFT + (self.kinds.index(kind) + 0.5) * (RIGHT - LEFT) / count


def places(drawing: Drawing) -> list[Place]:
    """The contents of the rows for each output channel."""
    return [_place(drawing, one) for one in drawing.record.outputs]


def _place(drawing: Drawing, one: Composed) -> Place:
    record = drawing.record
    rows: dict[str, list[str]] = {
        "lanes": [str(int(lane == one.lane)) for lane in range(LANES)],
        "columns": [str(int(column in {term.column for term in one.terms})) for column in _candidates(record)],
    }
    for term in one.terms:
        name = _name(term)
        rows[f"r{name}"] = [f"register {term.register}" if term.register >= 0 else "counted"]
        rows[f"c{name}"] = [f"{term.count:,}"]
        rows[f"f{name}"] = [f"{term.count:,} {TIMES} {term.factor}"]
    rows["constant"] = [f"{one.constant:,}"]
    rows["total"] = [f"{one.total:,}"]
    columns = [str(term.column) for term in one.terms if term.set == 0 and term.column >= 0]
    say = {
        "channel": str(one.channel),
        "lane": str(one.lane),
        "columns": " and ".join([*filter(None, [", ".join(columns[:-1])]), columns[-1]]),
        "sum": " ".join(
            f"{'-' if v < 0 else '+'} {abs(v):,}" for v in (term.count * term.factor for term in one.terms)
        ),
        "constant": f"{'-' if one.constant < 0 else '+'} {abs(one.constant):,}",
        "total": f"{one.total:,}",
    }
    say["sum"] = say["sum"].removeprefix("+ ")
    return Place(rows, say)


def _name(term: Term) -> str:
    return f"{term.set}_{'ones' if term.weight_plane < 0 else term.weight_plane}"


def _candidates(record: PlaneComposition) -> list[int]:
    """The columns in which some of the outputs have counts, from left to right."""
    return sorted({term.column for one in record.outputs for term in one.terms if term.column >= 0})


def composition_svg(drawing: Drawing, place: Place, step: int) -> str:
    """The picture of an output after a step."""
    record = drawing.record
    content = [
        text(24, 22, f"{record.instruction}: planes as rows and columns", "h"),
        text(24, 40, f"{record.workload.label}: image {record.batch}, output pixel {record.at}", "s"),
        *_bands(drawing),
        *_planes(drawing, step),
        *_crossings(drawing, place, step),
        *_lanes(drawing, place, step),
        *_counts(drawing, place, step),
    ]
    return element(
        "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {drawing.height:.0f}",
        class_="sb-step-svg sb-planes-svg", role="img", aria_label=record.title(),
    )  # fmt: skip


def _bands(drawing: Drawing) -> list[str]:
    """The columns: the weights' planes beside each other, then ones."""
    drawn = []
    for band in drawing.record.bands:
        x, wide = drawing.x(band.first), drawing.x(band.first + band.columns) - drawing.x(band.first)
        class_ = f"band b{band.plane % COLOURS}" if band.what == "weights" else f"band {band.what}"
        label = f"plane w{band.plane}" if band.what == "weights" else band.what
        drawn.append(element("rect", class_=class_, x=x, y=TOP - 34, width=wide - 1, height=20))
        more = f": {band.columns} channels" if wide > 170 else ""
        inside = wide > 40
        if wide > 46 or band.what == "ones":
            drawn.append(
                text(
                    x + wide / 2,
                    TOP - 20 - 19 * (not inside),
                    label + more,
                    "m on" if inside and band.what != "filling" else "m",
                )
            )
    return drawn


def _planes(drawing: Drawing, step: int) -> list[str]:
    """The rows: the activations' planes below each other, and the accumulators of each; the output's row in them."""
    record, drawn = drawing.record, []
    order = range(record.planes - 1, -1, -1) if record.doubled else range(record.planes)
    for number, plane in enumerate(order):
        y = drawing.y(number)
        drawn.append(element("rect", class_="rows", x=24, y=y, width=LEFT - 34, height=drawing.high))
        drawn.append(text(24 + (LEFT - 34) / 2, y + drawing.high / 2 + 4, f"plane x{plane}", "m clear"))
        if not record.doubled:
            drawn.append(element("rect", class_="set", x=LEFT, y=y, width=RIGHT - LEFT, height=drawing.high))
    if record.doubled:
        high = drawing.y(record.planes) - 8 - TOP
        drawn.append(element("rect", class_="set", x=LEFT, y=TOP, width=RIGHT - LEFT, height=high))
    rows = [f"{drawing.row_y(number):.1f}" for number in range(record.planes)]
    lines = [element("path", class_="own", d=f"M24 {y}H{LEFT - 10:.0f}M{LEFT:.0f} {y}H{RIGHT:.0f}") for y in rows]
    return [*drawn, part(lines, step, AT_ROWS)]


def _crossings(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The columns of the output, and where they meet its rows."""
    record = drawing.record
    wide = max(drawing.x(1) - drawing.x(0), 2.5)
    bottom = drawing.y(record.planes) - 8
    cells = [
        ("rect", "column", {"x": drawing.x(column), "y": TOP - 34, "width": wide, "height": bottom - TOP + 34})
        for column in _candidates(record)
    ]
    return [part([marks_row("columns", cells, place.rows["columns"])], step, AT_COLUMNS)]


def _lanes(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The warp that has the row, its 32 lanes."""
    y, wide = drawing.lanes, (RIGHT - LEFT) / LANES
    cells = [
        ("rect", "lane", {"x": LEFT + lane * wide, "y": y, "width": wide - 2, "height": 18, "rx": 2})
        for lane in range(LANES)
    ]
    heads = [text(LEFT + (lane + 0.5) * wide - 1, y + 32, lane, "s m") for lane in range(0, LANES, 4)]
    label = text(LEFT - 10, y + 13, f"lanes of warp {drawing.record.warp}", "e")
    return [part([label, *heads, marks_row("lanes", cells, place.rows["lanes"])], step, AT_REGISTERS)]


def _counts(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The lane's registers: a line for each set of accumulators, a column for each plane of the weights and ones."""
    record, y, line = drawing.record, drawing.grid, drawing.line
    heads = [text(drawing.centre(kind), y + 6, "ones" if kind < 0 else f"w{kind}", "s m") for kind in drawing.kinds]
    sets = "all planes of x" if record.doubled else "x{}"
    heads += [text(LEFT - 10, y + 34 + n * line, sets.format(n), "e") for n in range(record.sets)]
    wide = (RIGHT - LEFT) / len(drawing.kinds) - 6
    boxes, registers, counts, products = [], [], [], []
    for term in record.outputs[0].terms:
        x, top, name = drawing.centre(term.weight_plane), y + 14 + term.set * line, _name(term)
        class_ = "held ones" if term.weight_plane < 0 else f"held b{term.weight_plane % COLOURS}"
        boxes.append(element("rect", class_=class_, x=x - wide / 2, y=top, width=wide, height=line - 5, rx=3))
        above, low = top + line / 2 - 6, top + line - 10
        registers.append(words_row(f"r{name}", [(x, above)], place.rows[f"r{name}"], "m on"))
        counts.append(words_row(f"c{name}", [(x, low)], place.rows[f"c{name}"], "m on key"))
        products.append(words_row(f"f{name}", [(x, low)], place.rows[f"f{name}"], "m on key"))
    low = y + 14 + record.sets * line + 20
    result = [
        text(LEFT, low, "constant of the channel", "s"),
        words_row("constant", [(LEFT + 190, low)], place.rows["constant"], "e"),
        text(RIGHT - 100, low, "output", "s e"), words_row("total", [(RIGHT, low)], place.rows["total"], "e key"),
    ]  # fmt: skip
    return [
        part([*heads, *boxes, *registers], step, AT_REGISTERS), part(counts, step, AT_COUNTS, AT_COUNTS),
        part(products, step, AT_FACTORS), part(result, step, AT_SUM),
    ]  # fmt: skip
