"""The picture of a tiled convolution: both maps, the matrix product, one block tile, and the steps along K.

The panels are drawn once. What belongs to a selection are *markers*, paths whose corners are positions of the record
times the scale of their panel (``data-x``, ``data-y``, ``data-sx``, ``data-sy``). :func:`markers` computes them here
for pictures without a browser; the browser does the same from :func:`page_data` and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.technique.tiling import Band, Tiling, WarpTile
from subbyte_widgets.convolution_tiling.layout import Geometry, Place, geometry
from subbyte_widgets.svg import element, text, title

WIDTH = 760.0
SMALLEST = 2.0
MOST_CELLS = 4096
TIMES = "\u00d7"
MARKERS = {
    "out": ("tile", "warp", "now"),
    "in": ("tile", "warp", "now"),
    "a": ("tile", "stage", "warp", "now"),
    "b": ("tile", "stage", "warp", "now"),
    "c": ("tile", "warp", "now"),
}
Boxes = Iterable[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Selection:
    """A block (its pixel tile and its block of channels), one of its warps, an instruction of it, a step along K."""

    tile: int = 0
    column_block: int = 0
    warp: int = 0
    multiply: int = 0
    step: int = 0

    def inside(self, record: Tiling) -> Selection:
        """The selection with every number clamped to its range, and a warp that takes part in the step."""
        limits = (record.blocks // record.column_blocks, record.column_blocks, len(record.warps),
                  len(record.multiplies), len(record.steps))  # fmt: skip
        given = (self.tile, self.column_block, self.warp, self.multiply, self.step)
        tile, block, number, multiply, step = (
            min(max(value, 0), limit - 1) for value, limit in zip(given, limits, strict=True)
        )
        warp, share = record.warps[number], record.steps[step].share
        same = [w for w in record.warps if (w.pixels, w.columns, w.share) == (warp.pixels, warp.columns, share)]
        return Selection(tile, block, same[0].number, multiply, step)


def tiling_svg(record: Tiling, chosen: Selection | None = None) -> str:
    """The picture; with ``chosen`` the markers are in it. Raises InvalidInput for a tile too large to draw."""
    cells = len(record.pixels) * record.block_channels // 8
    if cells > MOST_CELLS:
        raise InvalidInput(f"This block tile has {cells:,} result tiles and the picture draws up to {MOST_CELLS:,}.")
    places = geometry(record)
    paths = markers(record, chosen.inside(record), places) if chosen else {}
    parts = [
        _legend(places),
        _map(record, "in", places, paths),
        _map(record, "out", places, paths),
        _loupe(record, places, chosen),
        _product(record, places, paths),
        _block(record, places, chosen),
        _steps(record, places, chosen),
    ]
    return element(
        "svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {places.height:.0f}",
        class_="sb-tiling-svg", role="group", aria_label=record.title(),
    )  # fmt: skip


def _legend(places: Geometry) -> str:
    x, y, parts = 20.0, places.panels["b"].y - 40, []
    kinds = {
        "tile": "block",
        "stage": "what one stage brings to shared memory",
        "warp": "warp",
        "now": "one instruction",
    }
    for kind, words in kinds.items():
        parts += [element("rect", class_=f"key {kind}", x=x, y=y - 10, width=12, height=12, rx=2),
                  text(x + 18, y, words, "s")]  # fmt: skip
        x += 44 + 6.4 * len(words)
    return element("g", parts)


def in_words(record: Tiling, chosen: Selection) -> str:
    """The picture in two sentences."""
    inside = chosen.inside(record)
    return f"{record.title()}. Selected: {record.block(inside.tile, inside.column_block).title()}, warp {inside.warp}."


def page_data(record: Tiling) -> dict[str, Any]:
    """What the browser needs to place the markers, all of it read from the record."""
    w = record.workload
    images = 8
    return {
        "rows": [_band(band, [(band.first + p) * w.q * images for p in range(band.outputs)]) for band in record.rows],
        "columns": [_band(band, [band.first * images, band.outputs * images]) for band in record.columns],
        "groups": [group * w.p * w.q * images for group in range(record.groups)],
        "column_blocks": record.column_blocks,
        "block_channels": record.block_channels,
        "pixels": record.pixels,
        "warps": [{"pixels": warp.pixels, "columns": warp.columns, "share": warp.share} for warp in record.warps],
        "multiplies": [{"pixels": one.pixels, "column": one.column} for one in record.multiplies],
        "steps": [
            {"iteration": s.iteration, "share": s.share, "r": s.r, "s": s.s, "columns": s.columns,
             "blocks": s.channel_blocks} for s in record.steps
        ],
        "size": {"h": w.h, "w": w.w, "depth": record.padded[2], "images": images, "tile": 8,
                 "block": record.block_depth},
    }  # fmt: skip


def _band(band: Band, gemm: list[int]) -> dict[str, Any]:
    return {"first": band.first, "outputs": band.outputs, "reads": band.reads, "gemm": gemm}


def markers(record: Tiling, chosen: Selection, places: Geometry) -> dict[str, str]:
    """The path of every marker, by ``panel-name``."""
    block = record.block(chosen.tile, chosen.column_block)
    _, i, j, _ = block.place
    row, column = record.rows[i], record.columns[j]
    warp, multiply, step = record.warps[chosen.warp], record.multiplies[chosen.multiply], record.steps[chosen.step]
    first, images = block.gemm_columns[0], 8
    inside = [
        [record.pixels[p] for p in pixels if record.pixels[p][0] < row.outputs and record.pixels[p][1] < column.outputs]
        for pixels in (range(len(record.pixels)), warp.pixels, sorted({warp.pixels[p] for p in multiply.pixels}))
    ]
    stage = [c for s in record.steps if s.iteration == step.iteration for c in s.columns]
    starts = [run[0] for run in block.gemm_rows]
    rows = [[(starts[p] + q * images, images) for p, q in pixels] for pixels in inside]
    whole = [(record.block(chosen.tile).gemm_rows[p][0], column.outputs * images) for p in range(row.outputs)]
    columns = [
        (first, record.block_channels),
        (first + warp.columns[0] * 8, len(warp.columns) * 8),
        (first + warp.columns[multiply.column] * 8, 8),
    ]
    depth, one = record.padded[2], record.block_depth
    boxes: dict[str, Boxes] = {
        "out-tile": [(column.first, row.first, column.outputs, row.outputs)],
        "out-warp": [(column.first + q, row.first + p, 1, 1) for p, q in inside[1]],
        "out-now": [(column.first + q, row.first + p, 1, 1) for p, q in inside[2]],
        "in-tile": _reads(row, column, inside[0]),
        "in-warp": _reads(row, column, inside[1]),
        "in-now": [(column.reads[q][step.s], row.reads[p][step.r], 1, 1) for p, q in inside[2]],
        "a-tile": [(0, start, depth, count) for start, count in whole],
        "a-warp": [(0, start, depth, count) for start, count in rows[1]],
        "a-stage": [(c, start, one, count) for c in stage for start, count in whole],
        "a-now": [(c, start, one, count) for c in step.columns for start, count in rows[2]],
        "b-tile": [(columns[0][0], 0, columns[0][1], depth)],
        "b-stage": [(columns[0][0], c, columns[0][1], one) for c in stage],
        "b-warp": [(columns[1][0], 0, columns[1][1], depth)],
        "b-now": [(columns[2][0], c, columns[2][1], one) for c in step.columns],
        "c-tile": [(columns[0][0], start, columns[0][1], count) for start, count in whole],
        "c-warp": [(columns[1][0], start, columns[1][1], count) for start, count in rows[1]],
        "c-now": [(columns[2][0], start, columns[2][1], count) for start, count in rows[2]],
    }
    return {name: _path(places.panels[name.split("-")[0]], found) for name, found in boxes.items()}


def _reads(row: Band, column: Band, pixels: list[tuple[int, int]]) -> Boxes:
    found = {(x, y) for p, q in pixels for y in row.reads[p] for x in column.reads[q]}
    return [(x, y, 1, 1) for x, y in sorted(found)]


def _path(place: Place, boxes: Boxes) -> str:
    """Rectangles at least two units wide, so that a small tile of a large map can be seen."""
    parts = []
    for x, y, w, h in boxes:
        wide, high = max(w * place.sx, SMALLEST), max(h * place.sy, SMALLEST)
        parts.append(f"M{place.x + x * place.sx:.1f} {place.y + y * place.sy:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z")
    return "".join(parts)


def _panel(name: str, places: Geometry, title: str, content: list[str]) -> str:
    """A part of the picture that takes the keyboard."""
    place = places.panels[name]
    ring = element("rect", class_="ring", x=place.x - 6, y=place.y - 6, width=place.width + 12,
                   height=place.height + 12, rx=6)  # fmt: skip
    return element(
        "g", [ring, *content], class_=f"panel {name}", tabindex=0, data_lm_suppress_shortcuts="true",
        role="application", aria_label=title, **_scale(place),
    )  # fmt: skip


def _scale(place: Place) -> dict[str, Any]:
    return {"data_x": place.x, "data_y": place.y, "data_sx": f"{place.sx:.6g}", "data_sy": f"{place.sy:.6g}"}


def _marks(panel: str, paths: dict[str, str]) -> list[str]:
    return [
        element("path", class_=f"mark {name}", d=paths.get(f"{panel}-{name}", "M0 0"), data_mark=f"{panel}-{name}")
        for name in MARKERS[panel]
    ]


def _map(record: Tiling, name: str, places: Geometry, paths: dict[str, str]) -> str:
    """The input map with its frame of padding, or the output map cut into block tiles."""
    w, place = record.workload, places.panels[name]
    if name == "in":
        heading, rows, columns, step = f"Input {w.h} {TIMES} {w.w} {TIMES} {w.c}", w.h, w.w, (1, 1)
        note = f"{w.n} images, padding {w.pad}"
    else:
        heading, rows, columns, step = f"Output {w.p} {TIMES} {w.q} {TIMES} {w.k}", w.p, w.q, record.tile
        count = f"{len(record.rows)} {TIMES} {len(record.columns)}"
        note = f"{count} block tiles of {record.tile[0]} {TIMES} {record.tile[1]}"
    height, width = rows * place.sy, columns * place.sx
    lines = "".join(
        f"M{place.x:.1f} {place.y + i * place.sy:.1f}h{width:.1f}" for i in range(step[0], rows, step[0])
    ) if step[0] * place.sy > 5 else ""  # fmt: skip
    if step[1] * place.sx > 5:
        lines += "".join(
            f"M{place.x + j * place.sx:.1f} {place.y:.1f}v{height:.1f}" for j in range(step[1], columns, step[1])
        )
    frame = w.pad if name == "in" else 0
    content = [
        text(place.x - frame * place.sx, place.y - frame * place.sy - 26, heading, "h"),
        text(place.x - frame * place.sx, place.y - frame * place.sy - 10, note, "s"),
        element("rect", class_="padding", x=place.x - frame * place.sx, y=place.y - frame * place.sy,
                width=width + 2 * frame * place.sx, height=height + 2 * frame * place.sy) if frame else "",
        element("rect", class_="ground", x=place.x, y=place.y, width=width, height=height),
        element("path", d=lines, class_="grid") if lines else "",
        *_marks(name, paths),
    ]  # fmt: skip
    if name == "in":
        return element("g", content, class_="in", **_scale(place))
    return _panel(name, places, "Output map: arrow keys choose a block tile", content)


def _loupe(record: Tiling, places: Geometry, chosen: Selection | None) -> str:
    """The input pixels of the selected block, enlarged; the browser marks padding, the warp's and the window."""
    place = places.panels["loupe"]
    marks = loupe_marks(record, chosen.inside(record)) if chosen else {}
    labels = loupe_labels(record, chosen.inside(record)) if chosen else {}
    cells = [text(place.x, place.y - 44, "Input pixels of the block", "h")]
    cells.append(text(place.x, place.y - 28, "framed: kernel window; pink: offset now", "s"))
    for i in range(place.rows):
        for j in range(place.columns):
            x, y = place.x + j * place.sx, place.y + i * place.sy
            cells.append(
                element("rect", x=x + 0.7, y=y + 0.7, width=place.sx - 1.4, height=place.sy - 1.4, rx=1.5,
                        class_="px" + marks.get((i, j), ""), data_at=f"{i},{j}")
            )  # fmt: skip
    for number in range(0, place.rows, _every(place.sy, 13)):
        y = place.y + (number + 0.5) * place.sy + 4
        cells += [text(place.x - 6, y, labels.get(f"r{number}", ""), "n e", data_tick=f"r{number}")]
    for number in range(0, place.columns, _every(place.sx, 22)):
        x = place.x + (number + 0.5) * place.sx
        cells += [text(x, place.y - 6, labels.get(f"c{number}", ""), "n m", data_tick=f"c{number}")]
    return element("g", cells, class_="loupe")


