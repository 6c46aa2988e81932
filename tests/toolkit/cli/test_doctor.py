import json
import tomllib
from pathlib import Path

import pytest

from subbyte.cli import doctor
from subbyte.cli.main import main
from subbyte.errors import MissingDependency
from subbyte.gpu.driver import GpuInfo

H200 = GpuInfo(0, "NVIDIA H200", "sm_90a", 132, 1 << 37, 60 << 20, 232448, "13.0", "580.1", "0000:01:00.0")


@pytest.fixture
def complete(monkeypatch, tmp_path):
    """Everything installed, no GPU, an empty cache."""
    versions = {**doctor.PINS, "cuda-bindings": "13.0.3"}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, "1.0"))
    monkeypatch.setattr(doctor, "_nvrtc", lambda gpus: doctor.Check("nvrtc", "ok", "13.0"))
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("SUBBYTE_CACHE", str(tmp_path))

    def none():
        raise MissingDependency("no NVIDIA driver on this machine")

    monkeypatch.setattr(doctor, "detect", none)
    return versions


def test_without_a_gpu_it_is_fine_and_says_what_works(complete, capsys):
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "no NVIDIA driver" in shown
    assert "works without a GPU" in shown
    assert "40 times slower" in shown


def test_json_is_one_versioned_object(complete, capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["command"], report["ok"]) == (1, "doctor", True)
    assert [arch["name"] for arch in report["architectures"]][-1] == "sm_90a"
    assert report["gpus"] == []


def test_with_a_gpu(complete, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "detect", lambda: [H200])
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "cuda:0 NVIDIA H200 (sm_90a, 132 SMs)" in shown
    assert "driver 580.1, CUDA up to 13.0; cuda-bindings 13.0.3" in shown
    assert "<- this GPU" in shown
    assert "works without" not in shown


@pytest.mark.parametrize("name", list(doctor.PINS))
def test_any_other_pin_is_missing_with_the_command(complete, capsys, name):
    complete[name] = "99"
    assert main(["doctor"]) == 3
    assert f"pip install {name}=={doctor.PINS[name]}" in capsys.readouterr().out


def test_no_compiler_matters_only_without_a_gpu(complete, monkeypatch, capsys):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert main(["doctor"]) == 3
    monkeypatch.setattr(doctor, "detect", lambda: [H200])
    assert main(["doctor"]) == 0
    assert "sudo apt-get install g++" in capsys.readouterr().out


def test_an_older_driver_is_told_its_extra(complete, monkeypatch, capsys):
    older = GpuInfo(**{**H200.to_dict(), "cuda_version": "12.4"})
    monkeypatch.setattr(doctor, "detect", lambda: [older])
    main(["doctor"])
    assert "subbyte[cuda12]" in capsys.readouterr().out
    assert [doctor.fitting_extra(text) for text in ("13.1", "12.9", "11.8")] == ["cuda13", "cuda12", None]


def test_a_gpu_without_kernels_is_named(complete, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "detect", lambda: [GpuInfo(**{**H200.to_dict(), "arch": "sm_120a"})])
    assert main(["doctor"]) == 0
    assert "no kernels for sm_120a" in capsys.readouterr().out


def test_cache_is_counted(complete, tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert doctor.examine()["cache"] == {"folder": str(tmp_path), "bytes": 5}


def test_pins_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    pinned = dict(entry.split("==") for entry in project["dependencies"] if "==" in entry)
    assert {name: pinned[name] for name in doctor.PINS} == doctor.PINS
