"""Where the panels of the tiling picture are, and how many units a position takes in each."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.technique.tiling import Band, Tiling

WIDTH = 760.0
MAP = 150.0
PRODUCT = 150.0


@dataclass(frozen=True)
class Place:
    """A panel: its corner, the units of one column and one row, its size."""

    x: float
    y: float
    sx: float
    sy: float
    columns: int
    rows: int

    @property
    def width(self) -> float:
        """Units across."""
        return self.columns * self.sx

    @property
    def height(self) -> float:
        """Units down."""
        return self.rows * self.sy


@dataclass(frozen=True)
class Geometry:
    """All panels, the corner of each step, and the height of the picture."""

    panels: dict[str, Place]
    steps: list[tuple[float, float]]
    height: float


def geometry(record: Tiling) -> Geometry:
    """The places of the panels for one tiling."""
    w = record.workload
    scale = MAP / max(w.h + 2 * w.pad, w.w + 2 * w.pad)
    top = 50.0
    panels = {"in": Place(20 + w.pad * scale, top + w.pad * scale, scale, scale, w.w, w.h)}
    scale = MAP / max(w.p, w.q)
    panels["out"] = Place(242, top, scale, scale, w.q, w.p)
    rows, columns = _reads(record.rows[0]), _reads(record.columns[0])
    size = min(22.0, 258 / columns, (MAP - 18) / rows)
    panels["loupe"] = Place(490, top + 18, size, size, columns, rows)
    second = top + MAP + 66
    panels["b"] = Place(152, second, 100 / record.padded[1], 44 / record.padded[2], record.padded[1], record.padded[2])
    panels["a"] = Place(20, second + 58, 110 / record.padded[2], PRODUCT / record.padded[0], record.padded[2],
                        record.padded[0])  # fmt: skip
    panels["c"] = Place(152, second + 58, 100 / record.padded[1], PRODUCT / record.padded[0], record.padded[1],
                        record.padded[0])  # fmt: skip
    across, down = record.block_channels // 8, len(record.pixels)
    panels["block"] = Place(410, second + 26, min(34.0, 330 / across), min(24.0, (PRODUCT + 32) / down), across, down)
    third = second + 58 + PRODUCT + 46
    steps, height, size = _step_places(record, third)
    line = round((max(x for x, _ in steps) - 20) / size) + 1
    panels["steps"] = Place(20, third, size, 18.0, line, round((height - third) / 18))
    return Geometry(panels, steps, height + 14)


def _reads(band: Band) -> int:
    return len({at for reads in band.reads for at in reads})


def _step_places(record: Tiling, top: float) -> tuple[list[tuple[float, float]], float, float]:
    """Corners of the steps, line by line, with a gap before each new stage; then the lower end and a step's width."""
    count, right = len(record.steps), WIDTH - 18
    size = next(size for size in (20.0, 12.0, 8.0, 6.0, 4.0) if count * size / (WIDTH - 40) <= 4 or size == 4.0)
    together = count // record.iterations * size
    x, y, places = 20.0, top, []
    for number, step in enumerate(record.steps):
        if number and step.iteration != record.steps[number - 1].iteration:
            x += 6
            if x + together > right >= 20 + together:
                x, y = 20.0, y + 18
        if x + size > right:
            x, y = 20.0, y + 18
        places.append((x, y))
        x += size
    return places, y + 18, size