def _every(size: float, room: float) -> int:
    return next(step for step in (1, 2, 4, 8, 16, 32, 64, 128) if step * size >= room or step == 128)


def distinct(band: Band) -> list[int]:
    """The input positions of a band in order."""
    return sorted({at for reads in band.reads for at in reads})


def _bands(record: Tiling, chosen: Selection) -> tuple[Band, Band]:
    _, i, j, _ = record.block(chosen.tile, chosen.column_block).place
    return record.rows[i], record.columns[j]


def loupe_labels(record: Tiling, chosen: Selection) -> dict[str, str]:
    """Input rows and columns at the edge of the enlarged block."""
    row, column = _bands(record, chosen)
    names = {f"r{i}": str(at) for i, at in enumerate(distinct(row))}
    return names | {f"c{j}": str(at) for j, at in enumerate(distinct(column))}


def loupe_marks(record: Tiling, chosen: Selection) -> dict[tuple[int, int], str]:
    """Classes of the enlarged pixels: zero padding, read by the warp, in the window, at the current offset."""
    row, column = _bands(record, chosen)
    rows, columns = distinct(row), distinct(column)
    warp, step = record.warps[chosen.warp], record.steps[chosen.step]
    pixels = [record.pixels[p] for p in warp.pixels]
    now = [pixels[p] for p in record.multiplies[chosen.multiply].pixels]
    w = record.workload
    found = {}
    mine = {(y, x) for p, q in pixels for y in row.reads[p] for x in column.reads[q]}
    window = {(y, x) for y in row.reads[now[0][0]] for x in column.reads[now[0][1]]}
    offset = {(row.reads[p][step.r], column.reads[q][step.s]) for p, q in now}
    for i, y in enumerate(rows):
        for j, x in enumerate(columns):
            name = " pad" * (not (0 <= y < w.h and 0 <= x < w.w)) + " warp" * ((y, x) in mine)
            found[i, j] = name + " window" * ((y, x) in window) + " now" * ((y, x) in offset)
    return found


