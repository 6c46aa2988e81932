"""The picture of a duplicate map: one SVG for the live view and for pages without a kernel.

Every number in it is read from the record; this file only decides where things go. Cells carry ``data-k`` (flat lowered
index) or ``data-g`` (genuine index), so that a browser can follow a selection and a test can compare the drawing with
the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from subbyte.errors import InvalidInput
from subbyte.technique.duplicates import Duplicates
from subbyte_widgets.svg import INK, OKABE_ITO, element, text

MOST_CELLS = 800
WIDTH, TOP, GAP = 760.0, 58.0, 8.0
LARGEST, WIDEST = 31.0, 38.0
TIMES = "\u00d7"
LEFT_X, LEFT_W = 30.0, 250.0
RIGHT_X, RIGHT_W = 348.0, 400.0
TALLEST = 520.0
SMALLEST_FONT, SMALLEST_HATCHED = 6.2, 8.0
BARS = ("none", "width", "full")
BAR_NAMES = ("no sharing (im2col)", "along the width only", "full sharing")


@dataclass(frozen=True)
class Grid:
    """Where cells go: ``x``, ``y`` of the first one, their size, a wider step after every ``group`` columns."""

    x: float
    y: float
    width: float
    height: float
    group: int = 0

    def at(self, row: int, column: int) -> tuple[float, float]:
        """Upper left corner of a cell."""
        gaps = column // self.group if self.group else 0
        return self.x + column * self.width + gaps * GAP, self.y + row * self.height

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Middle of a cell."""
        x, y = self.at(row, column)
        return x + self.width / 2, y + self.height / 2


def duplicates_svg(record: Duplicates, selected: int = -1, warps: int = 1) -> str:
    """The map of ``record`` with lowered entry ``selected`` marked (-1: none), and what each of ``warps`` loads.

    Raises InvalidInput when the tile has too many entries to draw.
    """
    if record.entries > MOST_CELLS:
        raise InvalidInput(
            f"This tile has {record.entries:,} lowered entries and the picture draws up to {MOST_CELLS:,}: "
            "choose a smaller tile or kernel."
        )
    taps = record.workload.r * record.workload.s
    height, width = _extent(record)
    size = min(LARGEST, LEFT_W / width, TALLEST / height)
    area = Grid(LEFT_X, TOP + 34, size, size)
    room = RIGHT_W - (record.workload.r - 1) * GAP
    rows = len(record.pixels)
    wide = min(WIDEST, room / taps)
    lowered = Grid(RIGHT_X, TOP + 34, wide, min(LARGEST, TALLEST / rows, 2.5 * wide), record.workload.s)
    size = min(LARGEST, LEFT_W / record.tile[1], 160 / record.tile[0])
    tile = Grid(LEFT_X, area.at(height, 0)[1] + 44, size, size)
    size = min(20.0, LEFT_W / record.halo[1], 130 / record.halo[0])
    slots = Grid(LEFT_X, tile.at(record.tile[0], 0)[1] + 46, size, size)
    bars_y = max(slots.at(record.halo[0], 0)[1], lowered.at(rows, 0)[1]) + 30
    parts = [
        _definitions(),
        _legend(record),
        element("g", _links(record, selected, area, lowered) if selected >= 0 else "", class_="links"),
        _area(record, area, (height, width), selected),
        _tile(record, tile, selected),
        _slots(record, slots, selected),
        _lowered(record, lowered, selected),
        _bars(record, bars_y, warps),
        element("g", _window(record, selected, area) if selected >= 0 else "", class_="frame"),
    ]
    return element(
        "svg",
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {bars_y + (104 if warps == 1 else 128):.0f}",
        class_="sb-map-svg" + (" chosen" if selected >= 0 else ""),
        role="group",
        aria_label=record.title(),
    )


def in_words(record: Duplicates) -> str:
    """The picture in one sentence."""
    return (
        f"{record.title()}. The lowered matrix has {record.entries} entries for {record.genuine} distinct input "
        f"pixels: sharing along the width loads {record.loads.width}, full sharing {record.loads.full}."
    )


def _extent(record: Duplicates) -> tuple[int, int]:
    return max(row for row, _ in record.datum) + 1, max(column for _, column in record.datum) + 1


def _colour(position: tuple[int, int]) -> int:
    # Neighbours differ along a row and along a column, so that stripes of the lowered matrix stay apart.
    return (position[1] + 2 * position[0]) % len(OKABE_ITO)


def _definitions() -> str:
    hatches = [
        element(
            "pattern",
            element("path", d="M0 6L6 0", stroke=colour, class_="hatch"),
            id=f"sb-hatch-{i}", width=6, height=6, patternUnits="userSpaceOnUse",
        )
        for i, colour in enumerate(OKABE_ITO)
    ]  # fmt: skip
    return element("defs", hatches)


