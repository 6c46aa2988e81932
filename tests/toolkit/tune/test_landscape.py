"""Landscape files: provenance, every configuration, small, the same bytes again, damage refused."""

from __future__ import annotations

import gzip
import json
import random

import pytest

import subbyte
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import config_at, describe_space
from subbyte.records.landscape import landscape
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape, find_landscape, shipped

DEVICE = {"runner": "cuda", "name": "GPU", "driver": "580.1", "uuid": "GPU-1"}


@pytest.fixture
def recorded(toy):
    results = FakeRunner(failures={"timeout": 0.1}).run(toy.workload, [toy.config(index) for index in toy.valid])
    return Landscape.from_results(toy, dict(zip(toy.valid, results, strict=True)), DEVICE, {"repeats": 5}, "record toy")


@pytest.fixture
def in_package(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    recorded.save(tmp_path / f"{recorded.name}.json.gz")
    return recorded


def test_save_and_load(recorded, toy, tmp_path):
    path = recorded.save(tmp_path / "toy.json.gz")
    again = Landscape.load(path)
    assert again.name == "toy"
    assert len(again) == len(toy.valid)
    assert again.best[0] == recorded.best[0]
    assert again.workload == toy.workload
    assert (again.space_hash, again.arch, again.kind) == (toy.hash, "sm_90a", "paper")
    assert again.device == DEVICE
    for index, result in recorded.results.items():
        assert again.config(index) == toy.config(index)
        if isinstance(result, Failed):
            assert again.results[index] == result
        else:
            assert again.results[index].microseconds == result.microseconds
            assert again.results[index].samples == pytest.approx(result.samples, abs=1e-4)
            assert again.results[index].cold_microseconds == result.cold_microseconds
    assert recorded.save(tmp_path / "copy.json.gz").read_bytes() == path.read_bytes()


def test_info_and_table(recorded, toy):
    info = recorded.info()
    assert info.measured + sum(info.failed.values()) == len(toy.valid)
    assert set(info.failed) == {"timeout"}
    assert info.best_microseconds == recorded.best[1].microseconds <= info.median_microseconds
    assert info.best_tops == pytest.approx(toy.workload.operations / info.best_microseconds / 1e6)
    assert info.best_config == toy.config(recorded.best[0]).to_dict()
    assert (info.spec, info.protocol) == (toy.workload.spec, {"repeats": 5})
    assert info.to_dict()["name"] in recorded._repr_html_()
    table = recorded.to_frame()
    assert list(table.index) == list(toy.valid)
    assert (table.failure == "timeout").sum() == info.failed["timeout"]
    assert recorded.fraction(2 * info.best_microseconds) == 0.5


def test_a_full_space_with_raw_samples_stays_under_a_megabyte(toy, tmp_path):
    chance = random.Random(0)

    def measured():
        base = chance.uniform(10, 1000)
        samples = tuple(base * chance.uniform(0.99, 1.01) for _ in range(30))
        return Measured(samples[0], samples, base, True, DEVICE, {"sm_mhz": 1980, "watts": chance.random()})

    space = toy
    recorded = Landscape.from_results(space, {index: measured() for index in range(216)}, DEVICE)
    size = recorded.save(tmp_path / "big.json.gz").stat().st_size
    assert size / 216 * 1125 < 1_000_000


def test_landscapes_are_found_by_name_label_and_spec(in_package, toy):
    name = "toy@8.paper.sm_90a"
    assert list(shipped()) == [name]
    assert find_landscape(toy.workload) == find_landscape(toy.workload, "sm_90a", "paper") == name
    assert find_landscape(toy.workload, "sm_80") is None
    for which in (name, "toy@8", toy.workload.spec, toy.workload):
        assert landscape(which).name == name


def test_a_workloads_name_means_the_papers_space(in_package, toy, tmp_path):
    header = {**in_package.header, "space": {**in_package.header["space"], "kind": "extended"}}
    other = Landscape(header, in_package.results, "toy@8.extended.sm_90a")
    other.save(tmp_path / f"{other.name}.json.gz")
    assert list(shipped()) == [in_package.name, other.name]
    assert find_landscape(toy.workload) == landscape("toy@8").name == landscape(toy.workload).name == in_package.name
    assert find_landscape(toy.workload, kind="extended") == other.name
    assert landscape(other.name).kind == "extended"


def test_unknown_landscapes_get_the_closest_name(in_package):
    with pytest.raises(InvalidInput, match=r"did you mean toy@8\.paper\.sm_90a"):
        landscape("toy@8.paper.sm_90")


def test_nothing_shipped_says_how_to_record(tmp_path, monkeypatch, toy):
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    with pytest.raises(InvalidInput, match="subbyte landscape record"):
        landscape(toy.workload)


@pytest.mark.parametrize("cut", [0.3, 0.9, 0.999])
def test_a_cut_file_is_refused(recorded, tmp_path, cut):
    path = recorded.save(tmp_path / "toy.json.gz")
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(BrokenRecord, match="cut short"):
        Landscape.load(path)


@pytest.mark.parametrize(
    ("line", "text", "says"),
    [
        (0, "{}", "line 1: not the header"),
        (3, "{", "line 4"),
        (3, '{"index":3,"microseconds":-1}', "line 4: .*positive"),
        (3, '{"index":3,"kind":"odd","reason":""}', "line 4: .*failure kind"),
        (3, '{"microseconds":1}', "line 4"),
        (3, None, "configurations; the file was cut short"),
    ],
)
def test_damaged_lines_are_refused_by_number(recorded, tmp_path, line, text, says):
    path = recorded.save(tmp_path / "toy.json.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    lines[line : line + 1] = [] if text is None else [text]
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    with pytest.raises(BrokenRecord, match=says):
        Landscape.load(path)


def test_another_file_and_another_ending_are_refused(recorded, tmp_path):
    (tmp_path / "text.json.gz").write_text("hello")
    with pytest.raises(BrokenRecord, match="not a landscape file"):
        Landscape.load(tmp_path / "text.json.gz")
    with pytest.raises(InvalidInput, match=r"must end in \.json\.gz"):
        recorded.save(tmp_path / "toy.json")


@pytest.mark.parametrize("kind", ["paper", "extended"])
def test_the_header_rebuilds_every_configuration_without_the_space(kind):
    space = subbyte.space("n8h7w7c64k64r3s3p1", "sm_80", kind, layout="nhwc")
    description = json.loads(json.dumps(describe_space(space)))
    for index in [0, len(space) - 1, *range(1, len(space), len(space) // 97)]:
        assert config_at(description, index) == space.config(index)
    with pytest.raises(InvalidInput, match="outside the space"):
        config_at(description, len(space))
