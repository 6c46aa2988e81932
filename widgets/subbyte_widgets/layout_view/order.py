"""The picture of two layouts as orders: a small tensor, and below it memory in NHWC and in NHWCnc as two strips.

Everything that shows a datum carries ``data-d``, its index in the record.
"""

from __future__ import annotations

from typing import Any

from subbyte.technique.layout_order import LayoutOrder
from subbyte_widgets.layout_view.picture import NAMES
from subbyte_widgets.svg import element, text

WIDTH, HEIGHT, LEFT = 760, 494, 24.0
TENSOR_X, TENSOR_Y, CELL_W, CELL_H, PIXEL_GAP = 110.0, 66.0, 38.0, 19.0, 10.0
STRIPS = {"nhwc": 278.0, "nhwcnc": 402.0}
STRIP_H, LANE_DROP = 24.0, 64.0
ORDERS = {
    "nhwc": "image after image; in each, pixel after pixel with all its channels",
    "nhwcnc": "pixel after pixel, 32 channels at a time; of these, image after image",
}


def order_svg(record: LayoutOrder, step: int = 0, chosen: int = -1) -> str:
    """The tensor and both strips after ``step`` lanes have accessed memory, with a datum marked (-1: none)."""
    asked = set(record.lanes[:step])
    parts = [
        text(LEFT, 20, "One tensor, two orders in memory", "h"),
        text(LEFT, 38, "A box: one pixel of one image, 32 channels of 4 bits: 16 bytes, half a sector. Its number: the "
                       "image.", "s"),
        *_tensor(record, asked, chosen),
    ]  # fmt: skip
    for layout, y in STRIPS.items():
        parts += _strip(record, layout, y, step, chosen)
    return element(
        "svg", parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="sb-step-svg sb-order-svg", role="img", aria_label=record.title(),
    )  # fmt: skip


def cell_places(record: LayoutOrder) -> dict[str, list[list[float]]]:
    """Middle of each datum's box in each strip, and of each lane's box below it, by layout."""
    box = _box(record)
    found = {}
    for layout, y in STRIPS.items():
        found[layout] = [[_at(record, layout, datum) + box / 2, y + STRIP_H / 2] for datum in range(len(record.data))]
        found[f"{layout} lanes"] = [[LEFT + (i + 0.5) * _lane_box(record), y + LANE_DROP + 9] for i in _lanes(record)]
    return found


def sentence(record: LayoutOrder, datum: int) -> str:
    """Where a datum is."""
    image, pixel, block = record.data[datum]
    where = " and ".join(
        f"byte {record.bytes[layout][datum]:,} of {NAMES[layout]} (sector {record.sector(layout, datum)})"
        for layout in record.bytes
    )
    return f"Image {image}, pixel {pixel}, channels {32 * block} to {32 * block + 31}: {where}."


def count_in_words(record: LayoutOrder, layout: str, step: int) -> str:
    """What the lanes so far cost in a layout."""
    moved = record.moved[layout][step]
    words = f"{moved} sector{'s' * (moved != 1)}"
    return words + (f", {record.share[layout]:.0%} used" if step == len(record.lanes) else " moved")


def _lanes(record: LayoutOrder) -> range:
    return range(len(record.lanes))


def _box(record: LayoutOrder) -> float:
    return (WIDTH - 2 * LEFT) / len(record.data)


def _lane_box(record: LayoutOrder) -> float:
    return (WIDTH - 2 * LEFT) / len(record.lanes)


def _at(record: LayoutOrder, layout: str, datum: int) -> float:
    size = record.bytes[layout][1] if layout == "nhwc" else record.bytes["nhwc"][1]
    return LEFT + record.bytes[layout][datum] / size * _box(record)


def _class(record: LayoutOrder, datum: int, asked: bool, chosen: int) -> str:
    _, pixel, block = record.data[datum]
    return f"datum c{pixel % 6} b{block}" + " asked" * asked + " on" * (datum == chosen)