def _legend(record: Duplicates) -> str:
    y = 4.0
    kinds = [(RIGHT_X, "genuine", "genuine: first use, loaded"), (RIGHT_X + 186, "copy", "duplicate: already there")]
    if record.padding:
        kinds.append((LEFT_X + 212, "zero", "zero padding"))
    parts = [text(LEFT_X, y + 12, "same number = same pixel", "s")]
    for x, kind, words in kinds:
        box = Grid(x, y, 16, 16)
        parts += [_hatches(box, [(0, 0, 2)] if kind == "copy" else []), _face(box, 0, 0, 2, kind)]
        parts.append(text(x + 22, y + 12, words))
    return element("g", parts)


def _face(grid: Grid, row: int, column: int, colour: int, kind: str) -> str:
    """The body of a cell: ``kind`` is ``genuine`` (solid), ``copy`` (hatched) or ``zero`` (outlined)."""
    x, y = grid.at(row, column)
    size = min(grid.width, grid.height)
    inset = min(1.0, 0.06 * size)
    return element("rect", class_=f"face {kind} c{colour}", x=x + inset, y=y + inset, width=grid.width - 2 * inset,
                   height=grid.height - 2 * inset, rx=min(3.5, 0.15 * size))  # fmt: skip


def _hatches(grid: Grid, copies: Iterable[tuple[int, int, int]]) -> str:
    """The hatching below the copies at (row, column, colour): one path for each colour, many would be slow to paint."""
    size = min(grid.width, grid.height)
    if size < SMALLEST_HATCHED:
        return ""
    inset = min(1.5, 0.09 * size)
    width, height = grid.width - 2 * inset, grid.height - 2 * inset
    paths: dict[int, list[str]] = {}
    for row, column, colour in copies:
        x, y = grid.at(row, column)
        paths.setdefault(colour, []).append(f"M{x + inset:.1f} {y + inset:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z")
    drawn = [element("path", d="".join(parts), fill=f"url(#sb-hatch-{i})") for i, parts in sorted(paths.items())]
    return element("g", drawn, class_="hatches")


def _font(grid: Grid, longest: int) -> float:
    """The size of letters at which a label of ``longest`` characters fits into a cell."""
    return min(13.0, grid.width * (0.46 if longest < 3 else 0.38), 0.8 * grid.height)


def _sized(grid: Grid, longest: int) -> str:
    """The style of what holds a grid's cells: their labels take the size from there."""
    return f"font-size:{_font(grid, longest):.1f}px"


def _label(grid: Grid, row: int, column: int, words: str, longest: int, ink: int | None) -> str:
    """``words`` in a cell, in the size at which the grid's ``longest`` label fits; nothing when that is too small."""
    font = _font(grid, longest)
    if font < SMALLEST_FONT:
        return ""
    x, y = grid.centre(row, column)
    class_ = None if ink is None else f"i{int(INK[ink] != '#ffffff')}"
    return element("text", words, x=x, y=y + font * 0.36, class_=class_)


