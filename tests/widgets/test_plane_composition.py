"""The plane composition without a browser: rows, columns, registers and sums of the picture are those of the record."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from subbyte import MmaConfig
from subbyte.errors import InvalidInput
from subbyte.families.bits.config import BitsConfig
from subbyte.technique.composition import PlaneComposition as Record
from subbyte.technique.composition import plane_composition
from subbyte_widgets import PlaneComposition, Selection
from subbyte_widgets._revealed import said
from subbyte_widgets.plane_composition.picture import AT_COUNTS, AT_FACTORS, AT_SUM, Drawing, composition_svg, places

SPEC = "n8h8w8c64k64r3s3p1:w2a2"


@pytest.fixture(scope="module")
def record() -> Record:
    return plane_composition(SPEC, BitsConfig(channels=64, consumers=1), image=5, pixel=3)


def marked(svg: str, class_: str) -> list[float]:
    """x of the marked boxes of a class."""
    return [float(x) for x in re.findall(rf'<rect class="{class_} on" x="([\d.]+)"', svg)]


def test_an_output_is_where_its_rows_and_columns_cross(record: Record) -> None:
    drawing = Drawing(record)
    for place, one in zip(places(drawing), record.outputs, strict=True):
        svg = composition_svg(drawing, place, AT_SUM)
        assert marked(svg, "column") == [pytest.approx(drawing.x(column), abs=0.01)
                                         for column in sorted({term.column for term in one.terms})]  # fmt: skip
        assert len(marked(svg, "lane")) == 1
        assert f">{one.total:,}<" in svg
        assert said("{sum} {constant} = {total}", place).endswith(f"= {one.total:,}")
    rows = re.findall(r'class="own" d="M24 ([\d.]+)H', svg)
    assert [float(y) for y in rows] == [
        pytest.approx(drawing.y(n) + 29.5 / 64 * drawing.high, abs=0.06) for n in (0, 1)
    ]


def test_counts_come_before_what_they_are_multiplied_by(record: Record) -> None:
    drawing = Drawing(record)
    place, term = places(drawing)[3], record.outputs[3].terms[1]
    assert place.rows["r0_1"] == [f"register {term.register}"]
    counts, products = (composition_svg(drawing, place, step) for step in (AT_COUNTS, AT_FACTORS))
    for svg, shown, hidden in ((counts, "c0_1", "f0_1"), (products, "f0_1", "c0_1")):
        later = re.findall(r'<g class="later".*?(?=<g class="(?:now|done|later)"|$)', svg, re.DOTALL)
        assert any(f'data-row="{hidden}"' in one for one in later)
        assert not any(f'data-row="{shown}"' in one for one in later)


def test_another_register_is_told_apart(record: Record) -> None:
    first = record.outputs[0]
    moved = replace(first, lane=first.lane ^ 1)
    other = replace(record, outputs=(moved, *record.outputs[1:]))
    pictures = [composition_svg(drawing, places(drawing)[0], AT_SUM) for drawing in (Drawing(record), Drawing(other))]
    assert marked(pictures[0], "lane") != marked(pictures[1], "lane")


def test_doubled_planes_share_their_accumulators() -> None:
    view = PlaneComposition("resnet50.stage3@8:w1a4", BitsConfig(channels=64, doubled=1))
    assert view.to_svg().count('class="set"') == 1
    assert "doubled in between" in view.data["steps"][1]
    assert "all planes of x" in view.to_svg()


def test_what_cannot_be_drawn_is_said() -> None:
    assert "cannot be built: tiles" in PlaneComposition(SPEC, BitsConfig(channels=256)).error
    assert "cannot draw 5: give a workload" in PlaneComposition(5).error  # type: ignore[arg-type]
    assert "pixel=9: a tile has pixels 0 to 7" in PlaneComposition(SPEC, pixel=9).error
    with pytest.raises(InvalidInput, match="place=99 is out of range; the nearest there is: 31"):
        PlaneComposition(SPEC, place=99)
    selection = Selection(SPEC)
    view = PlaneComposition(selection=selection)
    selection.settle()
    assert SPEC in view.alternative
    selection.configuration = MmaConfig()
    selection.settle()
    assert "mma family" in view.to_svg()
