"""The layout of a duplicate map, shared by the picture without a kernel and the live view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.technique.duplicates import Duplicates
from subbyte_widgets.svg import INK, OKABE_ITO

MOST_CELLS = 800
WIDTH, TOP, GAP = 760.0, 184.0, 8.0
BARS_Y = 16.0
"""The bars come first, so that they stay beside the controls; their room is the same with and without warps."""
LARGEST, WIDEST = 31.0, 38.0
LEFT_X, LEFT_W = 30.0, 250.0
RIGHT_X, RIGHT_W = 348.0, 400.0
TALLEST = 620.0
SMALLEST_FONT, SMALLEST_HATCHED = 9.0, 8.0


@dataclass(frozen=True)
class Grid:
    """Where ``rows`` x ``columns`` cells go: ``x``, ``y`` of the first one, their size, a wider step after every
    ``group`` columns, the size of their labels (0: too small to read, so none)."""

    x: float
    y: float
    width: float
    height: float
    rows: int = 1
    columns: int = 1
    group: int = 0
    font: float = 0.0

    def at(self, row: int, column: int) -> tuple[float, float]:
        """Upper left corner of a cell."""
        gaps = column // self.group if self.group else 0
        return self.x + column * self.width + gaps * GAP, self.y + row * self.height

    def centre(self, row: int, column: int) -> tuple[float, float]:
        """Middle of a cell."""
        x, y = self.at(row, column)
        return x + self.width / 2, y + self.height / 2

    @property
    def inset(self) -> float:
        """Room between a cell and its face."""
        return min(1.0, 0.06 * min(self.width, self.height))

    @property
    def rounding(self) -> float:
        """Radius of a face's corners."""
        return min(3.5, 0.15 * min(self.width, self.height))

    @property
    def hatched(self) -> bool:
        """Whether copies are large enough to be hatched."""
        return min(self.width, self.height) >= SMALLEST_HATCHED

    @property
    def extent(self) -> tuple[float, float]:
        """Width and height of all cells together."""
        x, y = self.at(self.rows - 1, self.columns - 1)
        return x + self.width - self.x, y + self.height - self.y

    def sized_for(self, longest: str) -> Grid:
        """The same grid with a font size at which ``longest`` fits into a cell."""
        font = min(13.0, self.width * (0.46 if len(longest) < 3 else 0.38), 0.8 * self.height)
        shown = font if font >= SMALLEST_FONT else 0.0
        return Grid(self.x, self.y, self.width, self.height, self.rows, self.columns, self.group, shown)

    def as_data(self) -> dict[str, float | bool]:
        """What a browser needs to place cells."""
        numbers = {name: getattr(self, name) for name in ("x", "y", "width", "height", "inset", "rounding", "font")}
        return {**{name: round(value, 2) for name, value in numbers.items()}, "group": self.group, "rows": self.rows,
                "columns": self.columns, "hatched": self.hatched}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """The four grids of a map, and where they end."""

    input: Grid
    lowered: Grid
    tile: Grid
    slots: Grid
    bottom: float


def plan(record: Duplicates) -> Plan:
    """The layout of a record. Raises InvalidInput when the tile has too many entries to draw."""
    if record.entries > MOST_CELLS:
        raise InvalidInput(
            f"This tile has {record.entries:,} lowered entries and the picture draws up to {MOST_CELLS:,}: "
            "choose a smaller tile or kernel."
        )
    r, s, rows = record.workload.r, record.workload.s, len(record.pixels)
    height = max(row for row, _ in record.datum) + 1
    width = max(column for _, column in record.datum) + 1
    most = str(max(record.genuine_of))
    size = min(LARGEST, LEFT_W / width, TALLEST / height)
    area = Grid(LEFT_X, TOP + 34, size, size, height, width).sized_for(most)
    wide = min(WIDEST, (RIGHT_W - (r - 1) * GAP) / (r * s))
    tall = min(LARGEST, TALLEST / rows, 2.5 * wide)
    lowered = Grid(RIGHT_X, TOP + 34, wide, tall, rows, r * s, s).sized_for(most)
    size = min(LARGEST, LEFT_W / record.tile[1], 160 / record.tile[0])
    tile = Grid(LEFT_X, area.at(height, 0)[1] + 44, size, size, *record.tile).sized_for(f"p{rows - 1}")
    size = min(20.0, LEFT_W / record.halo[1], 130 / record.halo[0])
    slots = Grid(LEFT_X, tile.at(record.tile[0], 0)[1] + 46, size, size, *record.halo)
    slots = slots.sized_for(str(record.halo[0] * record.halo[1] - 1))
    bottom = max(slots.at(record.halo[0], 0)[1], lowered.at(rows, 0)[1]) + 16
    return Plan(area, lowered, tile, slots, bottom)


def colour_of(position: tuple[int, int]) -> int:
    """The colour of an input pixel: neighbours differ along a row and along a column, so that stripes stay apart."""
    return (position[1] + 2 * position[0]) % len(OKABE_ITO)


def unread(record: Duplicates, places: Plan) -> list[tuple[int, int]]:
    """Positions of the input that no entry needs, if there is room to show them."""
    if places.input.width <= 8:
        return []
    read = set(record.datum)
    grid = places.input
    return [(i, j) for i in range(grid.rows) for j in range(grid.columns) if (i, j) not in read]


def page_data(record: Duplicates, height: float) -> dict[str, Any]:
    """The record as the live view draws it: short lists, so that moving a slider sends and draws little.

    ``genuine``: per entry; ``pixels``: (genuine index, row, column, slot, colour, zero) per input pixel; ``outputs``:
    (row, column, masked) per output pixel. Raises InvalidInput like :func:`plan`.
    """
    places = plan(record)
    zero = record.padding or (False,) * record.entries
    masked = record.masked or (False,) * len(record.pixels)
    return {
        "size": [WIDTH, height],
        "kernel": [record.workload.r, record.workload.s],
        "genuine": record.genuine_of,
        "pixels": [
            (g, *record.datum[g], record.slot[g], colour_of(record.datum[g]), int(zero[g])) for g, *_ in record.copies
        ],
        "outputs": [(*pixel, int(masked[i])) for i, pixel in enumerate(record.pixels)],
        "unread": unread(record, places),
        "grids": {name: getattr(places, name).as_data() for name in ("input", "lowered", "tile", "slots")},
        "story": record.most_used,
        "gap": GAP,
        "colours": OKABE_ITO,
        "inks": INK,
    }
