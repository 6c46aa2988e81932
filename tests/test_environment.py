"""`make lab` and `make test` on machines that lack something: each says what, and the command that installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import check_machine
import environment
import pytest

ROOT = Path(__file__).resolve().parent.parent
BARE = ("sh", "sed", "awk", "rm", "find", "dirname", "cat")


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder to put on PATH alone: a shell's necessities, no Python, no compiler, no browser."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BARE:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


def tool(folder: Path, name: str, script: str = "exit 0") -> Path:
    """An executable shell script."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def python_of_version(folder: Path, version: tuple[int, int, int]) -> None:
    """A ``python3`` that claims to be another version."""
    claim = f"import sys, runpy; sys.version_info = {(*version, 'final', 0)!r}; sys.argv = sys.argv[1:]; "
    run = "sys.path.insert(0, 'tools'); runpy.run_path(sys.argv[0], run_name='__main__')"
    tool(folder, "python3", f'exec {sys.executable} -c "{claim}{run}" "$@"')


def make(target: str, path: Path, *settings: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run make with nothing but ``path`` on PATH."""
    program = shutil.which("make")
    assert program is not None
    clean = {"PATH": str(path), "HOME": str(path.parent), "LC_ALL": "C.UTF-8", **variables}
    command = [program, target, f"VENV={path.parent / 'venv'}", *settings]
    return subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True)


def test_without_python_make_says_so(bin_folder: Path) -> None:
    for target in ("lab", "test"):
        done = make(target, bin_folder)
        assert done.returncode != 0
        assert "python3 is not on PATH" in done.stderr
        assert "apt-get install python3 python3-venv" in done.stderr


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 10, 2), (3, 15, 0)])
def test_a_python_that_cannot_be_used_is_named(bin_folder: Path, version: tuple[int, int, int]) -> None:
    python_of_version(bin_folder, version)
    for target in ("lab", "test"):
        done = make(target, bin_folder)
        assert done.returncode != 0
        assert "Python {}.{}.{} cannot be used: 3.11 to 3.14 can".format(*version) in done.stderr
    assert not (bin_folder.parent / "venv").exists()


def test_a_supported_python_beside_an_old_one_is_used(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))
    assert check_machine.other_python() is None
    tool(bin_folder, "python3.13", "exit 1")
    newer = tool(bin_folder, "python3.12")
    assert check_machine.other_python() == str(newer)
    assert not [line for line in check_machine.problems("lab", (3, 10, 0))[0] if "Python" in line]


def test_without_the_venv_module_make_names_the_package(bin_folder: Path, tmp_path: Path) -> None:
    # Debian leaves ensurepip out of its python3; a module that cannot be imported stands in for that.
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/ensurepip.py").write_text("raise ImportError('left out')\n")
    (bin_folder / "python3").symlink_to(sys.executable)
    for target in ("lab", "test"):
        done = make(target, bin_folder, PYTHONPATH=str(tmp_path / "broken"))
        assert done.returncode != 0
        assert "Python's venv module is not installed" in done.stderr
        assert check_machine.INSTALL[check_machine.family()]["venv"] in done.stderr
    assert not (tmp_path / "venv").exists()


def test_make_test_needs_a_compiler_and_a_browser(bin_folder: Path) -> None:
    (bin_folder / "python3").symlink_to(sys.executable)
    done = make("test", bin_folder)
    assert done.returncode != 0
    advice = check_machine.INSTALL[check_machine.family()]
    for sentence in ("no C++ compiler", advice["compiler"], "no Chromium", advice["browser"]):
        assert sentence in done.stderr
    assert not (bin_folder.parent / "venv").exists(), "the environment is created only when the rest is there"


def test_make_lab_only_mentions_the_compiler(monkeypatch: pytest.MonkeyPatch, bin_folder: Path) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.delenv("CXX", raising=False)
    missing, mentioned = check_machine.problems("lab")
    assert not missing
    assert len(mentioned) == 1
    assert "no C++ compiler" in mentioned[0]


def test_what_is_there_is_found(monkeypatch: pytest.MonkeyPatch, bin_folder: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))
    for name in ("CXX", "SUBBYTE_CHROMIUM", "PLAYWRIGHT_BROWSERS_PATH"):
        monkeypatch.delenv(name, raising=False)
    assert check_machine.find_compiler() is None
    assert check_machine.find_browser(home=str(tmp_path)) is None
    downloaded = tmp_path / ".cache/ms-playwright/chromium-1200/chrome-linux64"
    downloaded.mkdir(parents=True)
    assert check_machine.find_browser(home=str(tmp_path)) is None
    tool(downloaded, "chrome")
    assert check_machine.find_browser(home=str(tmp_path)) == str(downloaded / "chrome")
    chrome = tool(bin_folder, "google-chrome")
    compiler = tool(bin_folder, "clang++")
    assert check_machine.find_browser(home=str(tmp_path)) == str(chrome)
    assert check_machine.find_compiler() == str(compiler)
    assert check_machine.problems("test") == ([], [])
    monkeypatch.setenv("SUBBYTE_CHROMIUM", str(tmp_path / "none"))
    assert check_machine.find_browser() is None


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("ID=debian\n", "debian"),
        ('ID=ubuntu\nID_LIKE="debian"\n', "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=arch\n", "arch"),
        ("ID=unheard-of\n", "debian"),
    ],
)
def test_the_advice_fits_the_distribution(tmp_path: Path, text: str, family: str) -> None:
    (tmp_path / "os-release").write_text(text)
    assert check_machine.family("linux", str(tmp_path / "os-release")) == family
    assert check_machine.family("darwin", str(tmp_path / "os-release")) == "macos"


def test_an_environment_that_is_up_to_date_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    tool(folder / "bin", "python")
    monkeypatch.setattr(environment, "install", lambda *_: pytest.fail("it was installed again"))
    (folder / environment.STAMP).write_text(environment.fingerprint("lab"))
    assert environment.make(str(folder), "lab") == 0


def test_other_extras_or_pins_install_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    tool(folder / "bin", "python")
    installed: list[str] = []
    monkeypatch.setattr(environment, "install", lambda python, extras: installed.append(extras) is None)
    assert environment.make(str(folder), "lab") == environment.make(str(folder), "lab,dev") == 0
    assert installed == ["lab", "lab,dev"]


def test_pip_does_the_work_when_uv_cannot(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for failing in ("uv", "uv pip"):
        shown: list[str] = []

        def run(*command: str, failing: str = failing, shown: list[str] = shown) -> bool:
            shown.append(" ".join(command))
            return f" {failing}" not in shown[-1] or shown[-1].endswith(" uv") != (failing == "uv")

        monkeypatch.setattr(environment, "run", run)
        assert environment.install("python", "lab")
        assert shown[-1].startswith("python -m pip install --quiet --constraint constraints.txt")
        assert "installing with pip" in capsys.readouterr().out.replace("trying again with pip", "installing with pip")


def test_a_failed_install_leaves_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    tool(folder / "bin", "python")
    monkeypatch.setattr(environment, "install", lambda *_: False)
    assert environment.make(str(folder), "lab") == 1
    assert not (folder / environment.STAMP).exists()


def test_help_lists_every_target_that_people_use() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ))
    for target in ("lab", "test", "test-gpu", "format", "constraints", "wheel", "site", "pictures", "clean"):
        assert f"make {target} " in done.stdout


@pytest.mark.parametrize("user", [0, 1000])
def test_continuous_integration_installs_what_is_missing_as_root_only(bin_folder: Path, user: int) -> None:
    """The run script with stand-ins for the system's tools: a machine with nothing but Python."""
    log = bin_folder.parent / "log"
    (bin_folder / "bash").symlink_to(shutil.which("bash") or "/bin/bash")
    (bin_folder / "python3").symlink_to(sys.executable)
    tool(bin_folder, "id", f"echo {user}")
    tool(bin_folder, "apt-get", f'echo "apt-get $*" >> {log}')
    tool(bin_folder, "make", f'echo "make $*" >> {log}')
    done = subprocess.run(
        [bin_folder / "bash", ".ci/run"], cwd=ROOT, env={"PATH": str(bin_folder)}, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    calls = log.read_text().splitlines()
    assert calls[-1] == "make test"
    installed = " ".join(call for call in calls if call.startswith("apt-get install"))
    for package in ("g++", "chromium", "fonts-dejavu-core"):
        assert (package in installed) == (user == 0)


@pytest.mark.parametrize(
    ("extras", "says"),
    [
        ("lab,dev,cuda13", ""),
        ("lab, cuda12", ""),
        ("lab,cuda14", "EXTRAS=lab,cuda14: unknown extra 'cuda14'; allowed: lab,"),
        ("", "unknown extra ''"),
        ("cuda12,cuda13", "exclude each other"),
    ],
)
def test_extras_that_cannot_be_are_named(extras: str, says: str) -> None:
    found = environment.refused(extras)
    assert says in found
    assert bool(says) == bool(found)


def test_make_refuses_a_wrong_extra_before_it_makes_anything(bin_folder: Path) -> None:
    tool(bin_folder, "python3", f'exec {sys.executable} "$@"')
    done = make("env", bin_folder, "EXTRAS=lab,cuda14")
    assert done.returncode != 0
    assert "unknown extra 'cuda14'" in done.stderr
    assert not (bin_folder.parent / "venv").exists()
