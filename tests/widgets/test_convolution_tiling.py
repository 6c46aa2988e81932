"""The tiling view without a browser: squares, steps and markers against the record, refusals, what is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.technique import Tiling, tiling
from subbyte_widgets import ConvolutionTiling, TilingExplorer
from subbyte_widgets._base import picture_in
from subbyte_widgets.convolution_tiling.layout import Place, geometry
from subbyte_widgets.convolution_tiling.picture import Selection, loupe_marks, markers, tiling_svg

LAYER = "n8h56w56c64k64r3s3p1"
CONFIG = MmaConfig(2, 2, 8, 4)


@pytest.fixture(scope="module")
def record() -> Tiling:
    return tiling(LAYER, CONFIG)


def boxes(path: str, place: Place) -> list[tuple[float, float, float, float]]:
    """A marker's rectangles in positions of its panel: column, row, columns, rows."""
    found = re.findall(r"M([\d.-]+) ([\d.-]+)h([\d.]+)v([\d.]+)", path)
    return [
        ((float(x) - place.x) / place.sx, (float(y) - place.y) / place.sy, float(w) / place.sx, float(h) / place.sy)
        for x, y, w, h in found
    ]


def near(found: list[tuple[float, ...]], wanted: list[tuple[float, ...]], slack: float = 0.06) -> bool:
    """Whether rectangles are the wanted ones, as exactly as a picture has room for."""
    return len(found) == len(wanted) and all(
        abs(a - b) <= slack for one, other in zip(found, wanted, strict=True) for a, b in zip(one, other, strict=True)
    )


def test_every_square_of_the_block_has_its_warp(record: Tiling) -> None:
    drawn = re.findall(r'class="rt w(\d) ?[^"]*" data-at="(\d+),(\d+)" data-warp="(\d+)"', tiling_svg(record))
    wanted = {(p, c): w.number for w in record.warps for p in w.pixels for c in w.columns}
    assert {(int(p), int(c)): int(warp) for _, p, c, warp in drawn} == wanted
    assert len(drawn) == len(record.pixels) * record.block_channels // 8


def test_neighbouring_warps_differ_in_colour() -> None:
    svg = tiling_svg(tiling("n8h56w56c64k128r3s3p1", MmaConfig(4, 4, 4, 2)))
    found = re.findall(r'class="rt w(\d) ?[^"]*" data-at="(\d+),(\d+)" data-warp="(\d+)"', svg)
    squares = {(int(p), int(c)): (colour, warp) for colour, p, c, warp in found}
    assert len({warp for _, warp in squares.values()}) == 16
    for (p, c), (colour, warp) in squares.items():
        for beside in ((p + 1, c), (p, c + 1)):
            if beside in squares and squares[beside][1] != warp:
                assert squares[beside][0] != colour


def test_every_step_is_there_in_the_kernels_order(record: Tiling) -> None:
    titles = re.findall(r"<title>offset \((\d), (\d)\), channel block (\d+)</title>", tiling_svg(record))
    assert [tuple(map(int, t)) for t in titles] == [(s.r, s.s, s.channel_blocks[0]) for s in record.steps]


def test_markers_of_a_known_selection(record: Tiling) -> None:
    """Tile 60 of 14 x 14: row 4, column 4; warp 1, instruction 5 = pixels 1 and 5, column 1; step 4 = offset (1, 1)."""
    places = geometry(record)
    found = markers(record, Selection(60, 0, 1, 5, 4), places)
    panels = places.panels
    assert near(boxes(found["out-tile"], panels["out"]), [(16, 16, 4, 4)])
    assert near(boxes(found["out-now"], panels["out"]), [(17, 18, 1, 1), (17, 19, 1, 1)])
    assert near(boxes(found["in-now"], panels["in"]), [(17, 18, 1, 1), (17, 19, 1, 1)])
    assert len(boxes(found["in-tile"], panels["in"])) == 36
    assert len(boxes(found["in-warp"], panels["in"])) == 24
    assert near(boxes(found["b-now"], panels["b"]), [(8, 128, 8, 32)], slack=0.6)
    rows = [row for _, row, _, _ in boxes(found["c-tile"], panels["c"])]
    starts = [start for start, _ in record.block(60).gemm_rows]
    assert all(abs(row - start) < 0.06 / panels["c"].sy for row, start in zip(rows, starts, strict=True))
    wrong = markers(record, Selection(61, 0, 1, 5, 4), places)
    assert not near(boxes(wrong["out-tile"], panels["out"]), [(16, 16, 4, 4)])


