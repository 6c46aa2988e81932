"""The picture of a duplicate map for pages without a kernel, and the words around the live one.

Every number in it is read from the record; these files only decide where things are drawn. Cells carry ``data-k`` (flat
lowered index) or ``data-g`` (genuine index), so that a test can compare the drawing with the record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from subbyte.technique.duplicates import Duplicates
from subbyte_widgets.duplicate_map.places import (
    BARS_Y,
    LEFT_X,
    RIGHT_X,
    TOP,
    WIDTH,
    Grid,
    Plan,
    colour_of,
    plan,
    unread,
)
from subbyte_widgets.svg import INK, OKABE_ITO, element, text

TIMES = "\u00d7"
BARS = ("none", "width", "full")
BAR_NAMES = ("no sharing (im2col)", "along the width only", "full sharing")
BETWEEN_ROWS = 14
"""Least distance of the rows that are all named."""


def duplicates_svg(record: Duplicates, selected: int = -1, warps: int = 1) -> str:
    """The map of ``record`` with lowered entry ``selected`` marked (-1: none), and what each of ``warps`` loads.

    Raises InvalidInput when the tile has too many entries to draw.
    """
    places = plan(record)
    parts = [
        _definitions(),
        element("g", _links(record, selected, places) if selected >= 0 else "", class_="links"),
        element("g", words_svg(record, warps), class_="words"),
        _area(record, places, selected),
        _tile(record, places.tile, selected),
        _slots(record, places.slots, selected),
        _lowered(record, places.lowered, selected),
        element("g", _window(record, selected, places.input) if selected >= 0 else "", class_="frame"),
    ]
    return element(
        "svg",
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {height_of(places):.0f}",
        class_="sb-map-svg" + (" chosen" if selected >= 0 else ""),
        role="group",
        aria_label=record.title(),
    )


def height_of(places: Plan) -> float:
    """Height of the picture, which is WIDTH wide."""
    return places.bottom


def words_svg(record: Duplicates, warps: int = 1) -> str:
    """All that is not a cell: legend, headings and the bars. Raises InvalidInput like :func:`duplicates_svg`."""
    places = plan(record)
    return "".join([_legend(record), *_headings(record, places), _bars(record, BARS_Y, warps)])


def in_words(record: Duplicates) -> str:
    """The picture in one sentence."""
    return (
        f"{record.title()}. The lowered matrix has {record.entries} entries for {record.genuine} distinct input "
        f"pixels: sharing along the width loads {record.loads.width}, full sharing {record.loads.full}."
    )


def _definitions() -> str:
    hatches = [
        element(
            "pattern",
            element("path", d="M-1 1L1 -1M0 6L6 0M5 7L7 5", stroke=colour, class_="hatch"),
            id=f"sb-hatch-{i}", width=6, height=6, patternUnits="userSpaceOnUse",
        )
        for i, colour in enumerate(OKABE_ITO)
    ]  # fmt: skip
    return element("defs", hatches)


def _legend(record: Duplicates) -> str:
    y = TOP - 54
    kinds = [(RIGHT_X, "genuine", "genuine: first use, loaded"), (RIGHT_X + 186, "copy", "duplicate: already there")]
    if record.padding:
        kinds.append((LEFT_X + 212, "zero", "zero padding"))
    parts = [text(LEFT_X, y + 12, "same number = same pixel", "s")]
    for x, kind, words in kinds:
        box = Grid(x, y, 16, 16)
        parts.append(_hatches(box, [(0, 0, 2)] if kind == "copy" else []))
        parts.append(_face(box, (0, 0), f"face {kind} c2"))
        parts.append(text(x + 22, y + 12, words))
    return element("g", parts)


def _headings(record: Duplicates, places: Plan) -> list[str]:
    """The text above and beside the grids."""
    area, lowered, tile, slots = places.input, places.lowered, places.tile, places.slots
    rows, columns = record.halo
    taps = record.workload.r * record.workload.s
    pixels = f"{_count(rows, 'row')} {TIMES} {_count(columns, 'column')} = {_count(record.genuine, 'pixel')}"
    shape = f"{_count(len(record.pixels), 'output pixel')} {TIMES} {_count(taps, 'offset')}"
    words = [
        text(area.x, TOP - 8, "Input pixels this tile reads", "h"),
        text(area.x, TOP + 10, pixels, "s"),
        text(lowered.x, TOP - 8, "Lowered matrix (im2col)", "h"),
        text(lowered.x, TOP + 10, f"{shape} = {_count(record.entries, 'entry')}", "s"),
        text(tile.x, tile.y - 10, f"Output tile {record.tile[0]} {TIMES} {record.tile[1]}", "h"),
        text(slots.x, slots.y - 24, "Shared memory of the kernel", "h"),
        text(slots.x, slots.y - 8, f"{_count(rows * columns, 'slot')} of 128 bytes: the number is the slot's", "s"),
    ]
    wide = lowered.width * record.workload.s
    if wide > 24:
        for i in range(record.workload.r):
            x, y = lowered.at(0, i * record.workload.s)
            name = f"kernel row {i}" if wide > 80 else f"row {i}" if wide > 40 else str(i)
            words.append(text(x + wide / 2, y - 6, name, "a"))
    every = 1 if lowered.height >= BETWEEN_ROWS else record.tile[1]
    if every * lowered.height >= BETWEEN_ROWS:
        numbers = range(0, len(record.pixels), every)
        words += [text(lowered.x - 8, lowered.centre(n, 0)[1] + 4, f"p{n}", "s e") for n in numbers]
    return words


def _face(grid: Grid, place: tuple[int, int], class_: str, **data: int) -> str:
    """The body of a cell: ``genuine`` (solid), ``copy`` (hatched) or ``zero`` (outlined), coloured ``c0`` to ``c5``."""
    x, y = grid.at(*place)
    inset = grid.inset
    marks: dict[str, Any] = {f"data_{name}": value for name, value in data.items()}
    box: dict[str, Any] = {
        "x": x + inset,
        "y": y + inset,
        "width": grid.width - 2 * inset,
        "height": grid.height - 2 * inset,
    }
    return element("rect", class_=class_, **marks, **box, rx=grid.rounding)


def _hatches(grid: Grid, copies: Iterable[tuple[int, int, int]], class_: str = "hatches") -> str:
    """The hatching below the copies at (row, column, colour): one path for each colour, many would be slow to paint."""
    if not grid.hatched:
        return ""
    width, height = grid.width - 2 * grid.inset, grid.height - 2 * grid.inset
    paths: dict[int, list[str]] = {}
    for row, column, colour in copies:
        x, y = grid.at(row, column)
        box = f"M{x + grid.inset:.1f} {y + grid.inset:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"
        paths.setdefault(colour, []).append(box)
    drawn = [element("path", d="".join(parts), fill=f"url(#sb-hatch-{i})") for i, parts in sorted(paths.items())]
    return element("g", drawn, class_=class_)


def _label(grid: Grid, place: tuple[int, int], words: object, class_: str) -> str:
    """``words`` in a cell; nothing if they would be too small to read."""
    x, y = grid.centre(*place)
    return text(x, y + grid.font * 0.36, words, class_) if grid.font else ""


def _cells(name: str, faces: list[str], labels: list[str], grid: Grid) -> str:
    """Faces with the labels above them, which take their size from here."""
    letters = element("g", labels, class_="labels", style=f"font-size:{grid.font:.1f}px")
    return element("g", [*faces, letters], class_=name)


def _ink(colour: int, plain: bool) -> str:
    """The class of a label: on a plain or faded ground that of the page, on a colour the ink with the best contrast."""
    return "" if plain else f"i{int(INK[colour] != '#ffffff')}"


def _count(number: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{number:,} {what if number == 1 else plural}"


def _zero(record: Duplicates, k: int) -> bool:
    return bool(record.padding) and record.padding[k]


def _area(record: Duplicates, places: Plan, selected: int) -> str:
    """The input pixels the tile reads; positions no entry needs stay empty."""
    grid, window = places.input, _reads(record, selected)
    faces, labels = [], []
    for group in record.copies:
        g, (row, column) = group[0], record.datum[group[0]]
        colour, zero = colour_of((row, column)), _zero(record, group[0])
        class_ = "cell g" + " on" * (selected in group) + " tap" * ((row, column) in window)
        faded = selected >= 0 and "on" not in class_ and "tap" not in class_
        class_ += f" face {'zero' if zero else 'genuine'} c{colour}"
        faces.append(_face(grid, (row, column), class_, g=g, row=row, col=column))
        labels.append(_label(grid, (row, column), g, f"b {_ink(colour, zero or faded)}"))
    boxes = [grid.at(*position) for position in unread(record, places)]
    size = f"h{grid.width - 6:.1f}v{grid.height - 6:.1f}h-{grid.width - 6:.1f}z"
    dotted = "".join(f"M{x + 3:.1f} {y + 3:.1f}{size}" for x, y in boxes)
    empty = element("path", class_="unread", d=dotted) if dotted else ""
    return element("g", [_ground(grid), empty, _cells("cells", faces, labels, grid)], class_="panel input")


def _reads(record: Duplicates, selected: int) -> set[tuple[int, int]]:
    """Input pixels that the output pixel of entry ``selected`` reads."""
    if selected < 0:
        return set()
    pixel = record.index[selected][:2]
    return {datum for datum, index in zip(record.datum, record.index, strict=True) if index[:2] == pixel}


def _ground(grid: Grid) -> str:
    """The ground of a panel, which softens the lines that run below it."""
    width, height = grid.extent
    return element("rect", class_="ground", x=grid.x, y=grid.y, width=width, height=height)


def _tile(record: Duplicates, grid: Grid, selected: int) -> str:
    """The output pixels of the tile, in order."""
    users = {record.index[k][:2] for group in record.copies if selected in group for k in group}
    faces, labels = [], []
    for number, (row, column) in enumerate(record.pixels):
        class_ = "out" + " uses" * ((row, column) in users)
        class_ += " on" * (selected >= 0 and (row, column) == record.index[selected][:2])
        class_ += " masked" * bool(record.masked and record.masked[number])
        faces.append(_face(grid, (row, column), class_, p=number))
        labels.append(_label(grid, (row, column), f"p{number}", ""))
    return _cells("tile", faces, labels, grid)


def _slots(record: Duplicates, grid: Grid, selected: int) -> str:
    """The block's shared memory with full sharing: one slot for each genuine pixel, in the order of their addresses."""
    faces, labels = [], []
    for group in record.copies:
        slot, zero = record.slot[group[0]], _zero(record, group[0])
        place = divmod(slot, record.halo[1])
        colour = colour_of(record.datum[group[0]])
        class_ = "slot" + " on" * (selected in group) + f" face {'zero' if zero else 'genuine'} c{colour}"
        faces.append(_face(grid, place, class_, slot=slot, g=group[0]))
        faded = selected >= 0 and selected not in group
        labels.append(_label(grid, place, slot, _ink(colour, zero or faded)))
    return _cells("slots", faces, labels, grid)