def _count(number: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{number:,} {what if number == 1 else plural}"


def _area(record: Duplicates, grid: Grid, shape: tuple[int, int], selected: int) -> str:
    """The input pixels the tile reads; positions no entry needs stay empty."""
    uses = {record.datum[group[0]]: group for group in record.copies}
    longest = len(str(max(record.genuine_of)))
    window = _reads(record, selected)
    cells = []
    for row in range(shape[0]):
        for column in range(shape[1]):
            group = uses.get((row, column))
            if group is None:
                x, y = grid.at(row, column)
                dotted = element("rect", x=x + 3, y=y + 3, width=grid.width - 6, height=grid.height - 6, rx=2)
                cells.append(element("g", dotted, class_="cell u") if grid.width > 8 else "")
                continue
            colour = _colour((row, column))
            zero = bool(record.padding) and record.padding[group[0]]
            inside = [_face(grid, row, column, colour, "zero" if zero else "genuine")]
            inside.append(_label(grid, row, column, str(group[0]), longest, None if zero else colour))
            inside.append(element("title", _about_datum(record, group, zero)))
            class_ = "cell g" + " on" * (selected in group) + " tap" * ((row, column) in window)
            cells.append(element("g", inside, class_=class_, data_g=group[0], data_row=row, data_col=column))
    rows, columns = record.halo
    h, w = shape[0] * grid.height, shape[1] * grid.width
    heading = [
        text(grid.x, TOP - 8, "Input pixels this tile reads", "h"),
        text(
            grid.x,
            TOP + 10,
            f"{_count(rows, 'row')} {TIMES} {_count(columns, 'column')} = {_count(record.genuine, 'pixel')}",
            "s",
        ),
    ]
    content = [*heading, _ground(grid.x, grid.y, w, h), *cells]
    return _panel("input", "Input pixels", content, style=_sized(grid, longest))


def _reads(record: Duplicates, selected: int) -> set[tuple[int, int]]:
    """Input pixels that the output pixel of entry ``selected`` reads."""
    if selected < 0:
        return set()
    pixel = record.index[selected][:2]
    return {datum for datum, index in zip(record.datum, record.index, strict=True) if index[:2] == pixel}


def _about_datum(record: Duplicates, group: tuple[int, ...], zero: bool) -> str:
    row, column = record.datum[group[0]]
    where = f"Input pixel ({row}, {column})" + (", zero padding," if zero else "")
    slot = f" It lies in slot {record.slot[group[0]]} of the block's shared memory."
    if len(group) == 1:
        return f"{where} is used once, by entry {group[0]}.{slot}"
    copies = ", ".join(map(str, group[1:]))
    rest = f"entry {copies} is a duplicate" if len(group) == 2 else f"entries {copies} are duplicates"
    times = f"{where} appears {len(group)} times in the lowered matrix"
    return f"{times}: entry {group[0]} is genuine and loaded; {rest}.{slot}"


def _panel(name: str, title: str, content: list[str], **more: object) -> str:
    """A part of the picture that takes the keyboard; the attribute keeps JupyterLab's shortcuts out of it."""
    return element("g", content, class_=f"panel {name}", tabindex=0, data_lm_suppress_shortcuts="true",
                   role="application", aria_label=f"{title}: arrow keys move the selection", **more)  # fmt: skip


def _ground(x: float, y: float, width: float, height: float) -> str:
    """The ground of a panel, which softens the lines that run below it, and the frame that shows the keyboard focus."""
    ground = element("rect", class_="ground", x=x, y=y, width=width, height=height)
    return ground + element("rect", class_="ring", x=x - 5, y=y - 5, width=width + 10, height=height + 10, rx=6)


def _tile(record: Duplicates, grid: Grid, selected: int) -> str:
    """The output pixels of the tile, in order."""
    cells = [text(grid.x, grid.y - 10, f"Output tile {record.tile[0]} {TIMES} {record.tile[1]}", "h")]
    longest = len(f"p{len(record.pixels) - 1}")
    users = {record.index[k][:2] for group in record.copies if selected in group for k in group}
    for number, (row, column) in enumerate(record.pixels):
        x, y = grid.at(row, column)
        state = " uses" * ((row, column) in users)
        state += " on" * (selected >= 0 and (row, column) == record.index[selected][:2])
        inside = element("rect", x=x + 1, y=y + 1, width=grid.width - 2, height=grid.height - 2, rx=3)
        label = _label(grid, row, column, f"p{number}", longest, None)
        state += " masked" * bool(record.masked and record.masked[number])
        cells.append(element("g", [inside, label], class_=f"out{state}", data_p=number, data_at=f"{row}, {column}"))
    return element("g", cells, class_="tile", style=_sized(grid, longest))


def _slots(record: Duplicates, grid: Grid, selected: int) -> str:
    """The block's shared memory with full sharing: one slot for each genuine pixel, in the order of their addresses."""
    rows, columns = record.halo
    words = f"{_count(rows * columns, 'slot')} of 128 bytes: the number is the slot's"
    cells = [text(grid.x, grid.y - 24, "Shared memory of the kernel", "h"), text(grid.x, grid.y - 8, words, "s")]
    longest = len(str(rows * columns - 1))
    for group in record.copies:
        slot = record.slot[group[0]]
        row, column = divmod(slot, columns)
        colour = _colour(record.datum[group[0]])
        zero = bool(record.padding) and record.padding[group[0]]
        inside = [_face(grid, row, column, colour, "zero" if zero else "genuine")]
        inside.append(_label(grid, row, column, str(slot), longest, None if zero else colour))
        class_ = "slot" + " on" * (selected in group)
        cells.append(element("g", inside, class_=class_, data_slot=slot, data_g=group[0]))
    return element("g", cells, class_="slots", style=_sized(grid, longest))


def _lowered(record: Duplicates, grid: Grid, selected: int) -> str:
    """The lowered matrix: one row per output pixel, one column per kernel offset."""
    r, s = record.workload.r, record.workload.s
    taps = r * s
    chosen = record.genuine_of[selected] if selected >= 0 else None
    longest = len(str(max(record.genuine_of)))
    cells, copies = [], []
    for k in range(record.entries):
        number, column = divmod(k, taps)
        colour, genuine = _colour(record.datum[k]), record.genuine_of[k] == k
        zero = bool(record.padding) and record.padding[k]
        inside = [_face(grid, number, column, colour, "zero" if zero else "genuine" if genuine else "copy")]
        copies += [] if zero or genuine else [(number, column, colour)]
        ink = colour if genuine and not zero else None
        inside.append(_label(grid, number, column, str(record.genuine_of[k]), longest, ink))
        class_ = "cell" + " g" * genuine + " on" * (record.genuine_of[k] == chosen) + " here" * (k == selected)
        cells.append(element("g", inside, class_=class_, data_k=k, data_g=record.genuine_of[k], data_row=number,
                             data_col=column))  # fmt: skip
    shape = f"{_count(len(record.pixels), 'output pixel')} {TIMES} {_count(taps, 'offset')}"
    size = f"{shape} = {_count(record.entries, 'entry')}"
    heads = [
        text(grid.x, TOP - 8, "Lowered matrix (im2col)", "h"),
        text(grid.x, TOP + 10, size, "s"),
    ]
    for i in range(r):
        x, y = grid.at(0, i * s)
        if grid.width * s > 24:
            name = f"kernel row {i}" if grid.width * s > 70 else f"row {i}"
            heads.append(text(x + grid.width * s / 2, y - 6, name, "a"))
    every = 1 if grid.height >= 11 else record.tile[1]
    if every * grid.height >= 11:
        numbers = range(0, len(record.pixels), every)
        heads += [text(grid.x - 8, grid.centre(n, 0)[1] + 4, f"p{n}", "s e") for n in numbers]
    w = grid.at(0, taps - 1)[0] + grid.width - grid.x
    ring = _ground(grid.x, grid.y, w, len(record.pixels) * grid.height)
    content = [*heads, ring, _hatches(grid, copies), *cells]
    return _panel("lowered", "Lowered matrix", content, data_offsets=s, style=_sized(grid, longest))


def _bars(record: Duplicates, y: float, warps: int) -> str:
    """What the block loads with the three ways of sharing, and each of its warps."""
    x, full = 176.0, 300.0
    ratios = (1.0, record.ratio_width, record.ratio_full)
    parts = [text(LEFT_X, y + 2, f"What the block loads, for each 8 images {TIMES} 32 channels", "h")]
    for i, way in enumerate(BARS):
        loads, size = getattr(record.loads, way), getattr(record.bytes_loaded, way)
        top = y + 14 + 25 * i
        parts += [
            text(x - 10, top + 13, BAR_NAMES[i], "t e"),
            element("rect", x=x, y=top, width=full, height=18, rx=3, class_="track"),
            element("rect", x=x, y=top, width=full / ratios[i], height=18, rx=3, class_=f"bar b{i}", data_way=way),
            text(x + full + 10, top + 13, f"{_count(loads, 'load')}, {size:,} bytes", "t", data_loads=way),
            text(WIDTH - 12, top + 13, "" if i == 0 else f"{ratios[i]:.2f}{TIMES} fewer", "t e"),
        ]
    if warps > 1:
        parts.append(text(LEFT_X, y + 112, warps_in_words(record, warps), "t"))
    return element("g", parts, class_="bars")


def warps_in_words(record: Duplicates, warps: int) -> str:
    """What each of ``warps`` that share the tile loads into registers."""
    pixels, rest = divmod(len(record.pixels), warps)
    if rest:
        return f"{warps} warps cannot share {len(record.pixels)} output pixels evenly."
    each = [record.warp(number, pixels).loads for number in range(warps)]

    def span(way: str) -> str:
        least, most = min(getattr(one, way) for one in each), max(getattr(one, way) for one in each)
        return f"{least}" if least == most else f"{least} to {most}"

    loads = f"{span('none')} without sharing, {span('width')} along the width, {span('full')} with full sharing"
    return f"Each of {warps} warps ({_count(pixels, 'output pixel')}) loads into registers: {loads}."


def _links(record: Duplicates, selected: int, area: Grid, lowered: Grid) -> str:
    """Lines from the input pixel to its copies, as the browser draws them for a live selection."""
    taps = record.workload.r * record.workload.s
    row, column = record.datum[selected]
    x0, y0 = area.centre(row, column)
    lines = []
    for k in next(group for group in record.copies if selected in group):
        x1, y1 = lowered.centre(*divmod(k, taps))
        class_ = "gen" if record.genuine_of[k] == k else "dup"
        curve = f"M{x0:.1f} {y0:.1f}C{x0 + 90:.1f} {y0:.1f} {x1 - 90:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        lines.append(element("path", d=curve, class_=class_, data_k=k))
    return "".join(lines)


def _window(record: Duplicates, selected: int, grid: Grid) -> str:
    """A dashed frame around the input pixels that the selected output pixel reads."""
    reads = _reads(record, selected)
    x0, y0 = grid.at(min(row for row, _ in reads), min(column for _, column in reads))
    x1, y1 = grid.at(max(row for row, _ in reads) + 1, max(column for _, column in reads) + 1)
    return element("rect", class_="window", x=x0 - 2, y=y0 - 2, width=x1 - x0 + 4, height=y1 - y0 + 4, rx=5)
