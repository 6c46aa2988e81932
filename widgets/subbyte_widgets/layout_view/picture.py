"""The picture of one warp access: the 32 lanes, the memory they touch, and what the same access costs in each layout.

Everything a lane touches carries ``data-lanes``; each lane's sentence is the ``title`` of its square.
"""

from __future__ import annotations

from collections.abc import Mapping

from subbyte.technique.access_map import AccessMap, MapRow, Piece
from subbyte.technique.accesses import Access
from subbyte_widgets.svg import element, text, title

WIDTH, TOP = 760.0, 98.0
LANE_X, LANE = 18.0, 23.0
GRID_X, WORD_W, SECTOR_GAP, ROW_H = 288.0, 14.25, 3.0, 18.0
MOST_ROWS = 40
BAR_X, BAR_W = 84.0, 62.0
TIMES = "\u00d7"
NAMES = {"nhwc": "NHWC", "hwnc": "HWNC", "nhwcnc": "NHWCnc"}
KINDS = {
    "tile": "one operand tile",
    "activation load": "activation load",
    "weight load": "weight load",
    "activation fragment": "activation fragment",
    "weight fragment": "weight fragment",
    "sum spill": "spill of sums",
    "sum read": "read of sums",
    "output store": "output store",
}
ABOUT = {
    "tile": "8 lanes fetch 8 images x 32 channels of one pixel: one operand of a matrix instruction",
    "activation load": "input pixels, from global to shared memory",
    "weight load": "weights as they were prepared, from global to shared memory",
    "activation fragment": "one genuine input pixel, from shared memory to registers",
    "weight fragment": "weights of up to four 8-channel tiles, from shared memory to registers",
    "sum spill": "int32 sums to shared memory: register-level packing is off",
    "sum read": "int32 sums back from shared memory, to be packed",
    "output store": "packed output words, from registers to global memory",
}


def access_svg(
    drawn: AccessMap, kind: str, layout: str | None, others: Mapping[str, Access], count: int, lane: int = -1
) -> str:
    """One access; ``layout`` None: it is the same in every layout. ``others``: this access by layout, to compare."""
    access = drawn.access
    rows = drawn.rows[:MOST_ROWS]
    pieces = [piece for piece in drawn.pieces if piece.row < MOST_ROWS]
    name = "in every layout" if layout is None else f"in {NAMES[layout]}"
    head = f"{KINDS[kind].capitalize()} {name}"
    height = max(TOP + len(rows) * (ROW_H + 3) + 20, TOP + 4 * LANE + 188)
    parts = [
        text(LANE_X, 20, head, "h"),
        text(LANE_X, 40, ABOUT[kind].replace(" x ", f" {TIMES} "), "s"),
        _lanes(access, lane),
        _cost(access, count),
        _bars(others, layout) if layout is not None else "",
        _memory(drawn, rows, pieces, lane),
    ]
    return element(
        "svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        class_="sb-access-svg" + (" chosen" if lane >= 0 else ""), role="group", aria_label=access.title(),
    )  # fmt: skip


def in_words(access: Access, layout: str) -> str:
    """The access in one sentence."""
    where = "" if access.sectors is None else f" in {NAMES[layout]}"
    return f"One warp's {access.title()}{where}."


def _lanes(access: Access, chosen: int) -> str:
    """The warp: 32 squares, 8 in a row; an inactive lane is an outline."""
    cells = [text(LANE_X, TOP - 28, "Lanes of the warp", "b")]
    cells += [element("rect", class_="ring", x=LANE_X - 5, y=TOP - 5, width=8 * LANE + 10, height=4 * LANE + 10, rx=6)]
    for lane, address in enumerate(access.addresses):
        x, y = LANE_X + lane % 8 * LANE, TOP + lane // 8 * LANE
        class_ = f"lane c{lane // 8}" + " idle" * (address is None) + " on" * (lane == chosen)
        box = element("rect", x=x + 1, y=y + 1, width=LANE - 2, height=LANE - 2, rx=3)
        label = text(x + LANE / 2, y + 16, lane, "m")
        cells.append(element("g", [box, label, title(_about_lane(access, lane))], class_=class_, data_lane=lane))
    return element(
        "g", cells, class_="panel lanes", tabindex=0, data_lm_suppress_shortcuts="true", role="application",
        aria_label="The 32 lanes of the warp: arrow keys choose one",
    )  # fmt: skip


def _about_lane(access: Access, lane: int) -> str:
    address, place = access.addresses[lane], access.places[lane]
    if address is None or place is None:
        return f"Lane {lane} takes no part: beyond the edge, zero padding, or nothing left to move."
    where = ", ".join(f"{axis} {at}" for axis, at in zip(access.axes, place, strict=True))
    unit, number = access.table().columns[-1], access.table().rows[lane][-1]
    return f"Lane {lane} moves {access.bytes_per_lane} bytes at byte {address:,} ({unit} {number}): {where}."


