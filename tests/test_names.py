"""What messages, docstrings, pages and notebooks name can be imported: `subbyte.module.name` is never a dead end."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from subbyte.errors import MissingDependency

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("toolkit/**/*.py", "widgets/**/*.py", "notebooks/*.ipynb", "docs/**/*.md", "*.md", "benchmarks/**/*.md")
DOTTED = re.compile(r"(?<![\w./])subbyte(?:_widgets)?(?:\.\w+)+")


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or what hangs on one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        except MissingDependency:  # it is there, what it needs is not: subbyte.torch
            return True
        try:
            for part in parts[end:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize("pattern", FOLDERS)
def test_every_name_leads_somewhere(pattern: str) -> None:
    named = {name: path for path in sorted(ROOT.glob(pattern)) for name in DOTTED.findall(path.read_text())}
    assert named, pattern
    gone = [f"{path.relative_to(ROOT)}: {name}" for name, path in named.items() if not exists(name)]
    assert not gone, "\n".join(gone)


def test_a_dead_end_is_refused() -> None:
    assert exists("subbyte.measure.replay.ReplayRunner")
    assert not exists("subbyte.measure.ReplayRunner")
    assert not exists("subbyte.nowhere.at.all")
    assert DOTTED.findall("see subbyte.tune.Study, x/subbyte.json and mysubbyte.a") == ["subbyte.tune.Study"]
