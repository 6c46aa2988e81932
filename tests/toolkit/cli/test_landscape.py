"""``subbyte landscape``: list, info, export, and recording in its three steps."""

from __future__ import annotations

import csv
import json

import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.device.launch import Launch
from subbyte.measure.fake import FakeRunner
from subbyte.records.describe import to_line
from subbyte.records.landscape import make_header
from subbyte.records.result import Failed
from subbyte.tune import Landscape, build_bundle, recording
from subbyte.tune import bundle as bundle_module

WORKLOAD = "n8h7w7c64k64r3s3p1"


@pytest.fixture
def space():
    return subbyte.space(WORKLOAD)


@pytest.fixture
def shipped(space, tmp_path, monkeypatch):
    """The package comes with one landscape."""
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    results = FakeRunner(failures={"timeout": 0.2}).run(space.workload, [space.config(index) for index in space.valid])
    recorded = Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), {"name": "some GPU"})
    recorded.save(tmp_path / f"{recorded.name}.json.gz")
    return recorded


@pytest.fixture
def bundle(space, tmp_path, monkeypatch):
    """A bundle of eight configurations and what measuring it wrote."""

    class Kernel:
        cubin, launch, resources = b"cubin", Launch("conv", (1, 1, 1), (32, 1, 1), 0, ()), {"registers": 32}

    class SameProcess:
        def __init__(self, *_):
            pass

        def submit(self, function, *arguments):
            from concurrent.futures import Future

            future = Future()
            future.set_result(function(*arguments))
            return future

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(bundle_module, "_pool", SameProcess)
    indices = space.valid[:8]
    folder = tmp_path / "bundle"
    build_bundle(space, folder, indices=indices, build=lambda *_: Kernel())
    manifest = json.loads((folder / "manifest.jsonl").read_text().splitlines()[0])
    header = make_header(manifest["workload"], manifest["space"], {"name": "some GPU"}, {"repeats": 5}, "measure")
    results = FakeRunner().run(space.workload, [space.config(index) for index in indices])
    lines = [to_line({**header, "format": "subbyte-measurements", "schema": 1})]
    lines += [to_line({"index": i, **result.to_dict()}) for i, result in zip(indices, results, strict=True)]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_list_and_info(shipped, capsys):
    assert main(["landscape", "list"]) == 0
    assert capsys.readouterr().out.startswith(f"{shipped.name}  {shipped.info().measured} measured")
    assert main(["landscape", "info"]) == 0
    assert capsys.readouterr().out.startswith(shipped.name)
    assert main(["landscape", "info", WORKLOAD, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["command"], data["part"], data["name"]) == ("landscape", "info", shipped.name)
    assert data["failed"] == shipped.info().failed
    assert main(["landscape", "info", WORKLOAD]) == 0
    assert "some GPU" in capsys.readouterr().out


def test_no_landscape_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("subbyte.records.landscape_file.SHIPPED", tmp_path)
    assert main(["landscape", "list"]) == 0
    assert "no landscape" in capsys.readouterr().out
    assert main(["landscape", "info", "none"]) == 2


def test_export(shipped, tmp_path, capsys):
    file = tmp_path / "a.csv"
    assert main(["landscape", "export", shipped.name, "-o", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == len(shipped)
    with open(file, newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [int(row["index"]) for row in rows] == list(shipped.results)
    times = {int(row["index"]): float(row["microseconds"]) for row in rows if row["microseconds"]}
    assert times == {index: result.microseconds for index, result in shipped.results.items() if result.ok}
    assert {row["failure"] for row in rows} == {"", "timeout"}
    assert main(["landscape", "export", shipped.name]) == 0
    assert capsys.readouterr().out == file.read_text()


def test_assemble_writes_a_landscape_with_the_provenance(bundle, space, tmp_path, capsys):
    out = tmp_path / "made.json.gz"
    assert main(["landscape", "assemble", str(bundle), "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] == 8
    made = Landscape.load(out)
    assert sorted(made.results) == list(space.valid[:8])
    assert made.device == {"name": "some GPU"}
    assert made.header["protocol"] == {"repeats": 5}
    assert made.space_hash == space.hash


def test_an_incomplete_measurement_is_refused(bundle, tmp_path, capsys):
    results = bundle / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join(lines[:-2]))
    assert main(["landscape", "assemble", str(bundle), "-o", str(tmp_path / "made.json.gz")]) == 2
    assert "2 of 8 configurations have no result" in capsys.readouterr().err
    assert not (tmp_path / "made.json.gz").exists()


def test_a_measurement_of_another_bundle_is_refused(bundle, tmp_path, capsys):
    results = bundle / "results.jsonl"
    header, *lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join([header.replace('"hash":"', '"hash":"0'), *lines]))
    assert main(["landscape", "assemble", str(bundle)]) == 2
    assert "another space" in capsys.readouterr().err


def test_a_landscape_of_failures_alone_is_not_written(bundle, space, tmp_path, capsys):
    results = bundle / "results.jsonl"
    header = results.read_text().splitlines(keepends=True)[0]
    failed = Failed("launch", "no room").to_dict()
    lines = [to_line({"index": index, **failed}) + "\n" for index in space.valid[:8]]
    results.write_text("".join([header, *lines]))
    out = tmp_path / "made.json.gz"
    assert main(["landscape", "assemble", str(bundle), "-o", str(out)]) == 1
    assert "launch=8" in capsys.readouterr().err
    assert not out.exists()


def test_recording_needs_a_place(capsys):
    assert main(["landscape", "record", WORKLOAD]) == 2
    assert "--build-only" in capsys.readouterr().err


def test_record_builds_into_the_folder(tmp_path, monkeypatch, capsys):
    seen = {}

    def build(space, folder, workers, progress):
        seen.update(space=space, folder=folder, workers=workers)
        progress(1, 1)
        return bundle_module.BundleReport(folder, 1, 0, 0, 0.1)

    monkeypatch.setattr(bundle_module, "build_bundle", build)
    arguments = ["landscape", "record", WORKLOAD, "--build-only", str(tmp_path), "--arch", "sm_80", "--workers", "3"]
    assert main([*arguments, "--set", "layout=nhwc", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["built"] == 1
    assert "built 1/1" in err
    assert (seen["space"].arch.name, seen["space"].fixed["layout"], seen["workers"]) == ("sm_80", "nhwc", 3)


@pytest.mark.parametrize("remaining", [0, 3])
def test_record_measures_on_all_devices_and_says_what_remains(bundle, tmp_path, monkeypatch, capsys, remaining):
    seen = {}

    def recorded(space, folder, workers, devices, limit_s, progress):
        seen.update(kind=space.kind, folder=folder, workers=workers, devices=devices, limit_s=limit_s)
        return recording.RecordingReport(str(bundle), 8, 8 - remaining, 0, 2, remaining, 1.0)

    monkeypatch.setattr(recording, "record_landscape", recorded)
    bundle.rename(tmp_path / "made.bundle")
    out = tmp_path / "made.json.gz"
    options = ["--space", "extended", "--workers", "6", "--device", "0, 3", "--limit", "60", "-o", str(out)]
    status = main(["landscape", "record", WORKLOAD, *options])
    assert seen == {"kind": "extended", "folder": str(tmp_path / "made.bundle"), "workers": 6, "devices": [0, 3],
                    "limit_s": 60.0}  # fmt: skip
    if remaining:
        assert status == 1
        assert "3 of 8 configurations are not measured yet; run the same command again" in capsys.readouterr().err
        assert not out.exists()
    else:
        assert status == 0
        assert len(Landscape.load(out)) == 8


def test_record_refuses_odd_devices(tmp_path, capsys):
    assert main(["landscape", "record", WORKLOAD, "-o", str(tmp_path / "a.json.gz"), "--device", "0;1"]) == 2
    assert "such as 0,1" in capsys.readouterr().err


def test_a_folder_without_a_bundle_is_named(tmp_path, capsys):
    assert main(["landscape", "measure", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"subbyte: {tmp_path} holds no bundle")
    assert json.loads(out)["error"]["message"].startswith(f"{tmp_path} holds no bundle")


def test_measuring_without_a_gpu_exits_3(bundle, monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["landscape", "measure", str(bundle), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert (told["command"], told["error"]["kind"], told["error"]["exit_code"]) == ("landscape", "MissingDependency", 3)


def _cache(kernel):
    entry = {"bx": 1, "time": 0.5, "times": [0.5, 0.5]}
    return {"device_name": "GPU", "kernel_name": kernel, "problem_size": [8], "tune_params_keys": ["bx"],
            "tune_params": {"bx": [1]}, "cache": {"1": entry}}  # fmt: skip


@pytest.mark.parametrize("kernel", ["../evil", "/absolute/evil", "..", ".hidden", "a\0b", "-rf"])
def test_an_import_writes_here_whatever_its_file_says(kernel, tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "cache.json").write_text(json.dumps(_cache(kernel)))
    monkeypatch.chdir(here)
    assert main(["landscape", "import", "../cache.json"]) == 0
    (written,) = here.iterdir()
    assert written.name.endswith("foreign.gpu.json.gz")
    assert not written.name.startswith((".", "-"))
    assert {path.name for path in tmp_path.iterdir()} == {"here", "cache.json"}
    assert Landscape.load(written).workload.name == kernel
    content = written.read_bytes()
    for options in ([], ["-o", str(here)], ["-o", str(written)]):
        assert main(["landscape", "import", "../cache.json", *options]) == 2
        assert "already exists and was not changed; give --force" in capsys.readouterr().err
    assert written.read_bytes() == content
    assert main(["landscape", "import", "../cache.json", "--force", "-o", str(here)]) == 0
    assert [path.name for path in here.iterdir()] == [written.name]


def test_a_landscape_of_ours_overwrites_no_other(shipped, tmp_path, monkeypatch, capsys):
    victim = tmp_path / "victim"
    victim.mkdir()
    main(["landscape", "export", shipped.name, "--format", "t4", "-o", str(tmp_path / "a.json")])
    data = json.loads((tmp_path / "a.json").read_text())
    data["metadata"]["subbyte"]["workload"]["name"] = "../victim/toy"
    (tmp_path / "a.json").write_text(json.dumps(data))
    monkeypatch.chdir(victim)
    assert main(["landscape", "import", "../a.json"]) == 0, capsys.readouterr().err
    (written,) = victim.iterdir()
    assert written.name.startswith("victim-toy.paper")


def test_an_assembled_landscape_is_written_over_nothing(bundle, space, tmp_path, monkeypatch, capsys):
    here = tmp_path / "empty"
    here.mkdir()
    monkeypatch.chdir(here)
    command = ["landscape", "assemble", str(bundle)]
    assert main(command) == 0, capsys.readouterr().err
    assert main(command) == 2
    assert main([*command, "--force"]) == 0
    assert len(list(here.iterdir())) == 1
