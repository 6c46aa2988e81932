"""CSV and pandas, both ways."""

from __future__ import annotations

import pytest

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.exchange import (
    export_landscape,
    from_frame,
    from_kernel_tuner,
    from_rows,
    import_landscape,
    to_csv,
)
from subbyte.records.result import Measured


def times(landscape):
    return {
        tuple(row[knob] for knob in landscape.header["space"]["knobs"]): (row["microseconds"], row["failure"])
        for row in landscape.rows()
    }


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_csv_of_a_foreign_kernel(cache, tmp_path, suffix):
    found = from_kernel_tuner(cache)
    again = import_landscape(export_landscape(found, tmp_path / f"stencil.{suffix}", "csv"), device="Some GPU")
    assert again.workload.name == "stencil"
    assert again.header["space"]["knobs"] == found.header["space"]["knobs"]
    assert times(again) == times(found)
    assert dict(import_landscape(tmp_path / f"stencil.{suffix}", like=found).results).keys() == found.results.keys()


def test_csv_of_a_convolution_like_its_landscape(recorded, tmp_path):
    path = export_landscape(recorded, tmp_path / "x.csv", "csv")
    again = import_landscape(path, like=recorded)
    assert again.workload == recorded.workload
    assert again.space_hash == recorded.space_hash
    assert times(again) == times(recorded)
    for index, result in recorded.results.items():
        if isinstance(result, Measured):
            assert again.results[index].verified == result.verified
            assert again.results[index].cold_microseconds == result.cold_microseconds
        else:
            assert again.results[index].reason == result.reason


def test_pandas_both_ways(recorded, cache):
    pytest.importorskip("pandas")
    assert times(from_frame(recorded.to_frame(), "x", like=recorded)) == times(recorded)
    foreign = from_kernel_tuner(cache)
    frame = foreign.to_frame()
    assert frame["memory"].tolist().count("texture") == 10
    assert times(from_frame(frame, "stencil")) == times(foreign)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "column microseconds"),
        ("microseconds\n1\n", "knobs"),
        ("a,microseconds\n1\n", "line 2"),
        ("a,microseconds\n1,2,3\n", "line 2"),
        ("a,microseconds\n", "no configuration"),
        ("a,microseconds\n1,fast\n", "'fast' is not a number"),
        ("a,microseconds\n1,-2\n", "positive"),
        ("a,microseconds\n,2\n", "knob a is empty"),
        ("a,microseconds,failure\n1,,bored\n", "failure 'bored'"),
    ],
)
def test_damaged_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        import_landscape(path, "csv")


def test_a_table_of_other_knobs_is_not_like_the_landscape(recorded, cache):
    with pytest.raises(InvalidInput, match="its knobs are"):
        from_rows([{"a": 1, "microseconds": 2.0}], "x", like=recorded)
    row = dict(from_kernel_tuner(cache).rows()[0], block=17)
    with pytest.raises(BrokenRecord, match="block=17"):
        from_rows([row], "x", like=from_kernel_tuner(cache))


def test_like_is_for_csv(recorded, cache_file):
    with pytest.raises(InvalidInput, match="for CSV"):
        import_landscape(cache_file, like=recorded)


def test_csv_text_is_what_rows_say(recorded):
    lines = to_csv(recorded).splitlines()
    assert len(lines) == len(recorded) + 1
    assert lines[0].startswith("index,blk_row_warps")
