"""Landscapes under constraints that changed, files with a checksum, results shared by equal programs."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import pytest

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import space
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte.records.describe import config_at
from subbyte.records.landscape_space import fastest, space_today
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape

SPEC = "n8h7w7c64k64r3s3p1"
DEVICE = {"runner": "cuda", "name": "GPU", "uuid": "GPU-1"}


def record(refused=(), monkeypatch=None, device=DEVICE):
    """A landscape of the space in which the configurations ``refused`` are refused as well."""
    if monkeypatch is not None:
        refuse(monkeypatch, refused)
    made = space(SPEC)
    results = FakeRunner().run(made.workload, [made.config(index) for index in made.valid])
    return Landscape.from_results(made, dict(zip(made.valid, results, strict=True)), device)


def refuse(monkeypatch, indices):
    keys = frozenset(space(SPEC).config(index).key for index in indices)
    monkeypatch.setattr("subbyte.families.mma.rules.seen_to_spill", lambda *_: keys)


def rewrite(path, change, checksum=True):
    """Change the lines of a landscape file (``change(lines)``), with or without the line of the checksum."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    change(lines)
    path.write_bytes(gzip.compress(("\n".join(lines if checksum else lines[:-1]) + "\n").encode()))


def edit_header(path, change, checksum=True):
    def edited(lines):
        header = json.loads(lines[0])
        change(header)
        lines[0] = json.dumps(header)

    rewrite(path, edited, checksum)


# ---- constraints ------------------------------------------------------------


def test_entries_refused_today_are_dropped_with_a_notice(tmp_path, monkeypatch):
    path = record().save(tmp_path / "old.json.gz")
    before = space(SPEC)
    gone = before.valid[3]
    refuse(monkeypatch, [gone])
    today = space(SPEC)
    assert (today.index_hash, today.hash) == (before.index_hash, today.hash) != (before.index_hash, before.hash)
    loaded = Landscape.load(path)
    assert loaded.dropped == {gone: "registers: the compiler was seen to spill this configuration to local memory"}
    assert sorted(loaded.results) == list(today.valid)
    assert loaded.space_hash == today.hash
    ReplayRunner(loaded).check(today)
    with pytest.raises(InvalidInput, match="another space"):
        ReplayRunner(loaded).check(before)
    info = loaded.info()
    assert (info.dropped, info.missing) == (1, 0)
    assert info.notice.startswith("1 recorded configurations are refused today and left out (first: ")
    assert "seen to spill" in info._repr_html_()
    again = Landscape.load(loaded.save(tmp_path / "new.json.gz"))
    assert (again.dropped, again.space_hash) == ({}, today.hash)


def test_the_fastest_of_today_is_found_without_asking_about_the_slower_ones(monkeypatch):
    made = record()
    best = made.best[0]
    assert fastest(made.header, made.results) == (made.header, *made.best)
    refuse(monkeypatch, [best])
    header, index, result = fastest(made.header, made.results)
    fitted = Landscape.fitted(made.header, made.results)
    assert (index, result) == fitted.best != made.best
    assert config_at(header["space"], index) == fitted.config(index)
    assert fastest(made.header, {best: made.results[best]}) is None


def test_configurations_allowed_since_are_counted_as_missing(tmp_path, monkeypatch):
    with monkeypatch.context() as then:
        lost = space(SPEC).valid[:2]
        path = record(lost, then).save(tmp_path / "old.json.gz")
    loaded = Landscape.load(path)
    assert loaded.missing == lost
    assert (loaded.dropped, loaded.space_hash) == ({}, space(SPEC).hash)
    assert loaded.info().notice == f"2 valid configurations were not recorded (first: {lost[0]})"
    assert loaded.info().missing == 2


def test_files_of_the_first_schema_are_read(tmp_path):
    made = record()
    path = made.save(tmp_path / "first.json.gz")

    def downgrade(header):
        header["schema"], header["space"]["hash"] = 1, header["space"].pop("index_hash")

    edit_header(path, downgrade, checksum=False)
    loaded = Landscape.load(path)
    assert (loaded.dropped, loaded.missing, loaded.space_hash) == ({}, (), space(SPEC).hash)
    assert loaded.best[0] == made.best[0]


@pytest.mark.parametrize("change", [
    {"hash": "of other lists", "index_hash": "0"}, {"knobs": {"unknown": [1]}}, {"arch": "sm_10"}, {"fixed": None},
])  # fmt: skip
def test_a_space_that_is_not_ours_stands_for_itself(tmp_path, change):
    header = json.loads(json.dumps(dict(record().header)))
    header["space"] |= change
    assert space_today(header) is None


