"""Arguments of the wrong kind are named; nothing raw reaches the caller."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.measure.fake import FakeRunner
from subbyte.records.checked import file_path, new_folder, number, whole, wholes
from subbyte.records.landscape import landscape
from subbyte.tune import Landscape, build_bundle
from subbyte.tune.recording import assemble, measured, record_landscape


def test_what_is_right_passes():
    assert file_path("a/b", "file") == Path("a/b")
    assert whole(3, "n") == 3
    assert number(2, "x", positive=True) == 2.0
    assert wholes(range(2), "devices") == (0, 1)


def test_a_folder_is_made_or_refused(tmp_path):
    assert new_folder(tmp_path / "a" / "b", "bundle").is_dir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInput, match=r"bundle .*file.*: cannot make this folder \(.*\); give one"):
            new_folder(path, "bundle")


@pytest.mark.parametrize("value", [None, 5, b"a", ["a"]])
def test_a_path_is_text_or_a_path(value):
    with pytest.raises(InvalidInput, match=r"thing .*: expected a path"):
        file_path(value, "thing")


@pytest.mark.parametrize("value", [None, "3", 1.0, True, 0, [1]])
def test_an_integer_is_one(value):
    with pytest.raises(InvalidInput, match=r"n=.*must be an integer >= 1"):
        whole(value, "n", 1)


@pytest.mark.parametrize("value", [None, "3", True, -1.0, 0, math.nan, [1]])
def test_a_number_is_one(value):
    with pytest.raises(InvalidInput, match=r"x=.*must be a number > 0"):
        number(value, "x", positive=True)


@pytest.mark.parametrize("values", [None, 5, (), (0, 0), "01", ("a",), (-1,)])
def test_numbers_of_gpus_are_different_integers(values):
    with pytest.raises(InvalidInput, match="devices="):
        wholes(values, "devices")


def test_landscapes_and_bundles_name_what_they_were_given(toy, tmp_path):
    results = FakeRunner().run(toy.workload, [toy.config(index) for index in toy.valid])
    made = Landscape.from_results(toy, dict(zip(toy.valid, results, strict=True)), {})
    wrong = [
        lambda: made.config(1.0), lambda: made.config("a"), lambda: made.fraction("a"), lambda: made.fraction(0),
        lambda: made.save(5), lambda: made.save(tmp_path / "none" / "a.json.gz"), lambda: Landscape.load(None),
        lambda: landscape(5), lambda: build_bundle(toy, 5), lambda: build_bundle(toy, tmp_path, "2"),
        lambda: record_landscape(toy, tmp_path, limit_s="x"), lambda: record_landscape(toy, tmp_path, 0),
        lambda: record_landscape(toy, None),
        lambda: assemble(None, 5), lambda: assemble(5, tmp_path), lambda: measured(5),
    ]  # fmt: skip
    for call in wrong:
        with pytest.raises(InvalidInput):
            call()