def _lowered(record: Duplicates, grid: Grid, selected: int) -> str:
    """The lowered matrix: one row per output pixel, one column per kernel offset."""
    chosen = record.genuine_of[selected] if selected >= 0 else None
    faces, labels, copies, marked = [], [], [], []
    for k, genuine in enumerate(record.genuine_of):
        place, colour = divmod(k, grid.columns), colour_of(record.datum[k])
        zero, first = _zero(record, k), genuine == k
        if not zero and not first:
            copies.append((*place, colour))
            marked += [copies[-1]] * (genuine == chosen)
        class_ = "cell" + " g" * first + " on" * (genuine == chosen) + " here" * (k == selected)
        class_ += f" face {'zero' if zero else 'genuine' if first else 'copy'} c{colour}"
        faces.append(_face(grid, place, class_, k=k, g=genuine, row=place[0], col=place[1]))
        plain = zero or not first or chosen not in (None, genuine)
        labels.append(_label(grid, place, genuine, "b " * first + _ink(colour, plain)))
    below = [_ground(grid), _hatches(grid, copies), _hatches(grid, marked, "hatches on")]
    return element("g", [*below, _cells("cells", faces, labels, grid)], class_="panel lowered")


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


def _links(record: Duplicates, selected: int, places: Plan) -> str:
    """Lines from the input pixel to its copies, as the browser draws them for a live selection."""
    x0, y0 = places.input.centre(*record.datum[selected])
    lines = []
    for k in next(group for group in record.copies if selected in group):
        x1, y1 = places.lowered.centre(*divmod(k, places.lowered.columns))
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
