"""The picture of :class:`~subbyte.sparse.LayerBars`: a row for each layer, a bar for each way to multiply it."""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.sparse.bars import BARS, LayerBars
from subbyte_widgets._turned import panel_svg
from subbyte_widgets.svg import element, text

WIDTH, LEFT, END, TOP = 760.0, 166.0, 726.0, 84.0
ROWS_HIGH, MOST_HIGH, LEAST_HIGH = 392.0, 46.0, 15.0
"""Height of all rows together unless they get too low, and of a row."""
MOST_LETTERS = 18
CLASSES = {"dense": "dense", "weight": "weight", "activation": "activation", "dual": "dual", "2:4": "half"}
LABELS = {"dense": "dense", "weight": "weights' zeros", "activation": "activations' zeros", "dual": "both",
          "2:4": "2:4, nominal"}  # fmt: skip
OVER = {"same_unit": "the same unit dense", "dense_core": "the dense core"}


@dataclass(frozen=True)
class Drawing:
    """A record with the positions of its parts."""

    record: LayerBars
    over: str

    @property
    def high(self) -> float:
        """Height of a row."""
        return max(LEAST_HIGH, min(MOST_HIGH, ROWS_HIGH / len(self.record.cycles.layers)))

    @property
    def bottom(self) -> float:
        """Where the rows end."""
        return TOP + self.high * len(self.record.cycles.layers)

    @property
    def most(self) -> float:
        """The largest speed-up, rounded up to a half."""
        layers = self.record.cycles.layers
        found = [self.record.speedup(one, bar, self.over) for one in layers for bar in BARS]
        found += [one.speedup for one in self.record.measured]
        return max(1.5, -(-max(found) // 0.5) * 0.5)

    def wide(self, speedup: float) -> float:
        """Length of a bar."""
        return speedup / self.most * (END - LEFT)


def bars_svg(record: LayerBars, over: str, chosen: int = -1) -> str:
    """The picture over one of the two baselines, with one of the layers marked."""
    drawing = Drawing(record, over)
    content = [
        text(24, 22, f"{record.cycles.network} on {record.cycles.machine.name}: times {OVER[over]}", "h"),
        text(24, 40, "a model in cycles, im2col implicit, memory included; measured only where a record exists", "s"),
        *_legend(record), *_axis(drawing),
        *(_layer(drawing, number, number == chosen) for number in range(len(record.cycles.layers))),
    ]  # fmt: skip
    label = "Layers: up and down arrow keys choose one"
    return panel_svg(content, (WIDTH, drawing.bottom + 26), "sb-bars-svg", label)


def _legend(record: LayerBars) -> list[str]:
    drawn, x = [], 24.0
    for bar, words in LABELS.items():
        drawn.append(element("rect", class_=CLASSES[bar], x=x, y=54, width=12, height=12))
        drawn.append(text(x + 17, 64, words))
        x += 36 + 6.9 * len(words)
    words = "measured over dense twin" if record.measured else "nothing measured"
    drawn.append(element("path", class_="measured", d=_diamond(x + 6, 60)))
    return [*drawn, text(x + 17, 64, words)]


def _diamond(x: float, y: float) -> str:
    return f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"


def _axis(drawing: Drawing) -> list[str]:
    drawn = []
    step = 0.5 if drawing.most <= 4 else 1.0
    for number in range(1 + int(drawing.most / step)):
        x = LEFT + drawing.wide(number * step)
        kind = "grid one" if number * step == 1 else "grid"
        drawn.append(element("path", class_=kind, d=f"M{x:.1f} {TOP - 6:.1f}V{drawing.bottom + 4:.1f}"))
        drawn.append(text(x, drawing.bottom + 18, f"{number * step:g}", "s m"))
    return drawn


def _layer(drawing: Drawing, number: int, chosen: bool) -> str:
    record, one = drawing.record, drawing.record.cycles.layers[number]
    y, high = TOP + number * drawing.high, drawing.high
    name = one.name.partition("@")[0].partition(".")[2] or one.name
    name = name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "\u2026"
    thick = (high - 3) / len(BARS)
    parts = [
        element("rect", class_="back", x=18.0, y=round(y, 1), width=WIDTH - 28, height=round(high, 1), rx=3),
        text(LEFT - 8, y + high / 2 + 4, name if one.count == 1 else f"{one.count} x {name}", "e name"),
    ]
    for place, bar in enumerate(BARS):
        wide = drawing.wide(record.speedup(one, bar, drawing.over))
        parts.append(element("rect", class_=f"bar {CLASSES[bar]}", x=LEFT, y=round(y + 1.5 + place * thick, 2),
                             width=round(wide, 2), height=round(max(thick - 0.6, 1.6), 2)))  # fmt: skip
    parts += [element("path", class_="measured", d=_diamond(LEFT + drawing.wide(found.speedup), y + high / 2))
              for found in record.of_layer(one)]  # fmt: skip
    return element("g", parts, class_="layer on over" if chosen else "layer", data_item=number)
