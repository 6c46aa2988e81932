"""The picture of the load stepper: memory levels from left to right, sums and counters below.

Every number in it is read from the record. Cells carry ``data-id``: ``g3`` is an input pixel, ``s3`` a slot of shared
memory, ``f3`` a fragment in registers, ``a0.1`` the sum of output pixel 0 and column tile 1, ``t0.2`` a kernel
position, ``p0`` an output pixel, ``m0`` an operand of the matrix instruction. A step says which cells it sets and which
it marks; the browser applies the same lists, so the live picture and the saved one agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.technique.load_steps import Level, LoadStep, LoadSteps
from subbyte_widgets.svg import INK, OKABE_ITO, element, text, title

MOST_CELLS = 640
WIDTH, TOP = 760.0, 64.0
TIMES, ARROW = "\u00d7", "\u2192"
INPUT, SHARED, REGISTERS = (24.0, 192.0), (262.0, 232.0), (540.0, 196.0)
"""Left edge and width of the three columns."""
TALLEST, LARGEST = 176.0, 31.0
BETWEEN = 74.0
"""From the memory levels to the lower row of panels: the legend of the cells, the names of the panels."""
BAR_X, BAR_WIDTH = 196.0, 300.0
Setting = tuple[str, int, str]
"""Cell id, colour (-1: zero padding, -2: a plain number), and the words in it."""


@dataclass(frozen=True)
class Grid:
    """Equal cells in rows of ``columns`` from (x, y)."""

    x: float
    y: float
    width: float
    height: float
    columns: int

    @classmethod
    def fit(cls, place: tuple[float, float], y: float, count: int, columns: int, tallest: float, wide: float) -> Grid:
        """The largest cells, at most ``wide``, for ``count`` of them in the place's width and ``tallest``."""
        rows = -(-count // columns)
        width = min(wide, place[1] / columns)
        return cls(place[0], y, width, min(LARGEST, tallest / rows, width), columns)

    def at(self, number: int) -> tuple[float, float]:
        """Upper left corner of a cell."""
        row, column = divmod(number, self.columns)
        return self.x + column * self.width, self.y + row * self.height

    def edge(self, number: int, side: float) -> tuple[float, float]:
        """Middle of a cell's left (0), or right (1) edge."""
        x, y = self.at(number)
        return x + side * self.width, y + self.height / 2

    def bottom(self, count: int) -> float:
        """Lower edge of ``count`` cells."""
        return self.at(count - 1)[1] + self.height


@dataclass(frozen=True)
class Layout:
    """The layout of one record; ``low`` is the top of the lower row of panels, ``bars`` of the counters."""

    record: LoadSteps
    data: Grid
    slots: Grid
    fragments: Grid
    outputs: Grid
    taps: Grid
    sums: Grid
    operands: Grid
    low: float
    bars: float

    @classmethod
    def of(cls, record: LoadSteps, low: float = 0.0, bars: float = 0.0) -> Layout:
        """The layout of a record; ``low`` and ``bars`` are the least positions, to align several records."""
        counts = len(record.data), len(record.slots), record.fragments
        if max(counts) > MOST_CELLS:
            raise InvalidInput(f"{max(counts)} cells to draw, at most {MOST_CELLS}: choose a smaller tile or kernel")
        data = Grid.fit(INPUT, TOP, counts[0], record.region[1], TALLEST, LARGEST)
        slots = Grid.fit(SHARED, TOP, counts[1], record.slot_columns, TALLEST, LARGEST)
        fragments = Grid.fit(REGISTERS, TOP, counts[2], record.fragment_columns, TALLEST, LARGEST)
        low = max(low, data.bottom(counts[0]), slots.bottom(counts[1]), fragments.bottom(counts[2]) + 4) + BETWEEN
        tile, taps = record.tile[0] * record.tile[1], len(record.taps)
        across = record.taps[-1][1] + 1
        size = min(25.0, (INPUT[1] - 14) / (record.tile[1] + across))
        outputs = Grid(INPUT[0], low, size, size, record.tile[1])
        kernel = Grid(INPUT[0] + size * record.tile[1] + 14, low, size, size, across)
        wide = min(58.0, SHARED[1] / len(record.pixels))
        sums = Grid(SHARED[0], low, wide, min(25.0, 100 / record.columns), len(record.pixels))
        bottoms = outputs.bottom(tile), kernel.bottom(taps), sums.bottom(len(record.pixels) * record.columns), low + 74
        operands = Grid(REGISTERS[0] + 14, low + 8, 34, 28, 1)
        return cls(record, data, slots, fragments, outputs, kernel, sums, operands, low, max(bars, *bottoms))


def colour(record: LoadSteps, datum: int) -> int:
    """The datum's colour: neighbours differ along a row and along a column."""
    row, column = divmod(datum, record.region[1])
    return (column + 2 * row) % len(OKABE_ITO)


def setting(record: LoadSteps, cell: str, datum: int) -> Setting:
    """A cell that holds a datum."""
    return cell, -1 if record.padding[datum] else colour(record, datum), str(datum)


def changes(record: LoadSteps) -> list[list[Setting]]:
    """The cells that each step sets."""
    found: list[list[Setting]] = []
    added: dict[str, int] = {}
    for step in record.steps:
        if step.kind == "mma":
            cells = [setting(record, f"m{i}", datum) for i, datum in enumerate(step.data)]
            cells.append(("mw", -2, _weights(step)))
            for pixel in dict.fromkeys(step.pixels):
                name = f"a{pixel}.{step.column}"
                added[name] = added.get(name, 0) + 1
                cells.append((name, -2, f"{added[name]}/{len(record.taps)}"))
        else:
            names = [f"s{i}" for i in step.slots] if step.kind == "copy" else [f"f{i}" for i in step.registers]
            cells = [setting(record, name, datum) for name, datum in zip(names, step.data, strict=True)]
        found.append(cells)
    return found


def marked(step: LoadStep) -> list[str]:
    """The cells that a step moves data from and to."""
    if step.kind == "copy":
        return [*(f"g{i}" for i in step.data), *(f"s{i}" for i in step.slots)]
    if step.kind == "load":
        return [*(f"g{i}" for i in step.data), *(f"s{i}" for i in step.slots), *(f"f{i}" for i in step.registers)]
    tap = "t{}.{}".format(*(step.tap or (0, 0)))
    both = [name for pixel in step.pixels for name in (f"p{pixel}", f"a{pixel}.{step.column}")]
    return [*(f"g{i}" for i in step.data), *(f"f{i}" for i in step.registers), *both, tap, "m0", "m1", "mw"]


def links(layout: Layout, step: LoadStep) -> list[str]:
    """The paths of the data in a step, as SVG paths."""
    if step.kind == "copy":
        read = [pair for pair in zip(step.data, step.slots, strict=True) if not layout.record.padding[pair[0]]]
        return [_curve(layout.data.edge(a, 1), layout.slots.edge(b, 0)) for a, b in read]
    if step.kind == "load":
        return [_curve(layout.slots.edge(step.slots[0], 1), layout.fragments.edge(step.registers[0], 0))]
    found = []
    for i, (register, pixel) in enumerate(dict(zip(step.registers, step.pixels, strict=True)).items()):
        x0, y0 = layout.fragments.edge(register, 0.5)
        x1, y1 = layout.operands.edge(i, 0.5)
        found.append(f"M{x0:.0f} {y0 + 8:.0f}C{x0:.0f} {y0 + 50:.0f} {x1:.0f} {y1 - 60:.0f} {x1:.0f} {y1 - 12:.0f}")
        found.append(_to_sum(layout, layout.operands.edge(i, 0), pixel, step.column or 0))
    return found


def flights(record: LoadSteps, step: LoadStep) -> list[list[Any]]:
    """What moves along each of :func:`links`: lanes, the class of their colour, and its start and end as fractions of
    the step's time."""
    if step.kind != "mma":
        moved = [datum for datum in step.data if step.kind == "load" or not record.padding[datum]]
        return [[step.lanes, _face(record, datum), 0, 1] for datum in moved]
    operands = dict(zip(step.registers, step.data, strict=True)).values()
    return [
        way for datum in operands for way in ([step.lanes, _face(record, datum), 0, 0.55], [step.lanes, "sum", 0.6, 1])
    ]


def _face(record: LoadSteps, datum: int) -> str:
    return "zero" if record.padding[datum] else f"c{colour(record, datum)}"


def _to_sum(layout: Layout, start: tuple[float, float], pixel: int, column: int) -> str:
    """From an operand to a sum, around the other sums: from above to the upper rows, from below to the lower ones."""
    x0, y0 = start
    number = pixel + column * len(layout.record.pixels)
    x1, y1 = layout.sums.edge(number, 0.5)
    lower = 2 * column >= layout.record.columns
    out = (1 if lower else -1) * layout.sums.height
    y1, y2 = y1 + out / 2, y1 + 1.5 * out
    return f"M{x0:.0f} {y0:.0f}C{x0 - 60:.0f} {y0:.0f} {x1 + 40:.0f} {y2:.0f} {x1:.0f} {y1:.0f}"


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = start, end
    bend = (x1 - x0) / 2
    return f"M{x0:.0f} {y0:.0f}C{x0 + bend:.0f} {y0:.0f} {x1 - bend:.0f} {y1:.0f} {x1:.0f} {y1:.0f}"


def _weights(step: LoadStep) -> str:
    return "w({},{})".format(*(step.tap or (0, 0)))


def steps_svg(layout: Layout, done: int) -> str:
    """The picture after ``done`` steps."""
    record = layout.record
    state = {cell: (kind, words) for cells in changes(record)[:done] for cell, kind, words in cells}
    now = record.steps[done - 1] if done else None
    on = set(marked(now)) if now else set()
    paths = "".join(element("path", d=d) for d in links(layout, now)) if now else ""
    below = element("g", paths, class_="links")  # below the cells, whose numbers stay readable
    parts = [
        below,
        _heads(layout),
        _legend(layout),
        *_memory(layout, state, on),
        *_lower(layout, state, on),
        _bars(layout, now),
    ]
    return element(
        "svg",
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {layout.bars + 106:.0f}",
        class_=f"sb-step-svg sb-load-svg {now.kind if now else 'start'}",
        role="img",
        aria_label=record.title(),
    )


def cell(grid: Grid, number: int, name: str, state: dict[str, tuple[int, str]], on: set[str], hint: str) -> str:
    """One cell: empty, or filled with what ``state`` says."""
    x, y = grid.at(number)
    kind, words = state.get(name, (None, ""))
    face = "empty" if kind is None else "zero" if kind == -1 else "plain" if kind == -2 else f"c{kind}"
    inset = min(1.2, 0.06 * grid.height)
    size = min(12.5, grid.width * 0.5, 0.78 * grid.height)
    ink = "i0" if kind is not None and kind >= 0 and INK[kind] == "#ffffff" else "i1" if face.startswith("c") else ""
    inside = [
        element("rect", class_=f"face {face}", x=x + inset, y=y + inset, width=grid.width - 2 * inset,
                height=grid.height - 2 * inset, rx=min(3.5, 0.15 * grid.height)),
        text(x + grid.width / 2, y + grid.height / 2 + 0.36 * size, words, ink, style=f"font-size:{size:.1f}px"),
        title(hint),
    ]  # fmt: skip
    return element("g", inside, class_="cell on" if name in on else "cell", data_id=name)


def _heads(layout: Layout) -> str:
    record, low = layout.record, layout.low - 12
    rows, columns = record.region
    words = [
        (INPUT[0], TOP - 30, "Global memory", f"the block's {rows} {TIMES} {columns} input pixels"),
        (SHARED[0], TOP - 30, "Shared memory", _slots_in_words(record)),
        (REGISTERS[0], TOP - 30, f"Registers of warp {record.warp}", f"{record.fragments} fragments of the input"),
        (SHARED[0], low - 14, f"Sums of warp {record.warp}", f"taps added: output pixel {TIMES} 8 channels"),
        (REGISTERS[0], low - 14, "Matrix instruction", f"fragments {TIMES} weights"),
        (INPUT[0], low - 14, "Output tile", "and kernel position"),
    ]
    return "".join(text(x, y, head, "h") + text(x, y + 17, more, "s") for x, y, head, more in words)


def _legend(layout: Layout) -> str:
    """Explains dashed cells."""
    y = layout.data.bottom(len(layout.record.data)) + 10
    box: dict[str, Any] = {"y": y, "width": 13, "height": 13, "rx": 2}
    return "".join([
        element("rect", class_="face zero", x=INPUT[0], **box),
        text(INPUT[0] + 19, y + 11, "outside the image: zeros", "s"),
        element("rect", class_="face empty", x=SHARED[0], **box),
        text(SHARED[0] + 19, y + 11, "nothing there yet", "s"),
    ]) if any(layout.record.padding) else ""  # fmt: skip


def _slots_in_words(record: LoadSteps) -> str:
    count = len(record.slots)
    return f"{count} slots: one for each use" if record.sharing == "none" else f"{count} slots: one for each pixel"


def _memory(layout: Layout, state: dict[str, tuple[int, str]], on: set[str]) -> list[str]:
    record = layout.record
    held = {name: (kind, words) for i in range(len(record.data)) for name, kind, words in [setting(record, f"g{i}", i)]}
    parts = []
    for i, (y, x) in enumerate(record.data):
        where = "outside the image: zero" if record.padding[i] else "of the image"
        parts.append(cell(layout.data, i, f"g{i}", held, on, f"Input pixel {i}: row {y}, column {x} {where}"))
    for i, datum in enumerate(record.slots):
        parts.append(cell(layout.slots, i, f"s{i}", state, on, f"Slot {i} of shared memory, for input pixel {datum}"))
    parts += [cell(layout.fragments, i, f"f{i}", state, on, f"Fragment {i}") for i in range(record.fragments)]
    return parts


def _lower(layout: Layout, state: dict[str, tuple[int, str]], on: set[str]) -> list[str]:
    record = layout.record
    mine = {pixel: i for i, pixel in enumerate(record.pixels)}
    parts = []
    for i in range(record.tile[0] * record.tile[1]):
        number = mine.get(divmod(i, record.tile[1]))
        own = {} if number is None else {f"p{number}": (-2, f"p{number}")}
        name = f"x{i}" if number is None else f"p{number}"
        parts.append(cell(layout.outputs, i, name, own, on, "another warp's" if number is None else f"Pixel {number}"))
    for i, (r, s) in enumerate(record.taps):
        name = f"t{r}.{s}"
        parts.append(cell(layout.taps, i, name, {name: (-2, f"{r},{s}")}, on, f"Kernel position ({r}, {s})"))
    for i in range(record.columns * len(record.pixels)):
        column, pixel = divmod(i, len(record.pixels))
        name = f"a{pixel}.{column}"
        parts.append(cell(layout.sums, i, name, {name: (-2, f"0/{len(record.taps)}"), **state}, on,
                          f"Sums of output pixel p{pixel}, column tile {column}: taps added so far"))  # fmt: skip
    grid = layout.operands
    operands = max(len(step.data) for step in record.steps if step.kind == "mma")
    parts.append(element("rect", class_="box", x=grid.x - 12, y=layout.low, width=REGISTERS[1] - 4, height=72, rx=6))
    parts += [cell(grid, i, f"m{i}", state, on, "Operand from the registers") for i in range(operands)]
    weights = Grid(grid.x + 62, grid.y + 14, 58, 28, 1)
    parts.append(text(grid.x + 48, grid.y + 33, TIMES, "m"))
    parts.append(cell(weights, 0, "mw", state, on, "Weights of one kernel position, 8 filters"))
    parts.append(text(grid.x + 128, grid.y + 33, f"{ARROW} sums", "s"))
    return parts


def _bars(layout: Layout, now: LoadStep | None) -> str:
    record, y = layout.record, layout.bars + 18
    names = (f"global {ARROW} shared, block", f"shared {ARROW} registers, warp", "multiplications, warp")
    total = record.multiplications
    levels = [*record.levels, Level("", total, total)]
    done = now.done if now else (0, 0, 0)
    parts = []
    for i, (level, name, count) in enumerate(zip(levels, names, done, strict=True)):
        top, unit = y + 27 * i, BAR_WIDTH / max(level.unshared, 1)
        box: dict[str, Any] = {"y": top, "height": 18}
        parts += [
            text(BAR_X - 10, top + 13, name, "t e"),
            element("rect", x=BAR_X, width=BAR_WIDTH, class_="saved", **box) if level.saved else "",
            element("rect", x=BAR_X, width=level.loads * unit, class_="track", **box),
            element("rect", x=BAR_X, width=count * unit, class_=f"bar b{i}", data_bar=i, data_unit=f"{unit:.4f}",
                    **box),
            element("text", [element("tspan", f"{count:,}", class_="now", data_count=i), f" of {level.loads:,}"],
                    x=BAR_X + BAR_WIDTH + 12, y=float(top + 13)),
            _saving(level, i, count, top + 13),
        ]  # fmt: skip
    return element("g", parts, class_="bars")


def _saving(level: Level, number: int, count: int, y: float) -> str:
    """What a level saves, shown once all of it is loaded."""
    class_ = "t e saving" + " later" * (count < level.loads)
    words = f"{level.saved:,} of {level.unshared:,} saved"
    return text(WIDTH - 20, y, words, class_, data_saved=number, data_loads=level.loads) if level.saved else ""
