"""The path of a byte without a browser: squares where the record says, words, refusals."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.technique import packed_stores
from subbyte_widgets import Selection, StorePath
from subbyte_widgets.store_path.picture import (
    BYTE,
    LINE,
    OUT_X,
    REGISTER,
    REGISTERS_X,
    SHARED_X,
    TOPS,
    places,
    stores_svg,
)


def drawn(svg: str) -> dict[int, list[tuple[float, float]]]:
    """The corners of every byte's squares."""
    found = re.findall(r'<path d="([^"]+)" class="u [^"]+" data-u="(\d+)"', svg)
    return {int(u): [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)", d)] for d, u in found}


def test_every_byte_has_five_squares_of_its_own() -> None:
    record = packed_stores(1)
    squares = drawn(stores_svg(record))
    assert sorted(squares) == [*range(128)]
    corners = Counter(corner for found in squares.values() for corner in found)
    assert len(corners) == 5 * 128
    assert set(corners.values()) == {1}


@pytest.mark.parametrize("warp", range(4))
def test_squares_are_where_the_record_says(warp: int) -> None:
    for byte in packed_stores(warp).bytes:
        _, register, shared, _, out = places(byte)
        column, row = divmod(round(register[0] - REGISTERS_X), round(REGISTER))
        assert (4 * round((register[1] - TOPS[0] - 24) / LINE) + column, row) == (byte.lane, byte.register_byte * BYTE)
        assert 16 * (shared[1] - TOPS[1] - 24) / LINE + (shared[0] - SHARED_X) / BYTE == byte.shared_byte
        across = (out[0] - OUT_X) - byte.pixel * (16 * BYTE + 26)
        assert 16 * (out[1] - TOPS[2] - 24) / LINE + across / BYTE == byte.output_byte


def test_the_way_of_a_byte_in_words() -> None:
    view = StorePath(3, follow=91)
    assert view.alternative == (
        "Packed stores of warp 3: channels 48 to 63 of two pixels. Channels 54 and 55 of pixel 1, image 5: sums in "
        "registers c1 and c3 of the pixel in lane 14; byte 3 of its packed register; byte 87 of 128 in shared memory; "
        "lane 5 loads it and stores it as byte 3 of its word 0: byte 91 of the pixel's 128."
    )
    assert re.search(r'class="u p1 on" data-u="91"', view.to_svg())
    view.follow = 300
    assert view.follow == -1


def test_what_is_none_of_its_is_refused() -> None:
    assert StorePath(4).error == "warp 4: a warpgroup has warps 0 to 3"
    assert "StorePath cannot draw 'x': give a warp" in StorePath("x").error  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="follow=128 is out of range"):
        StorePath(follow=128)


def test_the_selected_kernel_is_followed() -> None:
    selection = Selection(
        "n8h8w8c64k64r3s3p1", configuration=PipelineConfig(tile_width=8, segments=2, stages=5, stagger=0)
    )
    view = StorePath(2, selection=selection)
    selection.settle()
    assert "Packed stores of warp 2" in view.to_svg()
    selection.configuration = MmaConfig()
    selection.settle()
    assert "only kernels of the wgmma family (wgmma) are shown here" in view.to_svg()
