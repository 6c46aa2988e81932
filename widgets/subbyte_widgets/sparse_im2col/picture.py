"""The picture of :class:`~subbyte.sparse.RowLowering`: an image row, its bitmap, a phase's word shifted and cut, the
packed values with the column's run, the column.

A *place* is one offset (r, s); ``step`` determines how much is visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from subbyte.sparse.lowering import LoweredColumn, RowLowering
from subbyte_widgets._revealed import Place, marks_row, part, states_row, words_row
from subbyte_widgets.sparse_im2col.words import place_words
from subbyte_widgets.svg import element, text

WIDTH, LEFT, END, TOP = 760.0, 190.0, 744.0, 74.0
MASK, PHASE, SHIFT, CUT, FIRST, COUNT, COLUMN = range(1, 8)
"""Steps."""
HIGH, PITCH = 22.0, 54.0
"""Of a row of boxes; from one to the next."""
LINES = ("pixels", "mask", "word", "shifted", "bits", "packed", "column")
HEIGHT = TOP + PITCH * len(LINES) + 6


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of its parts."""

    record: RowLowering

    @property
    def margin(self) -> int:
        """Boxes before pixel 0: padding, and bits that a shift pushes out."""
        reach = max(one.shift for one in self.record.columns)
        return max(self.record.workload.pad, reach)

    @property
    def boxes(self) -> int:
        """Boxes of a row, those before pixel 0 included."""
        wl = self.record.workload
        low = min(one.shift for one in self.record.columns)
        return self.margin + max(wl.w + wl.pad, wl.q, wl.w - low)

    @property
    def wide(self) -> float:
        """Width of a box."""
        return min((END - LEFT) / self.boxes, 34.0)

    def x(self, pixel: int) -> float:
        """Where the box of a pixel or a bit starts."""
        return LEFT + (self.margin + pixel) * self.wide

    def y(self, line: str) -> float:
        """Where the boxes of a line start."""
        return TOP + PITCH * LINES.index(line)

    def cells(self, line: str, first: int = 0, last: int | None = None) -> list[tuple[float, float, float, float]]:
        """Boxes of a line from pixel ``first`` to before ``last``."""
        end = self.boxes - self.margin if last is None else last
        return [(self.x(i), self.y(line), self.wide - 1.5, HIGH) for i in range(first, end)]


def places(drawing: Drawing) -> list[Place]:
    """The contents of the rows for every offset."""
    return [Place(_rows(drawing, one), place_words(drawing.record, one)) for one in drawing.record.columns]


def _rows(drawing: Drawing, one: LoweredColumn) -> dict[str, Sequence[str]]:
    wl = drawing.record.workload
    taken = {x * wl.stride + one.s * wl.dilation - wl.pad for x in range(wl.q)}
    reach = range(-wl.pad, wl.w + wl.pad)
    run = range(one.first, one.first + one.count)
    own = range(one.phase_start, one.phase_start + one.word.count("1"))
    moved = {i - one.shift: bit for i, bit in enumerate(one.word)}
    window = range(-drawing.margin, drawing.boxes - drawing.margin)
    packed = range(wl.w)
    return {
        "pixels": [str(value) if value else "" for value in one.pixels],
        "taken": "".join(str(int(x in taken)) for x in reach),
        "mask": "".join(f"{_letter(value != 0, x % wl.stride)}" for x, value in enumerate(one.pixels)),
        "word": "".join(_letter(bit == "1", one.phase) for bit in one.word).ljust(wl.w, "n"),
        "shifted": "".join(_moved(moved.get(i), i, one, wl.q) for i in window),
        "bits": "".join(_letter(bit == "1", one.phase) for bit in one.bits),
        "packed": "".join(
            "n" if i >= len(one.packed) else "r" if i in run else "o" if i in own else "q" for i in packed
        ),
        "values": [str(value) for value in one.packed],
        "column": [str(value) if value else "0" for value in one.values],
        "columns": "".join(_letter(bool(value), one.phase) for value in one.values),
        "bracket": "".join(str(int(i in range(one.phase_start, one.first))) for i in packed),
        "here": "".join(str(int(other is one)) for other in drawing.record.columns),
        "picks": "".join(str(int(x % wl.stride == one.phase)) for x in range(wl.w)),
        "moves": "".join(
            str(int(shift == one.shift and i < len(one.word) and one.word[i] == "1"))
            for shift in _shifts(drawing) for i in range(wl.w)
        ),
        "rowname": [f"image row {one.row}" if one.inside else f"row {one.row}: padding"],
        "wordname": [f"phase {one.phase}" if wl.stride > 1 else "the word"],
        "shiftname": [f"shifted by {one.shift}"], "firstname": [f"first {one.first}, {one.count} of them"],
    }  # fmt: skip


