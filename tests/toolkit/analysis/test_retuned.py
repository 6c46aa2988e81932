"""Retuned optima: known contributions come out of a finals file, damage and gaps are refused."""

import json

import pytest

from subbyte.analysis.retuned import read_retuned, retuned
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import space


def test_known_contributions_come_out_of_the_best_of_each_combination(finals, tmp_path):
    path = tmp_path / "stage2-finals.json"
    path.write_text(json.dumps(finals()))
    found = read_retuned(path)
    assert [f.speed_up for f in found.accumulated.values()] == pytest.approx([1.5, 1.65, 1.5 * 1.1 * 1.3])
    assert {name: f.speed_up for name, f in found.sharing.items()} == pytest.approx({"shared": 1.2, "full": 1.5})
    assert found.shapley["layout"].speed_up == pytest.approx(1.3)
    assert len(found.optima) == 12
    best = found.optima["sharing full, packing on, nhwcnc"]
    assert best.microseconds == pytest.approx(10 / 2.145)
    assert best.index == space("resnet50.stage2@8").valid[0]
    assert best.trials == 500
    assert found.exhaustive.microseconds == 4.0
    assert found.table().rows[0][0] == "sharing full, packing on, nhwcnc"
    assert ("Shapley", "layout", "1.30 (1.30 to 1.30)") in found.factors().rows
    assert "tuned by autotvm with 500 trials" in found.text()
    assert found.to_dict()["optima"]["sharing none, packing off, nhwc"]["microseconds"] == pytest.approx(10.0)


def test_gaps_and_damage_are_refused(finals, tmp_path):
    with pytest.raises(InvalidInput, match="nothing recorded with sharing full, packing on, nhwcnc"):
        retuned(finals(left_out="full-rp-nhwcnc"))
    with pytest.raises(BrokenRecord, match="damaged"):
        retuned({**finals(), "device": None})
    with pytest.raises(BrokenRecord, match="not the finals"):
        retuned({**finals(), "format": "other"})
    with pytest.raises(InvalidInput, match="finals"):
        read_retuned(tmp_path / "nothing.json")
    (tmp_path / "text").write_text("text")
    with pytest.raises(BrokenRecord, match="not JSON"):
        read_retuned(tmp_path / "text")
