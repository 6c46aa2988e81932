"""``subbyte lab``: JupyterLab on the first notebook, or on the one named.

The server listens on this machine only and requests nothing from the network: no news, no update check, no extension
catalogue. ``--jupyter`` passes any option on after these, so a container can decide otherwise.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

from subbyte.cli.arguments import command_parser, emit, shown
from subbyte.cli.reset import is_backup, names_of_shipped, reset
from subbyte.errors import InvalidInput, MissingDependency, did_you_mean
from subbyte.numerals import natural
from subbyte.streams import say

FIRST = "00_start_here"
"""Stem of the notebook that opens when none is named."""

MOST_PORT = 65_535
SETTINGS = Path(__file__).parent / "jupyter"
"""A Jupyter configuration folder that turns off news and update checks."""


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte lab``."""
    parser = command_parser(
        subparsers, "lab", "Open JupyterLab on the first notebook, or on the one named.", "subbyte lab 02 --no-browser"
    )
    parser.add_argument(
        "notebook", nargs="?", metavar="NOTEBOOK", help=f"name or number of the notebook (default {FIRST})"
    )
    text = "restore this notebook as it was shipped, keep yours as a backup in the same folder, and do not open it"
    parser.add_argument("--reset", action="store_true", help=text)
    parser.add_argument("--no-browser", action="store_true", help="print the address, and do not open a browser")
    parser.add_argument(
        "--port", metavar="N", type=_port, help="port on this machine (default: the first free one from 8888)"
    )
    text = "an option for JupyterLab, such as --jupyter=--debug; may be repeated"
    parser.add_argument("--jupyter", action="append", default=[], metavar="OPTION", help=text)


def _port(text: str) -> int:
    number = natural(text)
    if number is None or number > MOST_PORT:
        raise argparse.ArgumentTypeError(f"{shown(text)}: expected a port, a whole number from 0 to {MOST_PORT}")
    return number


def run(args: argparse.Namespace) -> int:
    """Replace this process with JupyterLab, or reset a notebook. Raises InvalidInput, MissingDependency or
    NotWritten."""
    folder = find_notebooks()
    if args.reset:
        return _reset(args, folder)
    return _open(args, folder)


def _open(args: argparse.Namespace, folder: Path) -> NoReturn:
    notebook = choose(FIRST if args.notebook is None else args.notebook, folder)
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingDependency(
            f"JupyterLab is not installed for {sys.executable}; "
            "in a checkout run `make lab`, elsewhere `pip install 'subbyte[lab]'`"
        )
    command = lab_command(notebook, args.port, args.no_browser, args.jupyter)
    trust(committed(folder))
    say(f"opening {notebook.relative_to(folder.parent)}; stop the server with Ctrl-C twice")
    emit("lab", {"notebook": str(notebook), "arguments": command}, args, "")
    os.execve(command[0], command, lab_environment(os.environ))


def _reset(args: argparse.Namespace, folder: Path) -> int:
    shipped = {Path(name).stem: folder / name for name in names_of_shipped(folder)}
    if args.notebook is None:
        raise InvalidInput(f"--reset needs the name or number of a notebook; allowed: {', '.join(sorted(shipped))}")
    notebook = choose(args.notebook, folder, shipped)
    was_there = notebook.exists()
    backup = reset(notebook)
    if backup:
        text = f"{notebook.name} is restored as it was shipped; your copy is {backup.name} in the same folder"
    else:
        text = f"{notebook.name} " + ("is as it was shipped: nothing to do" if was_there else "is there again")
    emit("lab", {"notebook": str(notebook), "backup": str(backup) if backup else None}, args, text)
    return 0


def find_notebooks(beside: Path | None = None) -> Path:
    """The ``notebooks`` folder of the checkout this package runs from, else of the current folder.

    Raises MissingDependency if there is none: an installed wheel does not contain the notebooks.
    """
    source = beside or Path(__file__).resolve().parents[3]
    for root in (source, Path.cwd()):
        if (root / "notebooks" / f"{FIRST}.ipynb").is_file():
            return root / "notebooks"
    raise MissingDependency(
        "the notebooks are not part of the installed package: run this inside a checkout of subbyte "
        "(the folder that holds notebooks/), where `make lab` does everything"
    )


def choose(name: str, folder: Path, among: Mapping[str, Path] | None = None) -> Path:
    """The notebook in ``folder`` with this name, with or without number, path and extension; or with this number.

    ``among``: notebooks by stem (default: those in the folder). Raises InvalidInput with the closest names.
    """
    there = [path for path in sorted(folder.glob("*.ipynb")) if not is_backup(path)]
    found = {path.stem: path for path in there} if among is None else among
    wanted = Path(name).name.removesuffix(".ipynb").casefold()
    for stem, path in found.items():
        number, _, title = stem.casefold().partition("_")
        same_number = natural(number) is not None and natural(wanted) == natural(number)
        if same_number or wanted in (stem.casefold(), title):
            return path
    raise InvalidInput(f"unknown notebook {shown(name)}: {did_you_mean(wanted, found)}")


def committed(folder: Path) -> list[Path]:
    """The notebooks in ``folder`` that are unchanged since the project committed them; all of them if git cannot
    tell."""
    found = sorted(folder.glob("*.ipynb"))
    try:
        tracked = _git(["git", "ls-files", "-z", "--", "*.ipynb"], folder)
        changed = _git(["git", "diff", "-z", "--name-only", "--relative", "HEAD", "--", "*.ipynb"], folder)
    except (OSError, subprocess.SubprocessError):
        return found
    return [path for path in found if path.name in tracked - changed]


def _git(command: list[str], folder: Path) -> set[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=True)
    return set(filter(None, done.stdout.split("\0")))


def trust(notebooks: Iterable[Path]) -> None:
    """Sign notebooks, so that JupyterLab shows their stored pictures before a cell runs.

    Jupyter hides the stored SVG and HTML of a notebook that was executed elsewhere until it is signed on this machine.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    notary = NotebookNotary()
    with closing(notary.store):
        for path in notebooks:
            notebook = nbformat.read(path, as_version=4)
            if not notary.check_signature(notebook):
                notary.sign(notebook)


def lab_command(notebook: Path, port: int | None, no_browser: bool, options: Sequence[str]) -> list[str]:
    """The command line of JupyterLab; ``options`` come last and therefore take precedence."""
    root = notebook.parent.parent
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{notebook.relative_to(root).as_posix()}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    if port is not None:
        command.append(f"--ServerApp.port={port}")
    if no_browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return [*command, *options]


def lab_environment(base: Mapping[str, str]) -> dict[str, str]:
    """``base``, with the quiet settings found first and idle OpenMP threads sleeping instead of spinning."""
    paths = [str(SETTINGS), *filter(None, [base.get("JUPYTER_CONFIG_PATH")])]
    return {"OMP_WAIT_POLICY": "PASSIVE", **base, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths)}