def _product(record: Tiling, places: Geometry, paths: dict[str, str]) -> str:
    """The matrix product: lowered input A, weights B above, result C."""
    m, n, k = record.padded
    a, b, c = (places.panels[name] for name in "abc")
    parts = [
        text(a.x, b.y - 12, "The matrix product", "h"),
        text(a.x, a.y - 22, "A: lowered input", "t"),
        text(a.x, a.y - 8, f"{m:,} {TIMES} {k:,}", "s"),
        text(b.x + b.width + 10, b.y + 14, "B: weights", "t"),
        text(b.x + b.width + 10, b.y + 30, f"{k:,} {TIMES} {n:,}", "s"),
        text(c.x + c.width + 10, c.y + 14, "C: sums", "t"),
        text(c.x + c.width + 10, c.y + 30, f"{m:,} {TIMES} {n:,}", "s"),
    ]
    for name, place in (("a", a), ("b", b)):
        ground = element("rect", class_="ground", x=place.x, y=place.y, width=place.width, height=place.height)
        parts.append(element("g", [ground, *_marks(name, paths)], class_=name, **_scale(place)))
    ground = element("rect", class_="ground", x=c.x, y=c.y, width=c.width, height=c.height)
    title = "Result matrix: up and down choose the block tile, left and right the block of channels"
    return element("g", [*parts, _panel("c", places, title, [ground, *_marks("c", paths)])], class_="product")


