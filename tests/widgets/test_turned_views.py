"""Tile strides and threshold folding without a browser: what is drawn is the record's, and what the sums give."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest

from subbyte import Thresholds
from subbyte.errors import InvalidInput
from subbyte.technique import folding, strides
from subbyte_widgets import Selection, ThresholdFolding, TileStrides
from subbyte_widgets.threshold_folding.picture import at, folding_svg, span
from subbyte_widgets.tile_strides.picture import strides_svg

SVG = "{http://www.w3.org/2000/svg}"


def banks(svg: str) -> list[list[int]]:
    """The banks that are drawn of each row: 8 rows of the plain layout, then 8 of the tile in one piece."""
    found = [(int(b), int(r)) for b, r in re.findall(r'data-bank="(\d+)".*?data-row="(\d)"', svg)]
    return [[b for b, _ in found[i : i + 4]] for i in range(0, len(found), 4)]


def test_banks_and_costs_are_drawn() -> None:
    record = strides()
    for number, load in enumerate(record.plain):
        svg = strides_svg(record, number)
        assert banks(svg) == [[*row] for row in load.banks + record.blocks[0].banks]
        assert svg.count('class="sector moved"') == len(load.sectors) + 4
        assert f"{load.distance:,} bits from row to row: {load.wavefronts} cycle" in svg
        words = [text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
        assert words[-4:] == ["1,024", "8", "8", "8"]
        assert words.count(f"line {load.lines[-1]}") == 1 + (load.lines[-1] == 0)
    moved = replace(record.plain[0], banks=record.plain[1].banks)
    assert banks(strides_svg(replace(record, loads=(moved, *record.loads[1:])), 0)) != banks(strides_svg(record, 0))


def test_leading_dimensions_are_chosen() -> None:
    view = TileStrides([128, 256, 2048])
    assert [page["label"] for page in view.data] == ["128 bits", "256 bits", "2,048 bits"]
    view.set_state({"chosen": 9})
    assert view.chosen == 2
    assert "8 of its rows meet in the same banks" in view.alternative
    assert "2,048 bits from row to row" in view.to_svg()
    assert "expected one or more multiples of 128" in TileStrides([100]).error
    assert "give at most 8" in TileStrides(range(128, 1281, 128)).error
    with pytest.raises(InvalidInput, match="chosen=5 is out of range; the nearest there is: 2"):
        TileStrides([128, 256, 384], chosen=5)


def test_a_selected_layer_has_a_leading_dimension() -> None:
    selection = Selection("n8h8w8c200k64r3s3p1:w1a1")
    view = TileStrides(selection=selection)
    selection.settle()
    assert (view.data[view.chosen]["label"], len(view.data)) == ("256 bits", 8)
    assert "are 256 bits apart" in view.note
    selection.workload = "n8h8w8c2000k64r3s3p1:w1a1"
    selection.settle()
    assert view.data[view.chosen]["label"] == "2,048 bits"


@pytest.mark.parametrize("types", ["w1a1", "w1a2", "w2a2:signed.signed", "w1a4"])
@pytest.mark.parametrize("gamma", [-1.3, 0.0, 0.4])
def test_every_sum_lies_in_the_box_of_its_value(types: str, gamma: float) -> None:
    record = folding(f"n1h5w5c20k4r3s3p1:{types}", gamma=gamma, beta=0.6)
    output = record.workload.precision.output
    thresholds = Thresholds.from_batch_norm([gamma], 0.6, [record.mean], record.variance, output=output)
    svg = folding_svg(record)
    pattern = r'class="value v\d" x="([-\d.]+)" y="[-\d.]+" width="([\d.]+)".*?data-value="(-?\d+)"'
    boxes = [tuple(map(float, one)) for one in re.findall(pattern, svg)]
    least, most = span(record)
    sums = np.arange(least, most, dtype=np.int32)
    for total, value in zip(sums.tolist(), thresholds.apply(sums[:, None])[:, 0].tolist(), strict=True):
        x = at(record, total) + 0.05
        assert [drawn for left, wide, drawn in boxes if left <= x < left + wide] == [value]
    for level in map(int, re.findall(r'data-level="(-?\d+)"', svg)):
        before, after = (record.normalized(total) for total in (level - 1, level))
        assert any(min(before, after) <= need <= max(before, after) for need in record.needs)


def test_gamma_goes_through_zero() -> None:
    view = ThresholdFolding("n1h5w5c20k4r3s3p1:w1a2")
    assert [page["label"] for page in view.data][::10] == ["-2", "-1", "0", "1", "2"]
    said = [page["say"].split(":")[0] for page in view.data]
    assert said == ["gamma < 0"] * 20 + ["gamma is 0"] + ["gamma > 0"] * 20
    assert view.chosen == 30
    view.chosen = 20
    assert "every sum gives 0, a constant channel" in view.alternative
    assert "batch normalization, then rounding" in view.to_svg()


def test_what_cannot_be_folded_is_said() -> None:
    assert "variance" in ThresholdFolding("n1h1w1c8k1r1s1:w1a1", normalization={"variance": -1.0}).error
    assert "cannot draw 5: give a workload" in ThresholdFolding([5]).error  # type: ignore[list-item]
    assert "0 gammas; give 1 to 101" in ThresholdFolding("n1h1w1c8k1r1s1:w1a1", []).error
    with pytest.raises(InvalidInput, match="chosen=99 is out of range"):
        ThresholdFolding("n1h1w1c8k1r1s1:w1a1", chosen=99)
    selection = Selection("n8h8w8c64k64r3s3p1:w2a2")
    view = ThresholdFolding(selection=selection)
    selection.settle()
    assert "n8h8w8c64k64r3s3p1:w2a2" in view.to_svg()
