"""The how-to pages: their code runs, their commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from site_sources import GUIDES

from subbyte.cli.main import COMMANDS
from subbyte.tune import STRATEGIES

PAGES = sorted((Path(__file__).resolve().parent.parent / "docs/howto").glob("*.md"))


def code(path: Path, language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))


# The page on own kernels has a test of its own, which lays its examples beside it.
@pytest.mark.parametrize(
    "path", [path for path in PAGES if code(path, "python") and path.stem != "own_kernel"], ids=lambda path: path.stem
)
def test_code_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(STRATEGIES)
    exec(compile(code(path, "python"), path.name, "exec"), {"__name__": "__main__"})
    for name in set(STRATEGIES) - before:
        del STRATEGIES[name]


def test_the_site_shows_every_page() -> None:
    assert sorted(GUIDES) == [path.stem for path in PAGES]


def test_commands_exist() -> None:
    named = {word for path in PAGES for word in re.findall(r"^subbyte (\w+)", code(path, "sh"), re.MULTILINE)}
    assert {"tune", "bench"} <= named <= set(COMMANDS)
