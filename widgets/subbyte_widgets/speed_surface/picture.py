"""The picture of :class:`~subbyte.sparse.SpeedMap`: a heat map over the densities, contours, layers,
break-even lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from subbyte.sparse.maps import OVER, SpeedMap
from subbyte_widgets._turned import panel_svg
from subbyte_widgets.svg import element, text, title

WIDTH, LEFT, TOP, SIDE = 760.0, 86.0, 62.0, 352.0
LEGEND = LEFT + SIDE + 34
HEIGHT = TOP + SIDE + 56
STEPS = (1.0, 1.25, 1.6, 2.2, 3.2, 5.0)
"""Lower limits of the colours; below the first one it is the colour for slower than dense."""
NAMES = 17.0
"""Least distance between the names of two break-even lines, which may be close together."""
CONTOURS = {"same_unit": (2.0, 4.0), "dense_core": (1.0, 2.0, 4.0), "compute": (2.0, 4.0),
            "compute_dense_core": (1.0, 2.0, 4.0)}  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of densities: sparse ones at the lower left."""

    record: SpeedMap

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a cell."""
        return SIDE / len(self.record.surface.weights), SIDE / len(self.record.surface.activations)

    def x(self, weights: float) -> float:
        """The position of a density of the weights: cells are centred on theirs, and positions between them are
        interpolated linearly."""
        return LEFT + self.size[0] * (0.5 + _place(self.record.surface.weights, weights))

    def y(self, activations: float) -> float:
        """The same of the activations, upwards."""
        return TOP + SIDE - self.size[1] * (0.5 + _place(self.record.surface.activations, activations))


def _place(axis: tuple[float, ...], density: float) -> float:
    """Number of a density on its axis, a fraction between two; beyond the ends half a cell at most."""
    if len(axis) == 1:
        return 0.0
    at = next((i for i, one in enumerate(axis[1:-1]) if density < one), len(axis) - 2)
    share = (density - axis[at]) / (axis[at + 1] - axis[at])
    return max(-0.5, min(len(axis) - 0.5, at + share))


def colour(speedup: float) -> int:
    """0 for slower than dense, then the step."""
    return sum(speedup >= step - 1e-9 for step in STEPS)


def surface_svg(record: SpeedMap, over: str, chosen: int = -1) -> str:
    """The map over one of the baselines, with one cell marked."""
    drawing = Drawing(record)
    where = record.surface
    content = [
        text(24, 22, f"{where.workload} on {where.machine.name}: times {OVER[over]}", "h"),
        text(24, 40, f"a model in cycles; zeros {where.kind} (synthetic), im2col {where.im2col}", "s"),
        *_axes(drawing), *_cells(drawing, over, chosen), *_contours(drawing, over), *_lines(drawing),
        *_dots(drawing), *_legend(drawing, over),
    ]  # fmt: skip
    label = "Densities: arrow keys choose a pair, Escape none"
    return panel_svg(content, (WIDTH, HEIGHT), "sb-surface-svg", label)


def _cells(drawing: Drawing, over: str, chosen: int) -> list[str]:
    """One for each pair, numbered along the weights, densest activations first."""
    wide, high = drawing.size
    drawn: list[str] = []
    marked: list[str] = []
    grid = drawing.record.grid(over)
    rows = len(grid)
    for line in range(rows):
        for column, value in enumerate(grid[rows - 1 - line]):
            number = line * len(grid[0]) + column
            over_x, over_y = column < len(grid[0]) - 1, line < rows - 1  # under the next, or the ground shows between
            on = number == chosen
            box = element("rect", class_=f"cell h{colour(value)}" + (" on over" if on else ""), data_item=number,
                          x=round(LEFT + column * wide, 1), y=round(TOP + line * high, 1),
                          width=round(wide + over_x, 1), height=round(high + over_y, 1))  # fmt: skip
            (marked if on else drawn).append(box)
    return drawn + marked


def _axes(drawing: Drawing) -> list[str]:
    drawn = []
    for axis, across in ((drawing.record.surface.weights, True), (drawing.record.surface.activations, False)):
        every = max(1, round(len(axis) / 10))
        for number in range(len(axis) - 1, -1, -every):
            if across:
                drawn.append(text(drawing.x(axis[number]), TOP + SIDE + 17, f"{axis[number]:g}", "s m"))
            else:
                drawn.append(text(LEFT - 7, drawing.y(axis[number]) + 4, f"{axis[number]:g}", "s e"))
    middle = TOP + SIDE / 2
    return [*drawn, text(LEFT + SIDE / 2, TOP + SIDE + 38, "density of the weights", "m"),
            text(34, middle, "density of the activations", "m", transform=f"rotate(-90 34 {middle:.0f})")]  # fmt: skip


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _contours(drawing: Drawing, over: str) -> list[str]:
    drawn = []
    for level in CONTOURS[over]:
        points = [(drawing.x(w), drawing.y(a)) for a, w in drawing.record.contour(over, level)]
        if len(points) < 2:
            continue
        kind = "contour one" if level == 1 else "contour"
        drawn.append(element("path", class_="under", d=_path(points)))
        drawn.append(element("path", class_=kind, d=_path(points), data_level=f"{level:g}"))
        x, y = points[len(points) // 2]
        drawn.append(text(x + 6, y - 4, f"{level:g}", "level"))
    return drawn


def _lines(drawing: Drawing) -> list[str]:
    """Break-even lines of software; one that is known at a single pair is a diamond."""
    drawn = []
    for number, one in enumerate(drawing.record.breakevens):
        points = [(drawing.x(w), drawing.y(a)) for a, w in one.points]
        x, y = points[-1]
        class_ = f"soft k{number % 3}"
        if len(points) > 1:
            drawn.append(element("path", class_=class_, d=_path(points)))
        else:
            drawn.append(element("path", class_=f"{class_} dot", d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"))
        drawn.append(text(x + 9, y - 6 - NAMES * number * (len(points) > 1), one.path, "level"))
    return drawn


def _dots(drawing: Drawing) -> list[str]:
    return [
        element("circle", title(one.name), class_="layer", cx=round(drawing.x(one.weights), 1),
                cy=round(drawing.y(one.activations), 1), r=5)
        for one in drawing.record.layers
    ]  # fmt: skip


def _legend(drawing: Drawing, over: str) -> list[str]:
    record = drawing.record
    names = [f"below {STEPS[0]:g}: slower", *(f"{low:g} to {high:g}" for low, high in pairwise(STEPS)),
             f"{STEPS[-1]:g} and more"]  # fmt: skip
    drawn = [text(LEGEND, TOP + 10, "times faster", "k")]
    for number in range(len(names) - 1, -1, -1):
        y = TOP + 20 + 22 * (len(names) - 1 - number)
        drawn.append(element("rect", class_=f"cell h{number}", x=LEGEND, y=y, width=22, height=16))
        drawn.append(text(LEGEND + 30, y + 13, names[number]))
    y = TOP + 30 + 22 * len(names) + 14
    if record.layers:
        drawn.append(element("circle", class_="layer", cx=LEGEND + 11, cy=y - 4, r=5))
        drawn.append(text(LEGEND + 30, y, f"{len(record.layers)} layers by density"))
        y += 24
    for words in _notes(record, over):
        drawn.append(text(LEGEND, y, words, "s"))
        y += 17
    return drawn


def _notes(record: SpeedMap, over: str) -> list[str]:
    dense = record.grid(over)[-1][-1]
    notes = (
        [f"nothing sparse: {dense:.2f}"] if record.surface.activations[-1] == record.surface.weights[-1] == 1 else []
    )
    if "dense_core" in over:
        notes += ["line 1: as fast as dense", "line 2: as fast as 2:4,", "at its nominal rate"]
    if not record.breakevens:
        notes += ["no measured break-even", "of software is given"]
    return notes