def _block(record: Tiling, places: Geometry, chosen: Selection | None) -> str:
    """The block tile: a row for each pixel (8 images), a column for each 8 channels, coloured by warp."""
    place = places.panels["block"]
    now, own = set(), -1
    if chosen is not None:
        inside = chosen.inside(record)
        warp, multiply = record.warps[inside.warp], record.multiplies[inside.multiply]
        own = inside.warp
        now = {(warp.pixels[p], warp.columns[multiply.column]) for p in multiply.pixels}
    cells = [
        text(place.x - 16, place.y - 38, "One block tile of C", "h"),
        text(place.x - 16, place.y - 22, _about_block(record), "s"),
    ]
    owners = {
        (pixel, column): warp.number
        for warp in reversed(record.warps)
        for pixel in warp.pixels
        for column in warp.columns
    }
    twins = {w.number: (w.pixels, w.columns) for w in record.warps}
    for (pixel, column), number in sorted(owners.items()):
        x, y = place.x + column * place.sx, place.y + pixel * place.sy
        gap = 0.8 if min(place.sx, place.sy) > 5 else 0.2
        class_ = f"rt w{_colour(record.warps[number])}" + " own" * (own >= 0 and twins[own] == twins[number])
        class_ += " now" * ((pixel, column) in now)
        cells.append(element("rect", x=x + gap, y=y + gap, width=place.sx - 2 * gap, height=place.sy - 2 * gap,
                             class_=class_, data_at=f"{pixel},{column}", data_warp=number))  # fmt: skip
    for pixel in range(0, len(record.pixels), _every(place.sy, 13)):
        row, column = record.pixels[pixel]
        cells += [text(place.x - 6, place.y + (pixel + 0.5) * place.sy + 4, f"{row},{column}", "n e")]
    for warp in record.warps:
        if warp.share == 0 and len(warp.columns) * place.sx > 44 and len(warp.pixels) * place.sy > 12:
            cells.append(text(place.x + warp.columns[0] * place.sx + 5, place.y + warp.pixels[0] * place.sy + 12,
                              f"warp {warp.number}", "in"))  # fmt: skip
    return _panel("block", places, "Block tile: arrow keys choose an instruction", cells)


