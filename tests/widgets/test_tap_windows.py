"""The picture of the taps' windows: every number and box in it is the record's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import subbyte
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_key
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.kernel.execute import random_operands
from subbyte.technique.listings import EXAMPLES
from subbyte.technique.taps import Tap, TapAddresses, tap_addresses
from subbyte.technique.topics import explained
from subbyte_widgets import Selection, TapWindows
from subbyte_widgets.tap_windows.picture import windows_svg

CONFIG = PipelineConfig(tile_width=8, segments=2, stages=5, stagger=0)


def _record(sharing: str = "full", row: int = 1) -> TapAddresses:
    return tap_addresses("n8h8w8c64k64r3s3p1", replace(CONFIG, duplicate_aware=sharing), row)


def _cells(svg: str) -> list[tuple[float, float, str]]:
    """x, y and kind of every box, row by row."""
    found = []
    for path in re.findall(r"<path [^>]+>", svg):
        kind, dashes = re.search(r'class="(\w+)"', path), re.search(r'stroke-dasharray="([\d.]+) 1"', path)
        assert kind
        for x, y, long in re.findall(r"M([-\d.]+) ([\d.]+)h([\d.]+)", path):
            box = float(dashes[1]) + 1 if dashes else float(long) + 1
            middle = 0 if kind[1] == "zero" else 5
            found += [(float(x) + i * box, float(y) - middle, kind[1]) for i in range(round((float(long) + 1) / box))]
    return found


def _boxes(record: TapAddresses, tap: Tap) -> list[int]:
    """The input columns below the boxes that the picture draws as read by a tap, from its first panel."""
    number = record.taps.index(tap)
    panel = re.search(rf'data-tap="{number}">.*?</g>', windows_svg(record), re.DOTALL)
    assert panel
    cells = _cells(panel[0])
    columns = [column for row in record.stored for column in row.columns] if record.shared else list(tap.pixels)
    found = re.findall(r'<rect x="([-\d.]+)" y="([\d.]+)" width="([\d.]+)" height="[\d.]+" class="window"', panel[0])
    read = [(float(x), float(y), float(wide)) for x, y, wide in found]
    inside = [any(left <= x < left + wide - 1 and top <= y < top + 5 for left, top, wide in read) for x, y, _ in cells]
    shown = [int(kind == "zero") for _, _, kind in cells]
    assert len(cells) >= len(columns)
    if record.shared:  # cells beyond what is stored are zeros behind the row
        row = next(row for row in record.stored if row.buffer == tap.buffer)
        place = record.stored.index(row) * record.pitch + len(row.columns)
        beyond = len(cells) - len(columns)
        columns[place:place] = [-1] * beyond
    assert shown == [int(column < 0) for column in columns]
    return [column for column, read in zip(columns, inside, strict=True) if read]


@pytest.mark.parametrize("sharing", ["full", "none"])
@pytest.mark.parametrize("spec", ["n8h8w8c64k64r3s3p1", "n8h16w16c64k64r3s3p1u2", "n8h8w8c32k64r3s3p2d2"])
def test_the_windows_lie_on_the_pixels_that_are_read(spec: str, sharing: str) -> None:
    record = tap_addresses(spec, replace(CONFIG, duplicate_aware=sharing), 1)
    for tap in record.taps:
        assert _boxes(record, tap) == [*tap.pixels]


def test_a_chosen_tap_is_taken_apart() -> None:
    record = _record()
    view = TapWindows(record, tap=5)
    tap = record.taps[5]
    svg = view.to_svg()
    assert f"Tap ({tap.r}, {tap.s}): a start address, nothing else" in svg
    assert f"{tap.descriptor:#018x}" in svg
    assert f"start: {tap.start // 16:,} x 16 = {tap.start:,} bytes (bits 0 to 13)" in svg
    assert "half: 8 x 16 = 128 bytes" in svg
    assert "pixel: 16 x 16 = 256 bytes" in svg
    assert f"bytes {tap.start + 128:,} to {tap.start + 255:,}" in svg
    assert view.details[5] in svg
    assert f"{tap.descriptor:#018x}" in view.alternative


def test_strides_and_swizzles_are_read_from_the_descriptor() -> None:
    strided = TapWindows(tap_addresses("n8h16w16c64k64r3s3p1u2", CONFIG, 1)).to_svg()
    assert "pixel: 32 x 16 = 512 bytes" in strided
    assert "the stride of 2" in strided
    plain = tap_addresses("n8h8w8c64k64r3s3p1", CONFIG, 1)
    taps = tuple(replace(tap, descriptor=tap.descriptor | 3 << 62) for tap in plain.taps)
    swizzled = TapWindows(replace(plain, taps=taps)).to_svg()
    assert "swizzle: 3" in swizzled
    assert "halves exchanged" in swizzled


def test_what_cannot_be_drawn_is_said() -> None:
    assert "cannot draw 5: give a workload" in TapWindows(5).error  # type: ignore[arg-type]
    assert "unknown workload" in TapWindows("resnet").error
    with pytest.raises(InvalidInput, match="tap=99 is out of range; the nearest there is: 8"):
        TapWindows(_record(), tap=99)


def test_the_selected_kernel_is_followed() -> None:
    selection = Selection("n8h8w8c64k64r3s3p1", configuration=CONFIG)
    view = TapWindows(selection=selection)
    selection.settle()
    assert "Taps of output row 0" in view.to_svg()
    selection.configuration = MmaConfig()
    selection.settle()
    assert "mma family" in view.to_svg()


@pytest.mark.parametrize("sharing", ["full", "none"])
def test_the_record_is_drawn(sharing: str) -> None:
    record = _record(sharing)
    svg = windows_svg(record)
    for tap in record.taps:
        assert f"tap ({tap.r}, {tap.s})" in svg
        assert f"buffer {tap.buffer}, start {tap.start:,}" in svg
    rows, behind = (3 * 9, 3) if sharing == "full" else (9, 0)  # behind a row: the last tap's zero
    cells = _cells(svg)
    assert len(cells) == rows * record.pitch + behind
    assert sum(kind == "zero" for _, _, kind in cells) == (3 * 9 + behind if sharing == "full" else 6)
    windows = re.findall(r'width="([\d.]+)" height="13" class="window"', svg)
    assert len(windows) == 9
    assert len(set(windows)) == 1


def test_another_record_is_another_picture() -> None:
    assert TapWindows(_record(row=1)).to_svg() != TapWindows(_record(row=2)).to_svg()
    moved = replace(_record(), taps=tuple(replace(tap, column=tap.column + 1) for tap in _record().taps))
    assert TapWindows(moved).to_svg() != TapWindows(_record()).to_svg()


def test_what_a_notebook_keeps() -> None:
    view = TapWindows(_record())
    data, _ = view._repr_mimebundle_()
    assert "data:image/svg+xml;base64" in data["text/html"]
    assert "each pixel stored once" in view.alternative
    assert data["text/plain"] == repr(view)


@pytest.mark.deep
def test_the_halves_of_a_pixel_are_even_and_odd_channels() -> None:
    """The picture's words, and what a kernel of one pixel puts into shared memory: read back byte by byte."""
    svg = TapWindows(_record()).to_svg()
    assert "channels 0, 2 .. 30" in svg
    assert "from the even channels of a pixel to its odd ones" in svg
    kernel = subbyte.build("n8h8w8c64k64r3s3p1", CONFIG)
    x, _, _ = random_operands(kernel, 0)
    rows = of_kind(kernel.trace(seed=0).trace, "shared_store")
    stored = {int(row["shared"]): int(row["value"]) for row in rows[rows["size"] == 16][::-1]}
    first = 256  # pixel 0 of input row 0 lies behind the padding column
    for image in range(8):
        for half in range(2):
            value = stored[first + 128 * half + 16 * image]
            held = [(value >> 8 * i & 255) >> 4 for i in range(8)]
            assert held == [int(v) & 15 for v in x[image, 0, 0, half:16:2]]


def test_the_view_says_of_which_kernel_its_lines_are() -> None:
    spec, key, _ = EXAMPLES["taps"]
    other = TapWindows("n8h8w8c64k64r3s3p1")
    assert other.record is not None
    assert other.record.config != key
    assert other.data["code"]["head"].startswith("Lines of an example kernel, ")
    assert other.data["code"]["head"].endswith(f"The picture is of {spec} {other.record.config}.")
    same = TapWindows(explained(TapAddresses, spec, config_from_key(key)))
    assert same.data["code"]["head"] == f"CUDA text of {spec} wgmma {key}"
