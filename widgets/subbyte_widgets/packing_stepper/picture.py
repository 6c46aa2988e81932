"""The picture of the packing stepper: a warp's registers, eight lanes of it enlarged, what is stored, what is saved.

Every number in it is read from the program and its trace. A small box is one value: ``data-o`` says which output value
(``64*tile + 8*image + channel``), its place says register, lane and bits. The browser draws the same boxes from the
same geometry for every step; this file draws them for pages without a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.technique.packing import PackingProgram, PackingTrace, RegisterState, StoredWord
from subbyte_widgets.svg import INK, OKABE_ITO, element, text, title

WIDTH, LEFT, RIGHT = 760.0, 74.0, 742.0
TOP, GAP = 66.0, 5.0
LANES, WINDOW, NIBBLES = 32, 8, 8
ZOOM_HEIGHT, ZOOM_WIDTH = 40.0, 82.0
VALUE_LINES = {-1: 23.0, **{nibble: (15.0, 32.0)[nibble % 2] for nibble in range(NIBBLES)}}
"""Baseline of a value in an enlarged register: a whole register's in the middle, those of neighbours on two lines."""
LOW = len(OKABE_ITO)
"""Tiles from this one on use the colours again, in lower boxes."""
TIMES = "\u00d7"
REGISTERS = {
    "quad": "c0, c1: a lane's two sums of a tile; word: its packed register; peer: the word of the lane that it asks",
    "width8": "h0, h1: images 0 to 3 and 4 to 7 of a tile, one value a lane; out.h0, out.h1: the words that are stored",
}
"""What the names of a scheme's registers mean."""


@dataclass(frozen=True)
class Box:
    """One value in a register: ``nibble`` is -1 for a whole 32-bit register."""

    register: str
    lane: int
    nibble: int
    origin: int
    value: int


def boxes(registers: tuple[RegisterState, ...]) -> Iterator[Box]:
    """The output values that registers hold, from the lowest bits up."""
    for register in registers:
        for lane, (values, origins) in enumerate(zip(register.values, register.origins, strict=True)):
            for nibble, (value, origin) in enumerate(zip(values, origins, strict=True)):
                if value is not None and origin is not None:
                    yield Box(register.name, lane, -1 if register.kind == "int32" else nibble, origin, value)


