"""Pictures of :class:`~subbyte.technique.strides.Strides`: a tile's rows in the banks of shared memory and in the lines
of global memory, beside the same tile in one piece, and the costs of all leading dimensions."""

from __future__ import annotations

from subbyte.device.memory import BANKS, LINE, SECTOR
from subbyte.technique.strides import PIECE_BYTES, Strides, TileLoad
from subbyte_widgets._turned import Page, panel_svg
from subbyte_widgets.svg import INK, OKABE_ITO, element, text

WIDTH, LEFT = 760.0, 24.0
BANK, ROW = 12.5, 14.0
LINES_X, SECTOR_WIDE, MOST_LINES = 532.0, 46.0, 8
TILE_HIGH = 178.0
PIECE = "fsb and nb8: the tile in one piece"


def pages(record: Strides) -> list[Page]:
    """A picture for each leading dimension of the plain layout."""
    return [
        Page(strides_svg(record, number), f"{load.distance:,} bits", sentence(load, record.blocks[0]))
        for number, load in enumerate(record.plain)
    ]


def sentence(load: TileLoad, block: TileLoad) -> str:
    """What a load of the plain layout costs, compared with that of a contiguous tile."""
    meet = (
        "no two of its rows meet in a bank of shared memory: 1 cycle"
        if load.wavefronts == 1
        else f"{load.wavefronts} of its rows meet in the same banks of shared memory: {load.wavefronts} cycles"
    )
    moved = f"{len(load.sectors)} sectors of {SECTOR} bytes in {_many(len(load.lines), 'line')}"
    useful, gcd = f"{100 * load.useful:.0f} % of the bytes useful", f"gcd({load.distance // 128}, 8) = {load.gcd}"
    least = f"{_many(block.wavefronts, 'cycle')} and {len(block.sectors)} sectors in {_many(len(block.lines), 'line')}"
    return (
        f"With {load.distance:,} bits from row to row, {meet}, because {gcd}. From global memory the tile moves "
        f"{moved}, {useful}. In one piece (fsb, nb8) it is {least}."
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def strides_svg(record: Strides, chosen: int) -> str:
    """The picture of one of the leading dimensions."""
    load = record.plain[chosen]
    content = [
        text(LEFT, 22, "A tile of 8 rows x 128 bits in memory", "h"),
        *_tile(load, 42, f"plain layout, {load.distance:,} bits from row to row"),
        *_tile(record.blocks[0], 42 + TILE_HIGH, PIECE),
        *_costs(record, chosen, 48 + 2 * TILE_HIGH),
    ]
    label = "Leading dimensions: left and right arrow keys choose one"
    return panel_svg(content, (WIDTH, 134 + 2 * TILE_HIGH), "sb-strides-svg", label)


def _tile(load: TileLoad, y: float, what: str) -> list[str]:
    """The banks on the left, the lines on the right."""
    drawn = [text(LEFT, y + 12, f"{what}: {_many(load.wavefronts, 'cycle')} from shared memory", "k")]
    drawn.append(text(LINES_X, y + 12, f"{len(load.sectors)} sectors, {_many(len(load.lines), 'line')}", "k"))
    for label, bank in (("bank 0", 0), ("bank 8", 8), ("bank 16", 16), ("bank 24", 24)):
        drawn.append(text(LEFT + 52 + bank * BANK, y + 30, label, "s"))
    top = y + 36
    for row, banks in enumerate(load.banks):
        line = top + row * ROW
        drawn.append(text(LEFT + 46, line + 10.5, f"row {row}", "s e"))
        drawn.append(_box("free", LEFT + 52, line, BANKS * BANK))
        drawn += [
            _box(_colour(row), LEFT + 52 + bank * BANK, line, BANK - 1, data_bank=bank, data_row=row) for bank in banks
        ]
    drawn += _lines(load, top)
    most = [sum(bank in banks for banks in load.banks) for bank in range(BANKS)]
    drawn.append(text(LEFT + 46, top + 8 * ROW + 13, "in all", "s e"))
    for bank in range(0, BANKS, PIECE_BYTES // 4):
        if most[bank]:
            x = LEFT + 52 + (bank + 2) * BANK
            drawn.append(text(x, top + 8 * ROW + 13, _many(most[bank], "row") if bank < 4 else most[bank], "m"))
    return drawn


def _lines(load: TileLoad, top: float) -> list[str]:
    """The lines of global memory that the tile touches, each of four sectors; a row's bytes in its colour."""
    drawn = []
    for place, line in enumerate(load.lines[:MOST_LINES]):
        y = top + place * ROW
        drawn.append(text(LINES_X - 6, y + 10.5, f"line {line}", "s e"))
        for part in range(LINE // SECTOR):
            touched = line * LINE // SECTOR + part in load.sectors
            drawn.append(
                _box("sector moved" if touched else "sector", LINES_X + part * SECTOR_WIDE, y, SECTOR_WIDE - 2)
            )
        for row, address in enumerate(load.addresses):
            if address // LINE == line:
                x = LINES_X + address % LINE / SECTOR * SECTOR_WIDE
                wide = PIECE_BYTES / SECTOR * SECTOR_WIDE - 2
                drawn.append(_box(_colour(row), x, y, wide))
                drawn.append(text(x + wide / 2, y + 10.5, row, f"m i{int(INK[row % 6] != '#ffffff')}"))
    return drawn


def _box(class_: str, x: float, y: float, wide: float, **data: object) -> str:
    """A box as high as a row."""
    return element("rect", "", class_=class_, x=x, y=y, width=wide, height=ROW - 2, **data)


def _colour(row: int) -> str:
    return f"c{row % len(OKABE_ITO)}"


def _costs(record: Strides, chosen: int, y: float) -> list[str]:
    """Cycles, sectors and lines of all leading dimensions; the chosen one is framed."""
    names = ("bits from row to row", "cycles, shared memory", "sectors, global", "lines, global")
    drawn = [text(LEFT, y + 12 + 20 * line, name, "s") for line, name in enumerate(names)]
    wide = min(64.0, (WIDTH - 190) / len(record.plain))
    for number, load in enumerate(record.plain):
        x = 176 + number * wide
        values = (load.distance, load.wavefronts, len(load.sectors), len(load.lines))
        class_ = "pick on" if number == chosen else "pick"
        frame = element("rect", class_=class_, x=x, y=y - 4, width=wide - 4, height=84, rx=4)
        cells = [text(x + wide / 2 - 2, y + 12 + 20 * line, f"{value:,}", "m") for line, value in enumerate(values)]
        drawn.append(element("g", [frame, *cells], data_go=number))
    return drawn