def _cost(access: Access, count: int) -> str:
    y = TOP + 4 * LANE + 26
    same = "" if count < 2 else f"one of {count} such instructions"
    lines = [f"{access.instruction}, {access.bytes_per_lane} bytes a lane", same]
    if access.sectors is not None:
        use = access.sectors
        lines.append(f"{len(use.sectors)} sectors moved: {use.moved_bytes} bytes")
        lines.append(f"{use.useful_bytes} of them asked for: {use.efficiency:.0%}")
    elif access.banks is not None:
        turns = "turn" if access.banks.wavefronts == 1 else "turns"
        lines.append(f"{access.banks.wavefronts} {turns}; {access.banks.ideal} without bank conflicts")
    shown = [text(LANE_X, y + 17 * i, line, "t") for i, line in enumerate(filter(None, lines))]
    return element("g", shown, class_="cost")


def _bars(others: Mapping[str, Access], layout: str) -> str:
    """Sectors of this access in every layout."""
    y0 = TOP + 4 * LANE + 108
    uses = {name: access.sectors for name, access in others.items() if access.sectors is not None}
    most = max(len(use.sectors) for use in uses.values())
    parts = [text(LANE_X, y0, "Sectors, share of bytes used", "s")]
    for i, (name, use) in enumerate(uses.items()):
        y = y0 + 10 + 22 * i
        class_ = "s" if name != layout else "t own"
        width = BAR_W * len(use.sectors) / most
        parts += [
            text(LANE_X, y + 13, NAMES[name], class_),
            element("rect", x=BAR_X, y=y, width=width, height=16, rx=2, class_="moved"),
            element("rect", x=BAR_X, y=y, width=width * use.efficiency, height=16, rx=2, class_="useful"),
            text(BAR_X + BAR_W + 6, y + 13, f"{len(use.sectors)}, {use.efficiency:.0%}", class_, data_layout=name),
        ]
    return element("g", parts, class_="bars")


def _x(column: int, sectors: bool) -> float:
    return GRID_X + column * WORD_W + (column // 8 * SECTOR_GAP if sectors else 0)


def _memory(drawn: AccessMap, rows: tuple[MapRow, ...], pieces: list[Piece], chosen: int) -> str:
    """The touched lines with their sectors, or the cycles of the banks."""
    world = drawn.access.memory == "global"
    title = "Global memory: lines of four 32-byte sectors" if world else "Shared memory: 32 banks, one row a turn"
    parts = [text(GRID_X, TOP - 28, title, "b")]
    if world:
        parts.append(text(GRID_X - 8, TOP - 8, "byte", "n e"))
    heads = range(0, 32, 8) if world else range(0, 32, 2)
    for column in heads:
        label = f"+{column * 4}" if world else str(column)
        parts.append(text(_x(column, world) + (0 if world else WORD_W / 2), TOP - 8, label, "n" if world else "n m"))
    y = TOP
    tops = []
    for number, row in enumerate(rows):
        if number and world and row.number != rows[number - 1].number + 128:
            parts.append(
                element("path", d=f"M{GRID_X - 60:.0f} {y + 0.5:.1f}H{_x(31, world) + WORD_W:.0f}", class_="cut")
            )
            y += 3
        tops.append(y)
        label = f"{row.number:,}" if world else f"turn {row.number}"
        parts.append(text(GRID_X - 8, y + 13, label, "n e"))
        for sector in range(4):
            moved = not world or row.used[sector] is not None
            size = 8 * WORD_W - (0 if world else SECTOR_GAP / 8)
            class_ = "sector" + " moved" * (moved and world)
            at = _x(8 * sector, world)
            parts.append(element("rect", class_=class_, x=at, y=y, width=size, height=ROW_H - 1, rx=2))
        y += ROW_H
    if len(drawn.rows) > len(rows):
        parts.append(text(GRID_X, y + 14, f"... and {len(drawn.rows) - len(rows)} more rows", "s"))
    if not rows:
        parts.append(text(GRID_X, y + 14, "nothing: every lane falls on padding or beyond the edge", "s"))
    parts += [_piece(piece, tops[piece.row], world, chosen) for piece in pieces]
    return element("g", parts, class_="memory")


def _piece(piece: Piece, y: float, world: bool, chosen: int) -> str:
    width = piece.words * WORD_W
    x = _x(piece.column, world)
    shown = str(piece.lanes[0]) if len(piece.lanes) == 1 else f"{piece.lanes[0]}+"
    class_ = f"piece c{piece.lanes[0] // 8}" + " on" * (chosen in piece.lanes)
    box = element("rect", x=x + 0.6, y=y + 0.6, width=width - 1.2, height=ROW_H - 2.2, rx=2)
    narrow = {"textLength": width - 2.4, "lengthAdjust": "spacingAndGlyphs"} if width < 8.5 * len(shown) else {}
    label = text(x + width / 2, y + 12.4, shown, "m", **narrow)
    return element("g", [box, label], class_=class_, data_lanes=" ".join(map(str, piece.lanes)))
