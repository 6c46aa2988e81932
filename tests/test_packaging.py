"""The wheel: built from the checkout, unpacked elsewhere, imported there with everything it needs inside."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = {".h", ".hpp", ".cpp", ".js", ".css", ".html", ".json", ".gz"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel file."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("subbyte-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files where an installer puts them, without its dependencies."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder)
    return folder


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"subbyte", "subbyte_widgets"}
    assert not [name for name in names if "__pycache__" in name]
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_nothing_is_installed_into_jupyterlab(wheel: Path) -> None:
    """No extension, no entry point, no data files: anywidget's comm is all that a host needs."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        entries = next(files.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    assert not [name for name in names if ".data/" in name or "labextension" in name or "nbextension" in name]
    assert re.findall(r"^\[(.*)\]$", entries, re.MULTILINE) == ["console_scripts"]


def test_every_data_file_travels(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    roots = (ROOT / "toolkit", ROOT / "widgets")
    ours = {
        path.relative_to(root).as_posix()
        for root in roots
        for path in root.rglob("*")
        if path.suffix in {*DATA, ".py"} and "__pycache__" not in path.parts
    }
    assert ours <= names, sorted(ours - names)
    for kind in (".js", ".json"):
        assert any(name.endswith(kind) for name in ours), f"no {kind} file: is the list of kinds out of date?"


def test_it_imports_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    code = (
        "import subbyte, subbyte.cli.main, subbyte_widgets, pathlib\n"
        f"assert pathlib.Path(subbyte.__file__).is_relative_to({str(installed)!r}), subbyte.__file__\n"
        f"assert pathlib.Path(subbyte_widgets.__file__).is_relative_to({str(installed)!r})\n"
        "from subbyte.analysis.recorded import results_folder, side_by_sides\n"
        "assert results_folder().is_relative_to(pathlib.Path(subbyte.__file__).parent) and side_by_sides()\n"
        "print(subbyte.workload('resnet50.stage2@8').spec)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(installed)}, capture_output=True, text=True
    )
    assert done.stdout == "n8h56w56c64k64r3s3p1\n", done.stderr


def test_the_command_runs_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PYTHONPATH": str(installed), "HOME": str(tmp_path)}
        run = [sys.executable, "-m", "subbyte", *words]
        return subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert command("--version").stdout.startswith("subbyte ")
    lab = command("lab")
    assert lab.returncode == 3
    assert "inside a checkout" in lab.stderr