def _colour(warp: WarpTile) -> int:
    # Three colours: neighbours differ, along the pixels and along the channels.
    return (warp.pixels[0] // len(warp.pixels) + warp.columns[0] // len(warp.columns)) % 3


def _about_block(record: Tiling) -> str:
    pixels = record.shape[0] // 8
    squares = "one square" if pixels == 1 else f"{pixels} squares"
    return f"square: 8 images {TIMES} 8 channels; instruction: {squares}"


def _steps(record: Tiling, places: Geometry, chosen: Selection | None) -> str:
    """The steps along K in the order the kernel takes them; a gap between two stages of the main loop."""
    place = places.panels["steps"]
    now = chosen.inside(record).step if chosen is not None else -1
    w = record.workload
    stages = f"{record.iterations} stage{'s' * (record.iterations > 1)}"
    cells = [
        text(place.x, place.y - 12, f"Along K: {len(record.steps)} steps in {stages}", "h"),
        text(place.x + 280, place.y - 12,
             f"each is one kernel offset of {w.r} {TIMES} {w.s} and {record.shape[2]} channels", "s"),
    ]  # fmt: skip
    stage = record.steps[now].iteration if now >= 0 else -1
    for number, (step, (x, y)) in enumerate(zip(record.steps, places.steps, strict=True)):
        class_ = "st" + " stage" * (step.iteration == stage) + " now" * (number == now)
        words = f"offset ({step.r}, {step.s}), channel block {', '.join(map(str, step.channel_blocks))}"
        box = element("rect", title(words), x=x, y=y, width=place.sx - 1.5, height=place.sy - 2, rx=1.5,
                      class_=class_, data_step=number)  # fmt: skip
        cells.append(box)
    return _panel("steps", places, "Steps along K: left and right arrow keys choose one", cells)
