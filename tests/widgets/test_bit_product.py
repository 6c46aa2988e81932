"""The bit products without a browser: every bit, count and part of the picture is that of the values."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import product

import numpy as np
import pytest

from subbyte.errors import InvalidInput
from subbyte.numerics import encode, random_values, reference
from subbyte.technique.bits import bit_sum
from subbyte.workload import workload
from subbyte_widgets import BitProduct, Selection
from subbyte_widgets._revealed import said
from subbyte_widgets.bit_product.picture import Drawing, bits_svg, places

SVG = "{http://www.w3.org/2000/svg}"
PRECISIONS = ["w1a1", "w1a2", "w1a1:minus", "w2a2:signed.unsigned", "w3a8:bipolar.signed"]


def seen(svg: str) -> dict[str, list[str]]:
    """The words of every row that a picture shows."""
    root = ElementTree.fromstring(svg)
    hidden = {row for part in root.iter(f"{SVG}g") if part.get("class") == "later" for row in part.iter(f"{SVG}g")}
    rows = [row for row in root.iter(f"{SVG}g") if row.get("data-row") and row not in hidden]
    return {str(row.get("data-row")): [label.text or "" for label in row.iter(f"{SVG}text")] for row in rows}


@pytest.mark.parametrize("types", PRECISIONS)
def test_the_picture_is_of_the_values(types: str) -> None:
    wl = workload(f"n2h4w5c40k3r3s3p1u2:{types}")
    rng = np.random.default_rng(7)
    x = random_values(wl.precision.activations, (2, 4, 5, 40), rng)
    w = random_values(wl.precision.weights, (3, 3, 3, 40), rng)
    at = (1, 1)
    drawing = Drawing(bit_sum(wl, at, image=1, channel=2, x=x, w=w))
    steps = BitProduct(drawing.record).data["steps"]
    codes = {"x": encode(x[1], wl.precision.activations), "w": encode(w[2], wl.precision.weights)}
    for number, (r, s) in enumerate(product(range(3), range(3))):
        row, column = (2 * at[i] + tap - 1 for i, tap in enumerate((r, s)))
        inside = 0 <= row < 4 and 0 <= column < 5
        found = places(drawing)[number * drawing.windows + 1]  # its last channels
        rows = seen(bits_svg(drawing, found, drawing.step_of(4)).replace('class="later"', ""))
        here = slice(drawing.window, min(2 * drawing.window, 40))
        assert [word for word in rows["wv"] if word] == [*map(str, w[2, r, s, here])]
        tap = {"x": codes["x"][row, column] if inside else None, "w": codes["w"][r, s]}
        if inside:
            assert rows["xv"][: here.stop - here.start] == [*map(str, x[1, row, column, here])]
            for i, (one, other) in enumerate(drawing.pairs):
                both = (tap["w"] >> one & 1) & (tap["x"] >> other & 1)
                assert rows[f"count{i}"] == [str(int(both.sum()))]
                assert rows[f"w{one}&x{other}"][: here.stop - here.start] == [*map(str, both[here])]
                assert f"{int(both[here].sum())} bits are set in both here, {int(both.sum())} in all" in said(
                    steps[2 + i], found
                )
        else:
            assert set(rows["xv"]) <= {str(wl.precision.pad_value), ""}
    total = int(reference(wl, x, w)[1, 1, 1, 2])
    assert f"by the values {total:,}" in bits_svg(drawing, places(drawing)[0], drawing.step_of(4))


def test_a_step_shows_what_is_done_by_then() -> None:
    drawing = Drawing(bit_sum("n1h3w3c20k1r3s3p1:w1a2"))
    place = places(drawing)[4]
    shown = [set(seen(bits_svg(drawing, place, step))) for step in range(drawing.step_of(4) + 1)]
    assert shown[0] == {"taps", "where", "xv", "wv"}
    assert shown[1] - shown[0] == {"xc", "x0", "x1", "w0"}
    assert (shown[2] - shown[1], shown[3] - shown[2]) == ({"w0&x0", "count0"}, {"w0&x1", "count1"})
    assert shown[2] - shown[3] == {"w0&x0"}, "a product of planes takes the place of the one before"
    sums = [bits_svg(drawing, place, step) for step in range(4, 7)]
    assert [len(re.findall(r'class="later"', svg)) for svg in sums] == [
        3,
        2,
        1,
    ]  # a product of planes, then S and the sum


def test_places_and_steps_stay_inside() -> None:
    view = BitProduct("n1h3w3c70k1r3s3p1:w1a1", place=2)
    assert (view.place, view.steps) == (2, 7)
    view.set_state({"place": 1000, "step": 99})
    assert (view.place, view.step) == (26, 7)
    assert "tap (2, 2)" in view.to_svg()
    with pytest.raises(InvalidInput, match="place=99 is out of range; the nearest there is: 26"):
        BitProduct("n1h3w3c70k1r3s3p1:w1a1", place=99)
    assert len(BitProduct("gemm1x1x20000:w1a1").data["places"]) == 512


def test_what_cannot_be_drawn_is_said() -> None:
    assert "output row=9" in BitProduct("n1h3w3c70k1r3s3p1:w1a1", at=(9, 0)).error
    assert "cannot draw 5: give a workload" in BitProduct(5).error  # type: ignore[arg-type]
    selection = Selection("n8h8w8c64k64r3s3p1:w2a2")
    view = BitProduct(selection=selection)
    selection.settle()
    assert "n8h8w8c64k64r3s3p1:w2a2" in view.to_svg()
    assert "by the values" in view.alternative
