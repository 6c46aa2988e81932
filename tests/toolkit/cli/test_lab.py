"""`subbyte lab`: which notebook, which server, and what it says when something is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from subbyte.cli import lab
from subbyte.cli.main import main
from subbyte.errors import InvalidInput, MissingDependency


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with three notebooks."""
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    for stem in ("00_start_here", "01_duplicates", "02_register_packing"):
        (notebooks / f"{stem}.ipynb").write_text("{}")
    return notebooks


@pytest.mark.parametrize(
    "name", ["02_register_packing", "02", "2", "register_packing", "notebooks/02_Register_Packing.ipynb"]
)
def test_a_notebook_has_several_names(folder: Path, name: str) -> None:
    assert lab.choose(name, folder) == folder / "02_register_packing.ipynb"


def test_the_number_zero_is_the_first_notebook(folder: Path) -> None:
    assert lab.choose("0", folder).stem == lab.choose("00", folder).stem == lab.FIRST


def test_an_unknown_notebook_gets_the_closest_names(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"unknown notebook 'duplicate': did you mean 01_duplicates"):
        lab.choose("duplicate", folder)


def test_without_notebooks_it_says_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingDependency, match="inside a checkout of subbyte"):
        lab.find_notebooks(beside=tmp_path)


def test_the_current_folder_serves_an_installed_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    assert lab.find_notebooks(beside=Path("/nowhere")) == folder


def test_the_server_is_for_this_machine_and_asks_the_network_nothing(folder: Path) -> None:
    command = lab.lab_command(folder / "00_start_here.ipynb", 9123, True, ["--ServerApp.port_retries=0"])
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--ServerApp.ip=127.0.0.1" in command
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in command
    assert "--ServerApp.port=9123" in command
    assert "--no-browser" in command
    assert ("--allow-root" in command) == (os.geteuid() == 0)
    assert command[-1] == "--ServerApp.port_retries=0"


def test_the_news_are_off_and_own_settings_stay(tmp_path: Path) -> None:
    environment = lab.lab_environment({"JUPYTER_CONFIG_PATH": "/mine", "HOME": "/h"})
    assert environment["JUPYTER_CONFIG_PATH"] == f"{lab.SETTINGS}{os.pathsep}/mine"
    assert environment["OMP_WAIT_POLICY"] == "PASSIVE"
    assert lab.lab_environment({"OMP_WAIT_POLICY": "ACTIVE"})["OMP_WAIT_POLICY"] == "ACTIVE"
    settings = json.loads((lab.SETTINGS / "labconfig/default_setting_overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"] == {"checkForUpdates": False, "fetchNews": "false"}


def test_an_answer_of_the_kernel_is_passed_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads((lab.SETTINGS / "jupyter_server_config.json").read_text())
    module, _, name = config["ServerApp"]["kernel_websocket_connection_class"].rpartition(".")
    connection = getattr(importlib.import_module(module), name)
    base = connection.__mro__[1]
    calls: list[object] = []
    monkeypatch.setattr(base, "connect", lambda self: calls.append("connect"))

    class Handler:
        def set_nodelay(self, value: bool) -> None:
            calls.append(value)

    class Made(connection):
        websocket_handler = Handler()

        def __init__(self) -> None:
            pass

    Made.connect(Made.__new__(Made))
    assert calls == [True, "connect"]


def test_the_command_starts_the_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(lab, "find_notebooks", lambda: folder)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())

    monkeypatch.setattr(lab, "trust", lambda notebooks: None)

    def start(path: str, command: list[str], environment: dict[str, str]) -> None:
        started.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", start)
    assert main(["lab", "1", "--json", "--jupyter=--debug"]) == 0
    assert started[0][-1] == "--debug"
    shown = json.loads(capsys.readouterr().out)
    assert shown["command"] == "lab"
    assert shown["notebook"].endswith("01_duplicates.ipynb")


def test_without_jupyterlab_it_says_how_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "find_notebooks", lambda: folder)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["lab"]) == 3
    assert "pip install 'subbyte[lab]'" in capsys.readouterr().err


def test_only_notebooks_as_committed_are_trusted(folder: Path) -> None:
    assert len(lab.committed(folder)) == 3, "without git all of them"
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm x"):
        subprocess.run(["git", *command.split()], cwd=folder.parent, check=True)
    (folder / "01_duplicates.ipynb").write_text("{ }")
    (folder / "99_foreign.ipynb").write_text("{}")
    assert [path.stem for path in lab.committed(folder)] == ["00_start_here", "02_register_packing"]


def test_a_trusted_notebook_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    nbformat.write(notebook, tmp_path / "a.ipynb")
    notebook = nbformat.read(tmp_path / "a.ipynb", as_version=4)
    assert not signed(notebook)
    lab.trust([tmp_path / "a.ipynb"])
    assert signed(notebook)


def signed(notebook: nbformat.NotebookNode) -> bool:
    """What a Jupyter server of this user would say."""
    notary = NotebookNotary()
    with closing(notary.store):
        return bool(notary.check_signature(notebook))


@pytest.fixture
def shipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The three notebooks, committed, in the current folder."""
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "shipped"]):
        subprocess.run(["git", *command], cwd=folder.parent, env=os.environ | who, check=True)
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(lab, "find_notebooks", lambda: folder)
    return folder


def test_a_reset_brings_the_shipped_notebook_back_and_loses_nothing(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = shipped / "02_register_packing.ipynb"
    for number, text in enumerate(["first", "second"], 1):
        mine.write_text(text)
        assert main(["lab", "--reset", "02"]) == 0
        said = capsys.readouterr().out
        kept = shipped / f"02_register_packing.backup-{number}.ipynb"
        assert said == f"{mine.name} is restored as it was shipped; your copy is {kept.name} in the same folder\n"
        assert (mine.read_text(), kept.read_text()) == ("{}", text)
    assert (shipped / "02_register_packing.backup-1.ipynb").read_text() == "first"
    assert lab.choose("02", shipped) == mine, "a copy has no number of a lesson"
    assert main(["lab", "--reset", "02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backup"] is None
    mine.unlink()
    assert main(["lab", "--reset", "register_packing"]) == 0
    assert capsys.readouterr().out == f"{mine.name} is there again\n"
    assert mine.read_text() == "{}"
    assert len(list(shipped.iterdir())) == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["duplicate"], "unknown notebook 'duplicate': did you mean 01_duplicates"),
        ([], "--reset needs the name or number of a notebook; allowed: 00_start_here, 01_duplicates"),
        (["mine"], "unknown notebook 'mine'"),
    ],
)
def test_a_reset_of_no_shipped_notebook_is_one_sentence(
    shipped: Path, given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (shipped / "mine.ipynb").write_text("own")
    assert main(["lab", "--reset", *given]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert len(list(shipped.iterdir())) == 4


def test_a_reset_without_git_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "find_notebooks", lambda: folder)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent.parent))
    (folder / "01_duplicates.ipynb").write_text("mine")
    assert main(["lab", "--reset", "01"]) == 3
    assert "inside a git checkout" in capsys.readouterr().err
    assert (folder / "01_duplicates.ipynb").read_text() == "mine"
