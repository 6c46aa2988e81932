"""The picture of :class:`~subbyte.technique.bits.BitSum`: one tap's bits, its counts, and the parts of the sum.

A *place* is up to 32 channels of a tap. Every number and bit comes from the record; ``step`` determines how much is
visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from subbyte.technique.bits import BitSum, BitTap, PlaneSet, planes
from subbyte_widgets._revealed import Place, bits_row, marks_row, part, words_row
from subbyte_widgets.svg import element, text

WIDTH, LEFT, RIGHT, TOP = 760.0, 236.0, 744.0, 66.0
GRID_WIDE, MANY = 44.0, 14
"""Width of a count; the number of rows from which they get lower."""
WINDOW, NARROW = 32, 2
"""Channels side by side; half as many if a value has more letters than this."""
MOST_PLACES = 512
ENCODE, FIRST_PAIR = 1, 2
PARTS = ("bits set in both", "activation bits", "weight bits", "products")
TIMES = "\u00d7"


@dataclass(frozen=True)
class Drawing:
    """A record with the data derived from it for its picture."""

    record: BitSum

    @cached_property
    def sets(self) -> dict[str, PlaneSet]:
        """How the values of ``activations`` and ``weights`` are sums of bits."""
        return {one.what: one for one in planes(self.record.workload).planes}

    @property
    def bits(self) -> tuple[int, int]:
        """Number of bits of a weight and of an activation."""
        return len(self.sets["weights"].weights), len(self.sets["activations"].weights)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Planes of weights and of activations, in the order of a tap's counts."""
        p, q = self.bits
        return [(s, t) for s in range(p) for t in range(q)]

    @cached_property
    def window(self) -> int:
        """Number of channels in a place."""
        types = self.record.workload.precision
        values = {*types.weights.values, *types.activations.values, types.pad_value}
        return WINDOW if max(len(str(value)) for value in values) <= NARROW else WINDOW // 2

    @property
    def windows(self) -> int:
        """Number of places in a tap."""
        return -(-self.record.workload.c // self.window)

    @cached_property
    def shown(self) -> list[int]:
        """Which of the terms U, S, P and n have a factor."""
        return [i for i, factor in enumerate(self.record.factors) if factor or i == 0]

    def step_of(self, number: int) -> int:
        """The step that adds one of U, S, P and n; for 4 the last one, that of the sum."""
        return FIRST_PAIR + len(self.pairs) + sum(i < number for i in self.shown)

    @cached_property
    def rows(self) -> list[tuple[str, str, int, int]]:
        """Name, label, first step and line of each row; products of planes share the last line."""
        p, q = self.bits
        found: list[tuple[str, str, int, int]] = []
        for letter, what, bits in (("x", "pixel", q), ("w", "weight", p)):
            line = len(found)
            found.append((f"{letter}v", f"{what}: value", 0, line))
            if bits > 1:
                found.append((f"{letter}c", "code", ENCODE, line + 1))
            for t in range(bits):
                label = "bit, its code" if bits == 1 else f"plane {letter}{t}, {TIMES} {self._weight(what, t)}"
                found.append((f"{letter}{t}", label, ENCODE, len(found)))
        return found

    def _weight(self, what: str, plane: int) -> int:
        return self.sets["weights" if what == "weight" else "activations"].weights[plane]

    @property
    def row(self) -> float:
        """Height of a row."""
        return 18.0 if len(self.rows) < MANY else 15.5

    @property
    def below(self) -> float:
        """Where the counts and the sum start."""
        return TOP + (len(self.rows) + 2) * self.row + 24

    @property
    def height(self) -> float:
        """Height of the picture."""
        return self.below + max(20 + (self.bits[0] + 1) * self.row * 1.1, (len(self.shown) + 1) * 23 + 30) + 8


def places(drawing: Drawing) -> list[Place]:
    """The contents of the rows for each place, tap by tap."""
    found: list[Place] = []
    for number, tap in enumerate(drawing.record.taps):
        known = {"w": drawing.record.codes(tap)[0], "x": drawing.record.codes(tap)[1]}
        values = dict(zip("wx", drawing.record.values(tap), strict=True))
        firsts = range(0, drawing.record.workload.c, drawing.window)
        found += [_place(drawing, number, first, known, values) for first in firsts[: MOST_PLACES - len(found)]]
    return found


def _place(
    drawing: Drawing,
    number: int,
    first: int,
    codes: Mapping[str, tuple[int, ...]],
    values: Mapping[str, tuple[int, ...]],
) -> Place:
    record, tap = drawing.record, drawing.record.taps[number]
    channels = slice(first, first + drawing.window)
    rows: dict[str, list[str] | str] = {}
    for letter, bits in zip("wx", drawing.bits, strict=True):
        own = codes[letter][channels]
        rows |= {f"{letter}v": [*map(str, values[letter][channels])], f"{letter}c": [*map(str, own)]}
        for t in range(bits):
            rows[f"{letter}{t}"] = "".join(str(code >> t & 1) for code in own)
    last = min(first + drawing.window, record.workload.c) - 1
    rows |= {f"count{i}": [str(count)] for i, count in enumerate(tap.popcounts)}
    rows["taps"] = [str(int(i == number)) for i in range(len(record.taps))]
    rows["where"] = [f"channels {first} to {last} of tap ({tap.r}, {tap.s})"]
    say = {"tap": f"({tap.r}, {tap.s})", "first": str(first), "last": str(last), "beyond": _beyond(record, tap)}
    return Place(rows, say)


def _beyond(record: BitSum, tap: BitTap) -> str:
    if tap.inside:
        return ""
    value = record.workload.precision.pad_value
    return f" The pixel lies beyond the border: its value is {value}, its bits are those of code {record.fill}."


def bits_svg(drawing: Drawing, place: Place, step: int) -> str:
    """The picture at a place after a step."""
    record = drawing.record
    names = f"image {record.image}, output pixel {record.at}, output channel {record.channel}"
    head = [
        text(24, 22, "One output from its bits", "h"),
        text(24, 40, f"{record.workload.label}: {names}", "s"),
    ]
    content = [*head, *_taps(drawing, place), *_strip(drawing, place, step), *_counts(drawing, place, step)]
    content += _sum(drawing, step)
    return element(
        "svg", content, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {drawing.height:.0f}",
        class_="sb-step-svg sb-bits-svg", role="img", aria_label=record.title(),
    )  # fmt: skip


def _taps(drawing: Drawing, place: Place) -> list[str]:
    """The window: a box for each tap, dashed outside the image."""
    record, wl = drawing.record, drawing.record.workload
    box = min(22.0, 92 / wl.s, 140 / wl.r)
    cells = [
        ("rect", "tap" + "" if tap.inside else "tap beyond",
         {"x": 24 + tap.s * box, "y": TOP + 14 + tap.r * box, "width": box - 2, "height": box - 2, "rx": 2,
          "data_go": min(number * drawing.windows, MOST_PLACES - 1)})
        for number, tap in enumerate(record.taps)
    ]  # fmt: skip
    return [text(24, TOP + 6, "taps of the window", "s"), marks_row("taps", cells, place.rows["taps"])]


def _strip(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The channels of the place: values, codes, planes, and both planes' bits."""
    size = ((RIGHT - LEFT) / drawing.window, drawing.row)
    xs = [LEFT + i * size[0] for i in range(drawing.window)]
    drawn = [words_row("where", [(LEFT, TOP - 6)], place.rows["where"], "s")]
    for name, label, first, line in drawing.rows:
        y = TOP + (line + (name[0] == "w") * 0.4) * size[1]
        base = y + size[1] / 2 + 4
        row = [text(LEFT - 8, base, label, "e" if name.endswith("v") else "s e")]
        if name[1:].isdigit():
            row.append(element("g", bits_row(name, [(x, y) for x in xs], size, place.rows[name]), class_=name[0]))
        else:
            row.append(words_row(name, [(x + size[0] / 2 - 0.75, base) for x in xs], place.rows[name], "m"))
        drawn.append(part(row, step, first))
    y, last = TOP + (len(drawing.rows) + 0.8) * size[1], FIRST_PAIR + len(drawing.pairs) - 1
    for i, (s, t) in enumerate(drawing.pairs):
        both = bits_row(f"w{s}&x{t}", [(x, y) for x in xs], size, place.row(f"w{s}&x{t}"))
        until = None if FIRST_PAIR + i == last else FIRST_PAIR + i
        label = text(LEFT - 8, y + size[1] / 2 + 4, f"w{s} and x{t}" if len(drawing.pairs) > 1 else "both bits", "e")
        drawn.append(part([label, element("g", both, class_="both")], step, FIRST_PAIR + i, until))
    return drawn


def _counts(drawing: Drawing, place: Place, step: int) -> list[str]:
    """The tap's counts: planes of weights below each other, of activations beside each other."""
    p, q = drawing.bits
    y, high = drawing.below, drawing.row * 1.1
    drawn = [text(24, y, "Bits set in both, all channels of the tap", "h")]
    drawn += [text(24 + (t + 1.5) * GRID_WIDE, y + 17, f"x{t}", "s m") for t in range(q)]
    drawn += [text(16 + GRID_WIDE, y + 17 + (s + 1) * high, f"w{s}", "s e") for s in range(p)]
    for i, (s, t) in enumerate(drawing.pairs):
        x, line = 24 + (t + 1.5) * GRID_WIDE, y + 17 + (s + 1) * high
        box = element(
            "rect",
            class_="count",
            x=x - GRID_WIDE / 2 + 1,
            y=line - high + 5.5,
            width=GRID_WIDE - 2,
            height=high - 2,
            rx=2,
        )
        row = words_row(f"count{i}", [(x, line)], place.rows[f"count{i}"])
        drawn.append(part([box, row], step, FIRST_PAIR + i))
    return drawn


def _sum(drawing: Drawing, step: int) -> list[str]:
    """U, S, P and n with their factors, and the result."""
    record, y, x = drawing.record, drawing.below, 456.0
    drawn = [text(x, y, f"Y = {record.formula}", "h")]
    for line, number in enumerate(drawing.shown):
        factor, value = record.factors[number], record.parts[number]
        row = y + 24 + line * 23
        words = [
            text(x, row, "USPn"[number], "key"), text(x + 16, row, PARTS[number], "s"),
            text(x + 168, row, f"{value:,}", "e"), text(x + 214, row, f"{TIMES} {factor}", "e"),
            text(RIGHT, row, f"{factor * value:,}", "e"),
        ]  # fmt: skip
        drawn.append(part(words, step, drawing.step_of(number)))
    row = y + 30 + len(drawing.shown) * 23
    rule = element("path", class_="rule", d=f"M{x:.0f} {row - 17:.0f}H{RIGHT:.0f}")
    result = [rule, text(x, row, "Y", "key"), text(x + 16, row, f"by the values {record.reference:,}", "s"),
              text(RIGHT, row, f"{record.total:,}", "e key")]  # fmt: skip
    return [*drawn, part(result, step, drawing.step_of(4))]