def _letter(bit: bool, phase: int) -> str:
    """``z`` for a zero; a set bit has the letter of its phase."""
    return "ab"[phase % 2] if bit else "z"


def _moved(bit: str | None, at: int, one: LoweredColumn, outputs: int) -> str:
    """A bit after the shift: one beyond the outputs is cut; one that was shifted in is padding."""
    if bit is None:
        return "p" if 0 <= at < outputs else "n"
    if not 0 <= at < outputs:
        return "x" if bit == "1" else "y"
    return _letter(bit == "1", one.phase)


def _shifts(drawing: Drawing) -> list[int]:
    return sorted({one.shift for one in drawing.record.columns})


def im2col_svg(drawing: Drawing, place: Place, step: int) -> str:
    """The picture at a place after a step."""
    record = drawing.record
    wl = record.workload
    content = [
        text(24, 22, f"Sparse im2col, stride {wl.stride}, padding {wl.pad}: a column is a shifted copy of a row", "h"),
        text(24, 40, f"{wl.label}, output row {record.output_row}, channel {record.channel}; {record.source}", "s"),
        *_taps(drawing, place), *_image(drawing, place, step), *_word(drawing, place, step),
        *_values(drawing, place, step),
    ]  # fmt: skip
    return element(
        "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        class_="sb-step-svg sb-im2col-svg", data_step=step, role="img", aria_label=record.title(),
    )  # fmt: skip


def _taps(drawing: Drawing, place: Place) -> list[str]:
    wl = drawing.record.workload
    box = min(20.0, 84 / wl.s, 160 / wl.r)
    cells = [
        ("rect", "tap", {"x": 24 + one.s * box, "y": TOP + one.r * box, "width": box - 2, "height": box - 2, "rx": 2,
                         "data_go": number})
        for number, one in enumerate(drawing.record.columns)
    ]  # fmt: skip
    return [text(24, TOP - 8, "offsets (r, s)", "s"), marks_row("here", cells, place.rows["here"])]


def _label(drawing: Drawing, line: str, words: str) -> str:
    return text(LEFT - 10, drawing.y(line) + 15, words, "e")


def _named(drawing: Drawing, line: str, name: str, place: Place) -> str:
    return words_row(name, [(LEFT - 10, drawing.y(line) + 15)], place.rows[name], "e")


def _numbers(name: str, cells: Sequence[tuple[float, float, float, float]], place: Place) -> str:
    return words_row(name, [(x + w / 2, y + 15.5) for x, y, w, _ in cells], place.rows[name])


