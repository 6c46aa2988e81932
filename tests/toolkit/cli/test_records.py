"""``subbyte records``: list, show, export, import, forget, and what the other commands say of own records."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

import subbyte
from subbyte.cli.doctor import examine
from subbyte.cli.main import main
from subbyte.device.arch import arch
from subbyte.families import config_from_key
from subbyte.families.base import Expected
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma import batches, first_choices
from subbyte.kernel.own import Memory
from subbyte.records.result import Measured
from subbyte.records.store import Store

LAYERS = ("n8h5w5c32k64r3s3p1", "n8h6w6c32k64r3s3p1")
DEVICE = {"runner": "cuda", "name": "GPU A", "driver": "580.1"}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """One record of each layer, on the GPU of this machine."""
    monkeypatch.setenv("SUBBYTE_STORE", str(tmp_path / "own.sqlite"))
    gpu = SimpleNamespace(ordinal=0, name="GPU A", arch="sm_90a")
    monkeypatch.setattr("subbyte.gpu.driver.detect", lambda: [gpu])
    for place, layer in enumerate(LAYERS):
        memory = Memory(subbyte.workload(layer), "sm_90a", "tune")
        times = (5.0 + place, 5.1 + place)
        memory.told(MmaConfig(chunk=1), Measured(5.0 + place, times, verified=True), DEVICE, 8)
    return Store(tmp_path / "own.sqlite")


def out(capsys, *argv, code=0):
    assert main(list(argv)) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


def listed(capsys, *argv):
    return json.loads(out(capsys, "records", *argv, "--json"))


def test_list_and_show(store, capsys):
    text = out(capsys, "records", "list")
    assert [line.split()[:2] for line in text.splitlines()[1:]] == [["1", LAYERS[0]], ["2", LAYERS[1]]]
    assert "GPU A" in text
    assert [one["id"] for one in listed(capsys, "list", LAYERS[1])["records"]] == [2]
    assert listed(capsys, "list", "--gpu", "GPU B")["records"] == []
    assert "holds no such record" in out(capsys, "records", "list", "--gpu", "GPU B")
    shown = listed(capsys, "show", LAYERS[0])
    assert shown["taken"] == [1]
    assert shown["records"][0]["fields"] == MmaConfig(chunk=1).to_dict()
    assert "by compile on this machine" in out(capsys, "records", "show", "--id", "2")
    assert "holds no such record" in out(capsys, "records", "show", "--arch", "sm_80", code=2)


def test_a_place_where_no_store_can_be_is_no_empty_store(store, capsys, tmp_path):
    """Below /proc and below a file nothing can be made; where it can, nothing is left behind by looking."""
    for place in ("/proc/own.sqlite", "/proc/1/deeper/own.sqlite", str(store.path / "own.sqlite")):
        for part in ("list", "show", "export"):
            argv = [part, *(["mine.jsonl"] if part == "export" else []), "--store", place]
            said = out(capsys, "records", *argv, code=2)
            assert f"store {place}: it is not there, and nothing can be made in " in said
            assert said.count("\n") == 1
            assert "name another file with store=, --store or SUBBYTE_STORE" in said
    before = sorted(tmp_path.iterdir())
    assert "holds no records" in out(capsys, "records", "list", "--store", str(tmp_path / "new" / "own.sqlite"))
    assert sorted(tmp_path.iterdir()) == before


def test_export_forget_import(store, capsys, tmp_path):
    file = str(tmp_path / "mine.jsonl")
    assert "2 records" in out(capsys, "records", "export", file)
    assert "exists" in out(capsys, "records", "export", file, code=2)
    before = [row.record for row in store.rows()]
    said = out(capsys, "records", "forget", LAYERS[0])
    assert said.startswith("removed 1 record\n")
    assert LAYERS[0] in said
    assert [row.id for row in store.rows()] == [2]
    assert "say what to forget" in out(capsys, "records", "forget", code=2)
    assert "say what to forget" in out(capsys, "records", "forget", LAYERS[1], "--all", code=2)
    assert len(listed(capsys, "forget", "--all")["records"]) == 1
    assert listed(capsys, "import", file) == {
        "schema": 1, "command": "records", "part": "import", "store": str(store.path), "added": 2, "replaced": 0,
        "kept": 0, "notices": [],
    }  # fmt: skip
    assert [row.record for row in store.rows()] == before
    (tmp_path / "mine.jsonl").write_text("{}\n")
    assert "line 1" in out(capsys, "records", "import", file, code=2)


def test_no_store_and_other_commands(store, capsys, monkeypatch):
    assert examine()["store"] == {"file": str(store.path), "records": 2, "problem": ""}
    assert "your own record (5.00 us" in out(capsys, "build", LAYERS[0])
    assert "own record" not in out(capsys, "build", LAYERS[0], "--store", "off")
    assert "use only one of them" in out(capsys, "build", LAYERS[0], "--set", "chunk=1", "--tries", "4", code=2)
    monkeypatch.setenv("SUBBYTE_STORE", "off")
    assert "the store is 'off'" in out(capsys, "records", "list", code=2)


def test_origin_says_where_a_kernel_comes_from(store):
    own = subbyte.origin(LAYERS[0])
    assert (own.source, own.taken.family, own.microseconds, own.taken.low, own.taken.high) == (
        "own", "mma", 5.0, 5.0, 5.1,
    )  # fmt: skip
    assert own.share is None  # the floor is that of another GPU
    assert own.advice == ""
    predicted = subbyte.origin(LAYERS[0], store="off")
    assert (predicted.source, predicted.microseconds) == ("predicted", None)
    assert own.sources == (own.taken, predicted.taken)  # what would be taken without the record
    assert "tries=16" in predicted.advice
    left = subbyte.origin(LAYERS[0], gpu="GPU B")
    assert left.source == "predicted"
    assert "on GPU A" in left.left[0]
    shipped = subbyte.origin("resnet50.stage2@8")
    assert (shipped.source, shipped.taken.device, len(shipped.sources)) == ("shipped", "NVIDIA H200", 1)
    assert 0 < shipped.floor < shipped.microseconds
    assert shipped.share == shipped.floor / shipped.microseconds
    for one in (own, shipped, predicted, left):
        assert one.source in one._repr_html_()
        assert one.reason.split(";")[0] in one.text()
        assert json.loads(one.to_json())["sources"][0]["config"] == one.taken.config


def test_a_predicted_time_has_the_error_bar_of_first_choices(monkeypatch):
    """As far off as the model was on layers that it was not trained on; without such measurements there is none."""
    layer = "n8h14w20c48k40r3s3p1"
    origin = subbyte.origin(layer, store="off")
    off = first_choices.ratios()
    time, low, high = origin.taken.microseconds, origin.taken.low, origin.taken.high
    assert off, "the model is another one: python benchmarks/network first RECORD --write"
    assert origin.taken.layers == len(off) > 5
    assert f"{time:.2f} us expected by a model" in origin.reason
    assert (low, high) == (pytest.approx(time * off[0]), pytest.approx(time * off[-1]))
    assert f"({low:.2f} to {high:.2f})" in origin.text()
    monkeypatch.setattr(first_choices, "ratios", tuple)
    bare = subbyte.origin(layer, store="off")
    assert (bare.taken.microseconds, bare.taken.low, bare.taken.layers) == (time, None, 0)
    assert "error unknown" in bare.text()
    found = batches.Choice(config_from_key(origin.taken.config), 4.5, 2, True)
    monkeypatch.setattr(batches, "known", lambda layer, config, arch: found)  # what it took at another batch
    same = first_choices.expected_time(subbyte.workload(layer), found.config, arch("sm_90a"))
    assert same == Expected(4.5, "NVIDIA H200", measured=True)
    image = subbyte.origin(layer, family="image", store="off")
    assert image.taken.microseconds is None
    assert "only puts kernels in order" in image.text()