@dataclass(frozen=True)
class Layout:
    """Where everything of one scheme goes."""

    program: PackingProgram
    trace: PackingTrace

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All registers ever in use, in order of first use, the stored ones last."""
        found = dict.fromkeys(register.name for state in self.trace.states for register in state.registers)
        return tuple(sorted(found, key=lambda name: not name.startswith("tile")))

    @property
    def group(self) -> int:
        """Lanes that work on one image's row together."""
        return 4 if self.program.scheme == "quad" else 8

    @property
    def row(self) -> float:
        """Height of a register in the overview."""
        return 15.0 if len(self.names) <= 10 else 12.0

    @property
    def lane(self) -> float:
        """Width of a lane in the overview."""
        return (RIGHT - LEFT - (LANES // self.group - 1) * GAP) / LANES

    @cached_property
    def lanes(self) -> tuple[float, ...]:
        """Left edge of each lane."""
        return tuple(LEFT + i * self.lane + i // self.group * GAP for i in range(LANES))

    def y(self, name: str) -> float:
        """Upper edge of a register in the overview."""
        return TOP + self.names.index(name) * self.row

    @property
    def zoom(self) -> float:
        """Upper edge of the enlarged lanes."""
        return TOP + len(self.names) * self.row + 76

    @cached_property
    def bottom(self) -> float:
        """Upper edge of the lowest panels."""
        most = max(
            len(shown_registers(state.registers, tile))
            for state in self.trace.states
            for tile in range(self.trace.tiles)
        )
        return self.zoom + most * ZOOM_HEIGHT + 48

    @property
    def height(self) -> float:
        """Height of the picture."""
        return self.bottom + 124


def shown_registers(registers: tuple[RegisterState, ...], tile: int) -> tuple[RegisterState, ...]:
    """The registers to enlarge: all, or those of one tile and the stored ones when they are many."""
    if len(registers) <= 2:
        return registers
    return tuple(r for r in registers if not r.name.startswith("tile") or r.name.startswith(f"tile{tile}."))


def packing_svg(layout: Layout, step: int, follow: int = -1) -> str:
    """The picture of step ``step`` (the last one stores), with one output value followed (-1: none)."""
    trace = layout.trace
    stored = step == len(trace.states)
    registers = trace.states[min(step, len(trace.states) - 1)].registers
    content = [
        element("g", _overview(layout, registers, follow), class_="over"),
        element("g", _zoom(layout, registers, follow, stored), class_="zoom"),
    ]
    return _svg(
        layout, [*_fixed(layout, {r.name for r in registers}), *content, *_lowest(layout, step, stored, follow)]
    )


def skeleton(layout: Layout) -> str:
    """The picture without values, for the browser to fill."""
    empty = [element("g", " ", class_=name) for name in ("over", "zoom")]
    return _svg(layout, [*_fixed(layout, set()), *empty, *_lowest(layout, 0, False, -1)])


def _svg(layout: Layout, parts: list[str]) -> str:
    return element(
        "svg",
        parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:.0f} {layout.height:.0f}",
        class_="sb-step-svg sb-pack-svg",
        role="img",
        aria_label=layout.program.title(),
    )


def _fixed(layout: Layout, live: set[str]) -> list[str]:
    """Headings, lane numbers, and the ground of each register, grey while it is in use."""
    program, tiles = layout.program, layout.trace.tiles
    parts = [
        text(24, 22, "The registers of one warp", "h"),
        text(24, 39, f"32 lanes {TIMES} registers; a box is one value, its colour its tile", "s"),
        *_legend(tiles),
    ]
    parts += [text(x + layout.lane / 2, TOP - 7, i, "n") for i, x in enumerate(layout.lanes)]
    for name in layout.names:
        y, w = layout.y(name), layout.lane - 1.6
        ground = "".join(f"M{x:.2f} {y + 1:.1f}h{w:.2f}v{layout.row - 2:.1f}h-{w:.2f}z" for x in layout.lanes)
        parts.append(element("path", d=ground, class_="reg live" if name in live else "reg", data_reg=name))
        parts.append(text(LEFT - 6, y + layout.row - 3.6, name, "s e small"))
    parts.append(text(24, layout.zoom - 60, REGISTERS[program.scheme], "s"))
    parts.append(text(24, layout.zoom - 24, "Eight lanes, enlarged", "h"))
    parts.append(text(196, layout.zoom - 24, "lowest four bits on the left", "s"))
    low = layout.bottom
    parts += [
        text(24, low - 14, "Lanes with a complete word", "h"),
        text(266, low - 14, "Words stored", "h"),
        text(534, low - 14, "Shared memory for a tile", "h"),
        *_shared_memory(program, low),
    ]
    return parts


def _legend(tiles: int) -> list[str]:
    parts = []
    for tile in range(tiles):
        x = RIGHT - 30 * (tiles - tile) + 4
        parts.append(element("rect", class_=f"box c{tile % LOW}", x=x, width=12, **_rise(8, 12, tile)))
        parts.append(text(x + 15, 19, tile, "s"))
    return [text(RIGHT - 30 * tiles - 4, 19, "tile", "s e"), *parts]


def _rise(y: float, height: float, tile: int) -> dict[str, Any]:
    """Place and height of a tile's box within a register: lower for tiles that use a colour again."""
    return {"y": y + 0.45 * height, "height": 0.55 * height} if tile >= LOW else {"y": y, "height": height}


def _overview(layout: Layout, registers: tuple[RegisterState, ...], follow: int) -> list[str]:
    unit = (layout.lane - 1.6) / NIBBLES
    parts = []
    for box in boxes(registers):
        tile = box.origin // 64
        x = layout.lanes[box.lane] + max(box.nibble, 0) * unit
        place = _rise(layout.y(box.register) + 1, layout.row - 2, tile)
        width = layout.lane - 1.6 if box.nibble < 0 else unit
        on = " on" if box.origin == follow else ""
        parts.append(element("rect", class_=f"box c{tile % LOW}{on}", data_o=box.origin, x=x, width=width, **place))
    return sorted(parts, key=lambda part: " on" in part)


def address(words: list[int]) -> str:
    """Where a lane stores its words, in bytes from the start of the first block; empty when it stores none."""
    return "to byte " + ", ".join(str(4 * word) for word in words) if words else ""


def window(registers: tuple[RegisterState, ...], follow: int) -> int:
    """First of the eight lanes to enlarge: where the followed value is, else lane 0."""
    return next((box.lane // WINDOW * WINDOW for box in boxes(registers) if box.origin == follow), 0)


def _zoom(layout: Layout, registers: tuple[RegisterState, ...], follow: int, stored: bool) -> list[str]:
    first, chosen = window(registers, follow), shown_registers(registers, max(follow, 0) // 64)
    y0, x0 = layout.zoom, LEFT
    parts = [text(x0 + (i + 0.5) * ZOOM_WIDTH, y0 - 5, f"lane {first + i}", "n") for i in range(WINDOW)]
    rows = {register.name: y0 + i * ZOOM_HEIGHT for i, register in enumerate(chosen)}
    for i in range(WINDOW if stored else 0):
        words = address([store.word for store in layout.trace.stores if store.lane == first + i])
        parts.append(text(x0 + (i + 0.5) * ZOOM_WIDTH, y0 + len(rows) * ZOOM_HEIGHT + 12, words, "n address"))
    cell: dict[str, Any] = {"class_": "cell", "width": ZOOM_WIDTH - 4, "height": ZOOM_HEIGHT - 4, "rx": 2}
    for name, y in rows.items():
        parts.append(text(x0 - 6, y + 23, name, "s e small"))
        parts += [element("rect", x=x0 + i * ZOOM_WIDTH + 1, y=y + 1, **cell) for i in range(WINDOW)]
    unit = (ZOOM_WIDTH - 4) / NIBBLES
    values: list[str] = []
    frames: list[str] = []
    for box in boxes(chosen):
        if first <= box.lane < first + WINDOW:
            tile, whole = box.origin // 64, box.nibble < 0
            x = x0 + (box.lane - first) * ZOOM_WIDTH + 1 + max(box.nibble, 0) * unit
            width, y = (ZOOM_WIDTH - 4 if whole else unit), rows[box.register]
            class_ = f"box c{tile % LOW}{' low' if tile >= LOW else ''}"
            ink = "i0" if INK[tile % LOW] == "#ffffff" else "i1"
            size: dict[str, Any] = {"y": y + 1, "height": ZOOM_HEIGHT - 4}
            parts.append(element("rect", class_=class_, data_o=box.origin, x=x, width=width, **size))
            values.append(text(x + width / 2, y + VALUE_LINES[box.nibble], box.value, f"v {ink}", data_o=box.origin))
            if box.origin == follow:
                frames.append(element("rect", class_="frame", x=x, width=width, **size))
    return [*parts, *values, *frames]


def _lowest(layout: Layout, step: int, stored: bool, follow: int) -> list[str]:
    trace, low = layout.trace, layout.bottom
    useful = [state.useful_lanes for state in trace.states]
    useful.append(useful[-1])
    wide = min(26.0, 208 / len(useful))
    parts = []
    for i, lanes in enumerate(useful):
        x, class_ = 24 + i * wide, "use now" if i == step else "use"
        ground = element("rect", class_="ground", x=x, y=low + 4, width=wide - 3, height=72)
        bar = element("rect", class_="full", x=x, y=low + 4 + 72 * (1 - lanes / LANES), width=wide - 3,
                      height=72 * lanes / LANES)  # fmt: skip
        parts.append(element("g", ground + bar, class_=class_, data_step=i))
    parts.append(element("text", f"{useful[step]} of {LANES} lanes", x=24.0, y=low + 96, class_="t lanes"))
    blocks = -(-trace.tiles // 4)
    cell = min(54.0, 236 / (4 * blocks))
    parts += [
        _word(store, 266 + store.word // 32 * (4 * cell + 8), low + 4, cell, stored, follow) for store in trace.stores
    ]
    parts.append(text(266, low + 96, f"{len(trace.stores)} words: images down, tiles across", "s"))
    return parts


def _word(store: StoredWord, x: float, y: float, width: float, stored: bool, follow: int) -> str:
    row, column = divmod(store.word % 32, 4)
    mine = follow >= 0 and follow // 8 == 8 * store.tile + store.row
    box = {"x": x + column * width + 0.5, "y": y + row * 9.2, "width": width - 2.5, "height": 7.6}
    hint = (
        f"Lane {store.lane} stores word {store.word} (byte {4 * store.word}) of the block: {store.value:#010x}, "
        f"image {store.row}, tile {store.tile}"
    )
    face = element("rect", title(hint), class_=f"face c{store.tile % LOW}", rx=1.5, **box)
    class_ = "word" + " stored" * stored + " on" * (mine and stored)
    return element("g", face, class_=class_, data_word=store.word, data_first=64 * store.tile + 8 * store.row)


def _shared_memory(program: PackingProgram, y: float) -> list[str]:
    before, after = program.shared_bytes_before, program.shared_bytes_after
    full = RIGHT - 534 - 4
    return [
        text(534, y + 14, f"sums of 32 bits: {before} bytes", "s"),
        element("rect", class_="bar b0", x=534, y=y + 20, width=full, height=16, rx=2),
        text(534, y + 60, f"packed in registers: {after} bytes", "s"),
        element("rect", class_="bar b1", x=534, y=y + 66, width=full * after / before, height=16, rx=2),
        text(534, y + 96, f"{program.shuffles_per_tile:g} shuffles for each tile", "s"),
    ]