def _datum(record: LayoutOrder, datum: int, box: tuple[float, float, float, float], state: tuple[bool, int]) -> str:
    x, y, width, height = box
    face = element("rect", x=x + 0.5, y=y + 0.5, width=width - 1, height=height - 1, rx=1.5)
    label = text(x + width / 2, y + height / 2 + 4.2, record.data[datum][0], "m")
    return element("g", face + label, class_=_class(record, datum, *state), data_d=datum)


def _tensor(record: LayoutOrder, asked: set[int], chosen: int) -> list[str]:
    parts = []
    wide = record.blocks * CELL_W + PIXEL_GAP
    heads = ((TENSOR_X + pixel * wide + record.blocks * CELL_W / 2, f"pixel {pixel}") for pixel in range(record.pixels))
    parts += [text(x, TENSOR_Y - 6, words, "s m") for x, words in heads]
    for datum, (image, pixel, block) in enumerate(record.data):
        x, y = TENSOR_X + pixel * wide + block * CELL_W, TENSOR_Y + image * CELL_H
        parts.append(_datum(record, datum, (x, y, CELL_W, CELL_H), (datum in asked, chosen)))
    for image in range(len(record.data) // (record.pixels * record.blocks)):
        parts.append(text(TENSOR_X - 8, TENSOR_Y + image * CELL_H + 14, f"image {image}", "s e"))
    below = TENSOR_Y + len(record.data) / (record.pixels * record.blocks) * CELL_H + 16
    parts.append(text(TENSOR_X, below, _channels_in_words(record.blocks), "s"))
    x = TENSOR_X + record.pixels * wide + 14
    for i, words in enumerate(
        ("A warp asks for channels", "0 to 31 of four pixels:", "lane after lane,", "8 images each.")
    ):
        parts.append(text(x, TENSOR_Y + 16 + 18 * i, words, "t"))
    return parts


def _channels_in_words(blocks: int) -> str:
    return "in a pixel: channels 0 to 31" + ", then (paler) 32 to 63" * (blocks > 1)


def _strip(record: LayoutOrder, layout: str, y: float, step: int, chosen: int) -> list[str]:
    """Memory from byte 0 on: boxes in their order, below them the sectors, then the lanes that got their datum."""
    asked, box = set(record.lanes[:step]), _box(record)
    parts: list[str] = [
        text(LEFT, y - 10, NAMES[layout], "b"), text(LEFT + 70, y - 10, ORDERS[layout], "s"),
        text(WIDTH - LEFT, y - 10, count_in_words(record, layout, step), "b e count", data_moved=layout),
    ]  # fmt: skip
    hit = {record.sector(layout, datum) for datum in asked}
    for sector in range(len(record.data) // 2):
        place: dict[str, Any] = {"x": LEFT + 2 * sector * box + 0.5, "width": 2 * box - 1, "y": y + STRIP_H + 2}
        class_ = "sector" + " moved" * (sector in hit)
        parts.append(element("rect", class_=class_, height=9, data_sector=f"{layout} {sector}", **place))
    for datum in range(len(record.data)):
        at = _at(record, layout, datum)
        parts.append(_datum(record, datum, (at, y, box, STRIP_H), (datum in asked, chosen)))
    parts += [text(LEFT + 8 * i * box, y + STRIP_H + 24, f"{128 * i:,}", "s") for i in range(len(record.data) // 8)]
    wide = _lane_box(record)
    for lane, datum in enumerate(record.lanes):
        class_ = f"lane {_class(record, datum, lane < step, chosen)}"
        face = element("rect", x=LEFT + lane * wide + 0.5, y=y + LANE_DROP, width=wide - 1, height=18, rx=2)
        label = text(LEFT + (lane + 0.5) * wide, y + LANE_DROP + 13.5, lane, "m")
        parts.append(element("g", face + label, class_=class_, data_d=datum, data_lane=lane))
    return parts