def test_a_landscape_with_other_value_lists_keeps_its_indices(tmp_path, monkeypatch):
    ours = space(SPEC)
    few = replace(ours, knobs={**ours.knobs, "chunk": (2, 1)})
    results = FakeRunner().run(few.workload, [few.config(index) for index in few.valid])
    made = Landscape.from_results(few, dict(zip(few.valid, results, strict=True)), DEVICE)
    path = made.save(tmp_path / "few.json.gz")
    gone = few.valid[5]
    monkeypatch.setattr("subbyte.families.mma.rules.seen_to_spill", lambda *_: frozenset([few.config(gone).key]))
    loaded = Landscape.load(path)
    assert list(loaded.dropped) == [gone]
    assert loaded.config(few.valid[7]) == few.config(few.valid[7])
    with pytest.raises(InvalidInput, match="another space"):
        ReplayRunner(loaded).check(space(SPEC))


def test_any_entry_that_the_space_of_today_refuses_is_left_out(toy, tmp_path):
    """A space that was not made by subbyte.space has constraints of its own; nothing is known of them."""
    results = FakeRunner().run(toy.workload, [toy.config(index) for index in toy.valid])
    made = Landscape.from_results(toy, dict(zip(toy.valid, results, strict=True)), DEVICE)
    loaded = Landscape.load(made.save(tmp_path / "toy.json.gz"))
    assert (loaded.dropped, loaded.missing, loaded.space_hash) == ({}, (), toy.hash)


# ---- checksum ------------------------------------------------------------


def test_a_changed_time_is_found_out(tmp_path):
    path = record().save(tmp_path / "a.json.gz")

    def change(lines):
        lines[2] = lines[2].replace('"microseconds":', '"microseconds":1')

    rewrite(path, change)
    with pytest.raises(BrokenRecord, match="does not match its checksum; the file is damaged"):
        Landscape.load(path)


def test_a_file_without_its_checksum_or_with_a_changed_header_is_refused(tmp_path):
    path = record().save(tmp_path / "a.json.gz")
    whole = path.read_bytes()
    rewrite(path, lambda lines: None, checksum=False)
    with pytest.raises(BrokenRecord, match="checksum"):
        Landscape.load(path)
    path.write_bytes(whole)
    edit_header(path, lambda header: header["device"].update(name="faster GPU"))
    with pytest.raises(BrokenRecord, match="checksum"):
        Landscape.load(path)
    edit_header(path, lambda header: header.update(schema=9))
    with pytest.raises(BrokenRecord, match="schema 9; this version of subbyte reads 1, 2"):
        Landscape.load(path)


# ---- shared results ------------------------------------------------------------


def test_equal_programs_share_one_result_and_the_file_says_so(tmp_path):
    made = record()
    first, second, third = list(made.results)[:3]
    shared = Landscape(made.header, {**made.results, first: made.results[third]}, made.name, same={first: third})
    path = shared.save(tmp_path / "shared.json.gz")
    assert f'{{"index":{first},"same_as":{third}}}' in gzip.decompress(path.read_bytes()).decode()
    loaded = Landscape.load(path)
    assert loaded.same == {first: third}
    assert loaded.results[first] == loaded.results[third] != loaded.results[second]
    assert list(loaded.results) == list(made.results)
    info = loaded.info()
    assert (info.measured, info.programs) == (len(made), len(made) - 1)


def test_a_shared_result_without_its_owner_is_damage(tmp_path):
    path = record().save(tmp_path / "a.json.gz")

    def change(lines):
        lines[1] = '{"index":1799,"same_as":1798}'

    rewrite(path, change)
    with pytest.raises(BrokenRecord, match="1798 has no result"):
        Landscape.load(path)


def test_each_result_names_its_gpu(tmp_path):
    device = {"name": "GPU", "gpus": 2, "uuids": ["GPU-a", "GPU-b"]}
    made = record(device=device)
    results = {index: replace(result, device={"uuid": f"GPU-{'ab'[place % 2]}"})
               for place, (index, result) in enumerate(made.results.items())}  # fmt: skip
    results[next(iter(results))] = Failed("timeout", "too slow", device={"uuid": "GPU-b"})
    loaded = Landscape.load(Landscape(made.header, results).save(tmp_path / "two.json.gz"))
    assert [r.device["uuid"] for r in loaded.results.values()] == [r.device["uuid"] for r in results.values()]
    assert isinstance(loaded.results[list(results)[1]], Measured)
