"""The layout view without a browser: the drawing against the access maps, refusals, what is sent."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.technique import access_map
from subbyte_widgets import LayoutExplorer, LayoutView
from subbyte_widgets._base import picture_in
from subbyte_widgets.layout_view.explorer import MOVES
from subbyte_widgets.layout_view.picture import KINDS, NAMES, access_svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def view() -> LayoutView:
    return LayoutView(where={"block": (30, 0)})


def drawn(svg: str) -> tuple[Counter[tuple[int, ...]], list[int], int, dict[str, str]]:
    """Lanes of the pieces; lanes that take part; sectors that are moved; the comparison of the layouts."""
    root = ElementTree.fromstring(svg)
    groups = list(root.iter(f"{SVG}g"))
    pieces = Counter(tuple(map(int, g.get("data-lanes", "").split())) for g in groups if g.get("data-lanes"))
    active = [int(g.get("data-lane", "")) for g in groups if g.get("data-lane") and "idle" not in g.get("class", "")]
    moved = sum(rect.get("class") == "sector moved" for rect in root.iter(f"{SVG}rect"))
    compared = {t.get("data-layout", ""): t.text or "" for t in root.iter(f"{SVG}text") if t.get("data-layout")}
    return pieces, active, moved, compared


@pytest.mark.parametrize("layout", NAMES)
@pytest.mark.parametrize("kind", [k for k in KINDS if not k.startswith("sum")])
def test_the_drawing_is_the_access(view: LayoutView, kind: str, layout: str) -> None:
    access = view.access(kind, layout)
    svg = view.pictures.get(kind) or view.pictures[f"{kind}|{layout}"]
    pieces, active, moved, compared = drawn(svg)
    assert pieces == Counter(piece.lanes for piece in access_map(access).pieces)
    assert active == [lane for lane, address in enumerate(access.addresses) if address is not None]
    assert moved == (len(access.sectors.sectors) if access.sectors else 0)
    for name, words in compared.items():
        use = view.access(kind, name).sectors
        assert use is not None
        assert words == f"{len(use.sectors)}, {use.efficiency:.0%}"
    assert set(compared) == (set() if kind in view.pictures else set(NAMES))


def test_another_access_is_told_apart(view: LayoutView) -> None:
    good = view.access("tile", "nhwc")
    wrong = replace(good, addresses=(*good.addresses[:7], None, *good.addresses[8:]))
    others = {"nhwc": good}
    assert drawn(access_svg(access_map(wrong), "tile", "nhwc", others, 1)) != drawn(
        access_svg(access_map(good), "tile", "nhwc", others, 1)
    )


def test_every_lane_has_its_sentence(view: LayoutView) -> None:
    titles = re.findall(r"<title>(.*?)</title>", view.pictures["tile|nhwc"])
    assert len(titles) == 32
    assert "Lane 7 moves 16 bytes at byte 702,464 (sector 21952): image 7, row 0, column 0" in titles[7]
    assert "takes no part" in titles[8]


def test_a_lane_is_marked_with_its_memory(view: LayoutView) -> None:
    view.set_state({"data_layout": "nhwc", "kind": "activation load", "lane": 5})
    marked = re.findall(r'class="(lane|piece) c0[^"]* on" data-lanes?="(\d+)"', view.to_svg())
    assert marked == [("lane", "5"), ("piece", "5")]
    view.lane = 40
    assert view.lane == -1


def test_sums_through_shared_memory_are_there_when_the_kernel_has_them() -> None:
    config = MmaConfig(2, 1, 4, 4, register_packing=False)
    view = LayoutView("n8h16w16c64k64r3s3p1", config, kind="sum spill")
    assert list(view.kinds)[-3:] == ["sum spill", "sum read", "output store"]
    assert not view.error
    assert "2 turns; 2 without bank conflicts" in view.to_svg()


def test_the_controls_move_the_warp() -> None:
    explorer = LayoutExplorer("n8h16w16c64k64r3s3p1", kind="activation load")
    corner = drawn(explorer.view.pictures["activation load|nhwc"])
    explorer.controls["block"].value = 9
    inside = drawn(explorer.view.pictures["activation load|nhwc"])
    assert len(corner[1]) < len(inside[1]) == 32, "at the corner some lanes fall on padding"
    explorer.controls["stage"].value = 1
    assert "channel block 1." in explorer.view.pictures["activation load|nhwc"]
    explorer.controls["warp"].value = 1
    assert explorer.view.records["nhwc"].warp == 1
    assert not explorer.view.error
    with pytest.raises(InvalidInput, match="no option"):
        LayoutExplorer(blok=3)


def test_what_does_not_exist_is_said_in_the_view(view: LayoutView) -> None:
    view.data_layout = "nchw"
    assert view.error.startswith("unknown layout 'nchw'")
    assert "nchw" in view.to_svg()
    view.data_layout, view.kind = "nhwc", "sum spill"
    assert view.error.startswith("unknown kind of access")
    view.kind = "tile"
    assert not view.error
    assert "block's pixel tile 99999" in LayoutView(where={"block": (99999, 0)}).error
    with pytest.raises(InvalidInput, match="data_layout"):
        LayoutView(data_layuot="nhwc")


def test_what_is_sent_stays_small_and_stands_alone(tmp_path: Path) -> None:
    config = MmaConfig(2, 1, 4, 4, register_packing=False, duplicate_aware="none")
    view = LayoutView("resnet50.stage5@8", config, data_layout="nhwcnc")
    assert len(json.dumps(view.get_state(), default=str)) < 400_000
    data, _ = view._repr_mimebundle_()
    assert "var(" not in picture_in(data)
    assert "128 of 128 bytes useful (100%) in NHWCnc" in data["text/html"]
    page = view.to_html(tmp_path / "layout.html")
    assert not re.findall(r'(?:src|href|from)\s*=?\s*"?https?:', page)


def test_a_slider_stops_where_there_is_nothing_to_draw() -> None:
    explorer = LayoutExplorer("resnet50.stage4.shortcut1x1@8", kind="activation load")
    before = explorer.to_svg()
    explorer.controls["warp"].value = 1  # one warp loads all of it
    assert explorer.controls["warp"].value == 0
    assert explorer.note == "warp 1 was asked, 0 is shown: no activation load happens there."
    assert not explorer.error
    assert explorer.to_svg() == before


def test_controls_that_change_nothing_are_disabled() -> None:
    explorer = LayoutExplorer()
    for kind, names in MOVES.items():
        explorer.view.kind = kind
        for name, control in explorer.controls.items():
            assert control.disabled == (name not in names), (kind, name)
            before = explorer.to_svg()
            control.value = control.max
            changed = explorer.to_svg() != before
            control.value = 0
            assert not (changed and control.disabled), (kind, name)
    explorer.view.kind = "tile"
    assert "the same for every block" in explorer.controls["block"].tooltip
