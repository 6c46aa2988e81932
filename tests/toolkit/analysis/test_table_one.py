"""Table 1 from files of searches; the paper's own numbers; gaps shown as gaps."""

import json
import re

import pytest

from subbyte.analysis.table_one import PAPER, read_table_one, table_one
from subbyte.errors import BrokenRecord, InvalidInput


@pytest.fixture
def folder(finals, tmp_path):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "hwnc").mkdir()
    for stage in (2, 3):
        (tmp_path / "tuned" / f"stage{stage}-finals.json").write_text(json.dumps({**finals(), "stage": stage}))
    entries = [{"microseconds": 21.45}, {"microseconds": 23.0}]
    (tmp_path / "hwnc" / "stage2-s8.json").write_text(
        json.dumps({"format": "subbyte-hwnc-finals", "trials": 250, "entries": entries})
    )
    return tmp_path


def test_paper_column_is_the_papers():
    assert {stage: round(row["baseline"] / row["searched"], 2) for stage, row in PAPER.items()} == {
        2: 3.85, 3: 3.59, 4: 3.66, 5: 2.80,
    }  # fmt: skip


def test_rows_from_files(folder):
    found = read_table_one(folder)
    assert [row.stage for row in found.rows] == [2, 3]
    row = found.rows[0]
    assert row.operations == 1_849_688_064
    assert row.searched == pytest.approx(10 / 2.145)
    assert row.speed_up("all_off") == pytest.approx(2.145)
    assert row.speed_up("hwnc_s8") == pytest.approx(21.45 / row.searched)
    assert row.speed_up("hwnc_s4") is None
    assert row.exhaustive == 4.0
    assert row.tops == pytest.approx(1849.688064 / row.searched)
    assert row.hwnc_trials == {"s8": 250}
    assert found.rows[1].hwnc_s8 is None
    assert "500 trials" in found.text()
    assert found.table().rows[0][-1] == pytest.approx(196.06 / 50.98)
    page = found._repr_html_()  # on its side: a column for each stage, a row for each number
    assert re.findall("<th>([^<]*)</th>", page) == ["", "stage 2", "stage 3"]
    assert page.count("<tr>") == len(found.table().columns)
    assert f"<tr><td>searched</td><td>{row.searched:.2f}</td>" in page


def test_what_does_not_belong_together_is_refused(finals, folder):
    with pytest.raises(InvalidInput, match="no stage"):
        table_one({})
    (folder / "tuned" / "stage3-finals.json").write_text(json.dumps({**finals(), "stage": 3, "trials": 100}))
    with pytest.raises(InvalidInput, match="different ways"):
        read_table_one(folder)
    (folder / "hwnc" / "stage2-s8.json").write_text("{}")
    with pytest.raises(BrokenRecord, match="damaged"):
        read_table_one(folder)
