"""The picture of the taps' windows: every number and box in it is the record's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from subbyte.schedule import WarpgroupConfig
from subbyte.technique.taps import TapAddresses, tap_addresses
from subbyte_widgets import TapWindows

CONFIG = WarpgroupConfig(tile_width=8, segments=2, ring=5, stagger=0)


def _record(sharing: str = "full", row: int = 1) -> TapAddresses:
    return tap_addresses("n8h8w8c64k64r3s3p1", replace(CONFIG, duplicate_aware=sharing), row)


@pytest.mark.parametrize("sharing", ["full", "none"])
def test_the_record_is_drawn(sharing: str) -> None:
    record = _record(sharing)
    svg = TapWindows(record).to_svg()
    for tap in record.taps:
        assert f"tap ({tap.r}, {tap.s})" in svg
        assert f"slot {tap.slot}, start {tap.start:,}" in svg
    rows = 3 * 9 if sharing == "full" else 9
    zeros = svg.count('class="zero"')
    assert svg.count('class="cell"') + zeros == rows * record.pitch
    assert zeros == (3 * 9 if sharing == "full" else 6)
    windows = [float(x) for x in re.findall(r'width="([\d.]+)" height="13"', svg)]
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
