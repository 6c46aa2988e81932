"""The views of the dual-side sparse unit without a browser: what is drawn and said is the records'."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.sparse.stepping import TileSteps
from subbyte_widgets import BitmapStepper, LayerBars, Selection, SparseIm2col, SpeedSurface
from subbyte_widgets.bitmap_stepper import picture as bitmap
from subbyte_widgets.bitmap_stepper.picture import ADD, BOHMMA, SCATTER
from subbyte_widgets.layer_bars import picture as bars
from subbyte_widgets.sparse_im2col import picture as im2col
from subbyte_widgets.speed_surface import picture as surfaces

SIZES = [sparse.tile_steps(size="toy"), sparse.tile_steps(seed=2), sparse.tile_steps(density=(0.1, 0.9), seed=4)]


@pytest.fixture(scope="module")
def surface() -> sparse.SpeedMap:
    axis = (0.1, 0.4, 1.0)
    return sparse.speed_map("gemm128", "alexnet@1", activations=axis, weights=axis)


@pytest.mark.parametrize("record", SIZES, ids=["toy", "unit", "skewed"])
def test_every_ohmma_is_there_issued_or_ghosted(record: TileSteps) -> None:
    drawing = bitmap.Drawing(record)
    svg = bitmap.stepper_svg(drawing, bitmap.places(drawing)[0], 0)
    drawn = re.findall(r'class="slot ([itvc])"[^>]*data-go="(\d+)"', svg)
    assert [int(number) for _, number in drawn] == list(range(record.dense))
    assert [letter == "i" for letter, _ in drawn] == [slot.skipped is None for slot in record.slots]
    assert f"{record.issued} run, {record.dense - record.issued} are skipped" in svg
    assert svg.count('class="dead"') == sum(not live for side in "ab" for live in record.level1(side))


@pytest.mark.parametrize("record", SIZES, ids=["toy", "unit", "skewed"])
def test_rows_of_an_ohmma_say_what_it_does(record: TileSteps) -> None:
    drawing = bitmap.Drawing(record)
    n = drawing.n
    touched = np.zeros((n, n), bool)
    for place, slot in zip(bitmap.places(drawing), record.slots, strict=True):
        states = np.array([*map(int, place.rows["c"])]).reshape(n, n)
        a, b = (np.array(record.vector(side, slot.k)) != 0 for side in "ab")
        own = np.zeros((n, n), bool)
        own[np.ix_(slot.rows, slot.columns)] = True
        assert (states == touched + 2 * np.outer(a, b) + 4 * own).all()
        touched |= own
        assert place.rows["a2"] == "".join(map(str, a.astype(int)))
        assert place.rows["bc"].count("0") == n - b.sum()
        products = [word for word in place.rows["products"] if word]
        assert products == [str(x * y) for x in slot.a for y in slot.b]
        if slot.skipped is None:
            assert f"{len(slot.a)} x {len(slot.b)} products" in place.say["ohmma"]
            assert [int(word) for word in place.rows["sums"] if word] == [v for line in slot.sums for v in line]
        else:
            assert record.why(slot.skipped) in place.say["ohmma"]
            assert place.rows["why"] != []
    moved = replace(record, slots=record.slots[::-1])
    assert bitmap.places(bitmap.Drawing(moved))[0].rows != bitmap.places(drawing)[0].rows


def test_the_bitmap_stepper_turns_from_the_toy_to_the_unit() -> None:
    view = BitmapStepper()
    assert view.variant == "8 x 8 x 8"
    assert view.place == bitmap.Drawing(view.records["8 x 8 x 8"]).start
    view.set_state({"variant": "32 x 32 x 16", "step": BOHMMA})
    drawing = bitmap.Drawing(view.records["32 x 32 x 16"])
    assert (view.place, view.steps) == (drawing.start, 10)
    assert "times the same unit dense" in view.alternative
    assert "times the dense core" in view.alternative
    view.set_state({"variant": "64", "place": 999})
    assert (view.variant, view.place) == ("8 x 8 x 8", bitmap.Drawing(view.records["8 x 8 x 8"]).start)
    view.set_state({"variant": "32 x 32 x 16"})
    view.set_state({"place": 999})
    assert view.place == 127
    assert 'data-step="6"' in view.to_svg()
    whole = view.data["sets"]["32 x 32 x 16"]["places"][0]["say"]["whole"]
    assert "times as fast as the same unit dense" in whole
    assert "(without zeros: 1 and 0.88)" in whole
    toy = bitmap.Drawing(sparse.tile_steps(size="toy"))
    place = bitmap.places(toy)[toy.start]
    assert bitmap.stepper_svg(toy, place, ADD) != bitmap.stepper_svg(toy, place, SCATTER)


@pytest.mark.parametrize(
    "spec", ["n1h6w16c4k8r3s3p1", "n1h6w16c4k8r3s3p1u2", "n1h6w20c4k8r5s5p0u2", "n1h5w12c4k8r3s3p2d2"]
)
def test_rows_of_an_offset_are_the_record(spec: str) -> None:
    record = sparse.row_lowering(spec, seed=3)
    drawing, wl = im2col.Drawing(record), record.workload
    for place, one in zip(im2col.places(drawing), record.columns, strict=True):
        assert [letter != "z" for letter in place.rows["bits"]] == [bit == "1" for bit in one.bits]
        assert place.rows["column"] == [str(value) for value in one.values]
        run = [i for i, letter in enumerate(place.rows["packed"]) if letter == "r"]
        assert run == list(range(one.first, one.first + one.count))
        shown = place.rows["shifted"][drawing.margin : drawing.margin + wl.q]
        assert [letter in "ab" for letter in shown] == [bit == "1" for bit in one.bits]
        # What a shift pushes out, or the mask cuts off, is set in the word and in no output.
        assert place.rows["shifted"].count("x") == one.word.count("1") - one.count
        assert place.rows["picks"].count("1") == len(one.word)
        assert f"{one.count} bits set" in place.say["count"]
    svg = im2col.im2col_svg(drawing, im2col.places(drawing)[0], 0)
    assert svg.count('class="tap') == wl.r * wl.s


def test_a_speed_surface_is_its_record(surface: sparse.SpeedMap) -> None:
    view = SpeedSurface(surface)
    for name, over in (("same unit dense", "same_unit"), ("dense core", "dense_core")):
        drawn = re.findall(r'class="cell h(\d)"[^>]*data-item="(\d+)"', view.data["pictures"][name])
        wanted = [value for row in reversed(surface.grid(over)) for value in row]
        assert [int(colour) for colour, _ in drawn] == [surfaces.colour(value) for value in wanted]
        assert view.data["pictures"][name].count('class="layer"') == len(surface.layers) + 1
    view.set_state({"chosen": 1, "variant": "dense core"})
    where = surface.surface
    for value in (where.same_unit[2][1], where.dense_core[2][1]):
        assert f"{value:.2f} times the" in view.alternative
    assert view.to_svg().count("cell h") == view.data["pictures"]["dense core"].count("cell h")
    assert 'data-level="1"' in view.data["pictures"]["dense core"]
    lines = replace(surface, breakevens=(sparse.BreakEven("condense", ((0.1, 0.1),), "made up here"),))
    assert ">condense<" in SpeedSurface(lines).to_svg()
    near = [sparse.BreakEven(name, ((1.0, at), (0.02, at)), "made up here") for name, at in (("a", 0.53), ("b", 0.55))]
    drawn = SpeedSurface(replace(surface, breakevens=tuple(near))).to_svg()
    tops = [float(one) for one in re.findall(r'<text[^>]*y="([\d.]+)"[^>]*>[ab]</text>', drawn)]
    assert len(tops) == 2
    assert abs(tops[0] - tops[1]) >= 15, "the names of lines side by side lie on each other"
    assert "no measured break-even" in view.to_svg()


def test_layer_bars_are_their_record() -> None:
    cycles = sparse.network("alexnet@1")
    record = sparse.layer_bars(cycles, [sparse.MeasuredLayer(cycles.layers[1].name, "2:4", 1.5, "made up here")])
    view = LayerBars(record)
    for name, over in (("same unit dense", "same_unit"), ("dense core", "dense_core")):
        drawing = bars.Drawing(record, over)
        wides = [
            float(wide) for wide in re.findall(r'class="bar \w+"[^>]*width="([\d.]+)"', view.data["pictures"][name])
        ]
        wanted = [drawing.wide(record.speedup(one, bar, over)) for one in cycles.layers for bar in sparse.bars.BARS]
        assert wides == pytest.approx(wanted, abs=0.01)
        assert view.data["pictures"][name].count('class="measured"') == 2
    view.set_state({"chosen": 1})
    assert f"Measured over its dense twin: 2:4 1.50 ({cycles.layers[1].name}, made up here)" in view.alternative
    for over in ("same_unit", "dense_core"):
        assert f"{record.speedup(cycles.layers[1], 'dual', over):.2f}" in view.alternative
    assert "nothing measured" in LayerBars(cycles).to_svg()


def test_a_selected_layer_is_shown() -> None:
    selection = Selection("resnet18.stage3@8")
    bars_, rows = LayerBars(selection=selection), SparseIm2col(selection=selection)
    tile, where = BitmapStepper(selection=selection), SpeedSurface(selection=selection)
    selection.settle()
    assert bars_.note == "resnet18.stage3 in resnet18@1."
    assert "resnet18.stage3@1" in bars_.data["says"][bars_.chosen]
    assert rows.note == "A row of resnet18.stage3@8, 28 pixels, with random values."
    assert "pixels from 392, k from 576" in tile.to_svg()
    assert "One image of resnet18.stage3@8" in where.note
    selection.workload = "n8h64w64c8k8r3s3p1:w2a2"
    selection.settle()
    assert (bars_.chosen, bars_.note) == (-1, "resnet18@1 has no layer n8h64w64c8k8r3s3p1:w2a2.")
    assert "the first 30 of 64 pixels" in rows.note
    assert [view.error for view in (tile, where, rows)] == [""] * 3


def test_what_cannot_be_drawn_is_said(surface: sparse.SpeedMap) -> None:
    assert "cannot draw 5: give records of subbyte.sparse.tile_steps()" in BitmapStepper([5]).error  # type: ignore[list-item]
    assert "give records of subbyte.sparse.row_lowering()" in SparseIm2col("x").error  # type: ignore[arg-type]
    assert "give a layer" in SpeedSurface(5).error  # type: ignore[arg-type]
    assert "resnet50" in LayerBars("resnet51").error
    axis = tuple(i / 40 for i in range(1, 41))
    wide = replace(surface, surface=replace(surface.surface, weights=axis))
    assert "at most 32 a side" in SpeedSurface(wide).error
    with pytest.raises(InvalidInput, match="step=50 is out of range; the nearest there is: 7"):
        SparseIm2col(step=50)
    with pytest.raises(InvalidInput, match="chosen=20 is out of range; the nearest there is: 8"):
        SpeedSurface(surface, chosen=20)


def test_charts_of_experiments_show_their_rows(repository: Path) -> None:
    newest = max((repository / "benchmarks/results/sparse").glob("figures-*.json"))
    found = {one.name: one for one in sparse.read_figures(newest).experiments}
    first, over = found["F1"].plot(), found["F3"].plot()
    assert sorted(y for trace in first.data[1::2] for y in trace.y) == sorted(row[3] for row in found["F1"].rows)
    assert [list(trace.y) for trace in over.data] == [[row[at] for row in found["F3"].rows] for at in (1, 2)]
    bars = {trace.name: list(trace.y) for trace in found["F5"].plot().data}
    assert {"dual over same unit", "dual over dense core"} <= set(bars)
    for name, one in found.items():
        if name != "F8":
            assert "no GPU has this unit" in one.plot().layout.title.subtitle.text.replace("<br>", " ")
    with pytest.raises(InvalidInput, match="no chart of F8"):
        found["F8"].plot()


def test_the_chart_of_software_shows_every_gain_and_what_pays() -> None:
    gains = [("blocks", 1.0, 0.8), ("blocks", 0.25, 2.0), ("2:4", 0.5, 1.4), ("condense", 0.0, 1.3)]
    made = [
        sparse.SoftwareGain("gemm4096", path, 1.0, weights, gain, "made up, a GPU") for path, weights, gain in gains
    ]
    drawn = sparse.Software(tuple(made)).plot()
    marks = {trace.name: list(zip(trace.x, trace.y, strict=True)) for trace in drawn.data if trace.mode == "markers"}
    assert marks == {"2:4": [(0.5, 1.4)], "blocks": [(0.25, 2.0), (1.0, 0.8)]}
    assert "level with dense at blocks 0.71" in drawn.layout.title.text.replace("<br>", " ")
    assert "a GPU" in drawn.layout.title.subtitle.text
    lines = {trace.name: list(trace.y) for trace in drawn.data if trace.mode == "lines"}
    assert lines["model, zeros of both operands"][-1] == pytest.approx(0.881, abs=0.001)
    slower = sparse.Software((sparse.SoftwareGain("gemm4096", "2:4", 1.0, 0.5, 0.9, "made up, a GPU"),)).plot()
    assert "no density measured" in slower.layout.title.text
