"""What Binder does with this checkout, step by step in a copy of it, without its container and without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("toolkit", "widgets", "notebooks", "benchmarks", "binder", "tools", "pyproject.toml", "constraints.txt")
COPIED += ("README.md", "LICENSE", "GLOSSARY.md", "CHANGELOG.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what Binder copies."""
    folder = tmp_path_factory.mktemp("binder")
    skip = shutil.ignore_patterns(".ipynb_checkpoints", "*.egg-info")  # modules that were compiled here stay so
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=skip)
        else:
            shutil.copy(source, folder / name)
    shutil.rmtree(folder / "toolkit/subbyte/__pycache__", ignore_errors=True)
    for notebook in sorted((folder / "notebooks").glob("*.ipynb"), key=lambda path: path.stat().st_size)[3:]:
        notebook.unlink()  # signing takes long, and does the same for each
    return folder


def run(checkout: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the copy, with this environment's Python as ``python``."""
    programs = checkout / "programs"
    programs.mkdir(exist_ok=True)
    for name, line in (("python", '"$@"'), ("jupyter", '-m jupyter "$@"')):
        (programs / name).write_text(f"#!/bin/sh\nexec {sys.executable} {line}\n")
        (programs / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(str(checkout / name) for name in ("toolkit", "widgets")),
        "JUPYTER_DATA_DIR": str(checkout / "data"),
        "NB_PYTHON_PREFIX": str(checkout / "prefix"),
        **variables,
    }
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)


@pytest.mark.deep
def test_pip_takes_the_requirements_from_the_root_of_the_checkout(checkout: Path) -> None:
    # Without "editable": that would need a package of hatchling's that only an isolated build installs.
    lines = (checkout / "binder/requirements.txt").read_text().replace("-e .", ".")
    (checkout / "binder/plain.txt").write_text(lines)
    (checkout / "plain.txt").write_text(lines)
    options = ["--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    install = [sys.executable, "-m", "pip", "install", *options, "--ignore-installed", "-r"]
    done = run(checkout, *install, "binder/plain.txt")
    assert done.returncode == 0, done.stderr
    assert re.search(r"Would install subbyte-\d", done.stdout)
    done = run(checkout, *install, "plain.txt")
    assert done.returncode != 0
    assert "constraints.txt" in done.stderr, "constraints are looked for beside the file that names them"


def test_everything_the_notebooks_import_is_pinned() -> None:
    import tomllib

    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["lab"]]
    names = {re.split(r"[\s<>=!~;\[]", line)[0].lower() for line in named} - {"cuda-bindings"}
    assert names <= pinned, f"without a pin: {names - pinned}"


@pytest.mark.deep  # compiles every module
def test_what_runs_when_the_image_is_built_succeeds(checkout: Path) -> None:
    done = run(checkout, "binder/postBuild")
    assert done.returncode == 0, done.stderr
    assert (checkout / "prefix/etc/jupyter/labconfig/default_setting_overrides.json").is_file()
    assert list((checkout / "toolkit/subbyte").glob("__pycache__/*.pyc"))
    settings = {"JUPYTER_CONFIG_PATH": str(checkout / "prefix/etc/jupyter")}
    shown = run(checkout, "jupyter", "server", "--show-config-json", **settings)
    assert "subbyte.cli.prompt.PromptConnection" in shown.stdout, shown.stderr
    assert len(re.findall("Signing notebook", done.stdout)) == len(list((checkout / "notebooks").glob("*.ipynb")))


@pytest.mark.deep
def test_a_broken_package_stops_the_build(checkout: Path) -> None:
    broken = checkout / "broken"
    shutil.copytree(checkout, broken, ignore=shutil.ignore_patterns("broken", "prefix", "__pycache__"))
    (broken / "widgets/subbyte_widgets/__init__.py").write_text("raise ImportError('no')\n")
    assert run(broken, "binder/postBuild").returncode != 0


def test_what_runs_at_every_start_hands_over(checkout: Path) -> None:
    done = run(checkout, "binder/start", "sh", "-c", 'echo "$OMP_WAIT_POLICY $0 $1"', "a", "b c", OMP_WAIT_POLICY="")
    assert done.stdout == "PASSIVE a b c\n"