def test_padding_and_the_window_in_the_enlarged_block(record: Tiling) -> None:
    marks = loupe_marks(record, Selection(0, 0, 0, 0, 0))
    assert [at for at, name in marks.items() if "pad" in name] == [
        (i, j) for i in range(6) for j in range(6) if i == 0 or j == 0
    ]
    assert sum("window" in name for name in marks.values()) == 9
    assert [at for at, name in marks.items() if "now" in name] == [(0, 0), (1, 0)]


def test_a_selection_is_brought_inside(record: Tiling) -> None:
    assert Selection(9999, 7, -1, 99, 18).inside(record) == Selection(195, 0, 0, 15, 17)
    shared = tiling("n8h12w12c64k64r3s3p1", MmaConfig(2, 1, 2, 4, chunk=2, split_channels=2), arch="sm_80")
    last = Selection(step=len(shared.steps) - 1).inside(shared)
    assert shared.warps[last.warp].share == shared.steps[last.step].share == 1
    view = ConvolutionTiling(record)
    view.set_state({"tile": 9999, "step": 4})
    assert view.chosen == Selection(195, 0, 0, 0, 4)
    assert "output rows 52 to 55, columns 52 to 55" in view.alternative


def test_the_knobs_drive_the_toolkit_and_a_refusal_is_said() -> None:
    explorer = TilingExplorer(LAYER, CONFIG)
    explorer.knobs["warp_row_tiles"].value = 4
    assert explorer.view.record == tiling(LAYER, MmaConfig(2, 2, 4, 4))
    explorer.knobs["blk_col_warps"].value = 4
    assert "divisibility" in explorer.note
    assert explorer.note.endswith(f"Still shown: {MmaConfig(2, 2, 4, 4).key}.")
    assert explorer.view.record == tiling(LAYER, MmaConfig(2, 2, 4, 4))
    assert explorer.view.svg
    explorer.knobs["warp_col_tiles"].value = 2
    assert not explorer.note
    assert explorer.view.record == tiling(LAYER, MmaConfig(2, 4, 4, 2))
    with pytest.raises(InvalidInput, match="did you mean tile"):
        TilingExplorer(LAYER, CONFIG, tyle=3)


def test_the_questions_of_the_notebook_can_be_answered() -> None:
    """Notebook 01, section 2: one value exists and two are refused, each for its own reason."""
    explorer = TilingExplorer("resnet50.stage2@8", CONFIG.with_values({"warp_row_tiles": 8}))
    before = explorer.view.record
    explorer.knobs["warp_row_tiles"].value = 4
    assert explorer.view.record.blocks == 2 * before.blocks
    explorer.knobs["warp_row_tiles"].value = 16
    assert "Refused: registers" in explorer.note
    explorer.knobs["warp_row_tiles"].value = 8
    assert explorer.view.record == before
    explorer.knobs["blk_col_warps"].value = 4
    assert "Refused: divisibility" in explorer.note
    assert explorer.view.record == before


def test_nothing_to_draw_is_said() -> None:
    assert "nothing to draw" in ConvolutionTiling().to_svg()


@pytest.mark.parametrize(
    ("layer", "config"),
    [
        ("n8h512w512c64k64r3s3p1", MmaConfig(1, 1, 1, 1)),
        ("n16h512w512c128k128r3s3p1", MmaConfig(4, 2, 16, 2, chunk=2)),
        ("n8h7w7c2048k512r1s1p0", MmaConfig(1, 2, 4, 4)),
    ],
)
def test_large_layers_stay_small_on_the_wire(layer: str, config: MmaConfig) -> None:
    view = ConvolutionTiling(tiling(layer, config))
    assert not view.error
    assert len(json.dumps(view.get_state(("svg", "data", "alternative")), default=str)) < 400_000


def test_the_bundle_and_the_page_stand_alone(record: Tiling, tmp_path: Path) -> None:
    view = ConvolutionTiling(record, tile=60, warp=1, multiply=5, step=4)
    data, _ = view._repr_mimebundle_()
    svg = picture_in(data)
    assert "var(" not in svg
    assert len(re.findall(r'class="rt w1 own now"', svg)) == 2
    assert "196 blocks" in data["text/html"]
    page = view.to_html(tmp_path / "tiling.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)