def _image(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The row with its padding and the pixels that are taken; its bitmap, and how a phase's bits move together."""
    wl = drawing.record.workload
    pixels = drawing.cells("pixels", 0, wl.w)
    drawn = [_named(drawing, "pixels", "rowname", place)]
    beyond = [*drawing.cells("pixels", -wl.pad, 0), *drawing.cells("pixels", wl.w, wl.w + wl.pad)]
    drawn += [element("rect", class_="pad", x=x, y=y, width=w, height=h) for x, y, w, h in beyond]
    drawn += [element("rect", class_="pixel", x=x, y=y, width=w, height=h) for x, y, w, h in pixels]
    drawn.append(_numbers("pixels", pixels, place))
    drawn += [text(x + w / 2, y - 4, number, "s m") for number, (x, y, w, _) in enumerate(pixels)]
    marks = [("rect", "taken", {"x": x - 0.5, "y": y - 0.5, "width": w + 1, "height": h + 1})
             for x, y, w, h in drawing.cells("pixels", -wl.pad, wl.w + wl.pad)]  # fmt: skip
    drawn.append(marks_row("taken", marks, place.rows["taken"]))
    mask = [
        _label(drawing, "mask", "bitmap"),
        states_row("mask", drawing.cells("mask", 0, wl.w), str(place.rows["mask"])),
    ]
    return [*drawn, part(mask, step, MASK)]


def _word(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The word of the phase, shifted, cut."""
    wl = drawing.record.workload
    top, bottom = drawing.y("mask") + HIGH + 2, drawing.y("word") - 2
    picks = [
        ("path", "line", {"d": f"M{_middle(drawing, x)} {top}L{_middle(drawing, x // wl.stride)} {bottom}"})
        for x in range(wl.w)
    ]
    top, bottom = drawing.y("word") + HIGH + 2, drawing.y("shifted") - 2
    moves = [
        ("path", "line", {"d": f"M{_middle(drawing, i)} {top}L{_middle(drawing, i - shift)} {bottom}"})
        for shift in _shifts(drawing) for i in range(wl.w)
    ]  # fmt: skip
    word = [_named(drawing, "word", "wordname", place),
            states_row("word", drawing.cells("word", 0, wl.w), str(place.rows["word"])),
            marks_row("picks", picks, place.rows["picks"])]  # fmt: skip
    shift = [_named(drawing, "shifted", "shiftname", place),
             states_row("shifted", drawing.cells("shifted", -drawing.margin), str(place.rows["shifted"])),
             marks_row("moves", moves, place.rows["moves"])]  # fmt: skip
    cells = drawing.cells("bits", 0, wl.q)
    cut = [_label(drawing, "bits", f"cut to {wl.q} bits"), states_row("bits", cells, str(place.rows["bits"])),
           *(text(x + w / 2, y - 4, number, "s m") for number, (x, y, w, _) in enumerate(cells))]  # fmt: skip
    return [part(word, step, PHASE), part(shift, step, SHIFT), part(cut, step, CUT)]


def _middle(drawing: Drawing, pixel: int) -> str:
    return f"{drawing.x(pixel) + drawing.wide / 2 - 0.75:.1f}"


def _values(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The packed values with the column's run, and the column."""
    wl, found = drawing.record.workload, place.rows["firstname"]
    cells = drawing.cells("packed", 0, wl.w)
    skipped = [("rect", "skip", {"x": x, "y": y + h + 3, "width": w + 1.5, "height": 3.5}) for x, y, w, h in cells]
    packed = [_label(drawing, "packed", "packed values"),
              element("g", states_row("packed", cells, str(place.rows["packed"])), class_="packed"),
              _numbers("values", cells, place)]  # fmt: skip
    column = drawing.cells("column", 0, wl.q)
    last = [_label(drawing, "column", "column, by output x"),
            element("g", states_row("columns", column, str(place.rows["columns"])), class_="column"),
            _numbers("column", column, place),
            *(text(x + w / 2, y - 4, number, "s m") for number, (x, y, w, _) in enumerate(column))]  # fmt: skip
    return [part(packed, step, MASK), part([marks_row("bracket", skipped, place.rows["bracket"])], step, FIRST),
            part([words_row("firstname", [(LEFT - 10, drawing.y("packed") + 31)], found, "s e")], step, COUNT),
            part(last, step, COLUMN)]  # fmt: skip
