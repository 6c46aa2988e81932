"""The written parts hold what they say: examples run, links lead somewhere, tables and pages are up to date."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import api_reference
import pictures
import pytest
import site_sources
import yaml

from benchmarks.baselines import table as baselines
from benchmarks.paper import table as paper
from benchmarks.sparse import model as sparse_model
from subbyte.cli.main import COMMANDS
from subbyte.tune import Landscape, shipped

UNLISTED = {"cli", "tirx", "torch"}
"""Packages without names for Python's callers, and one that only a machine with PyTorch can read."""
ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The README's code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_readme_python_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out.splitlines()
    for line in code.splitlines():
        if shown := re.search(r"print\(.*\)  # (.+)$", line):
            assert shown[1] in said


def test_readme_names_every_command_and_no_other() -> None:
    named = set(re.findall(r"^subbyte (\w+)", "\n".join(blocks("text")), re.MULTILINE))
    assert named == set(COMMANDS)


def test_make_targets_named_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= targets, f"{page.name}: {named - targets}"


def test_readme_keeps_the_place_of_the_benchmark_table() -> None:
    assert re.search(r"<!-- benchmark:start -->\n.*<!-- benchmark:end -->", README, re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_reference_has_every_public_name_once() -> None:
    found = api_reference.pages()
    for package, text in found.items():
        module = importlib.import_module(package)
        names = re.findall(r"^## \**([\w]+)\**$", text, re.MULTILINE)
        public = getattr(module, "__all__", None) or api_reference.public_classes(module)
        assert sorted(names) == sorted(set(public)), package
        assert text.startswith(f"# {package}\n")
    packages = {path.parent.name for path in (ROOT / "toolkit/subbyte").glob("*/__init__.py")}
    assert packages - {name.split(".")[1] for name in found} == UNLISTED


def test_the_picture_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pictures.py", "--check"])
    assert pictures.main() == 0


@pytest.mark.parametrize(
    "program",
    [baselines, sparse_model, pytest.param(paper, marks=pytest.mark.deep)],
    ids=["baselines", "sparse", "paper"],
)
def test_the_benchmark_tables_are_up_to_date(program: Any) -> None:
    assert program.main(["--check"]) == 0


def test_a_part_of_the_papers_tables_is_up_to_date() -> None:
    """What is quickly made of them: the rows of the smallest landscapes, and what unpacking costs."""
    written = (paper.FOLDER / "paper" / "README.md").read_text()
    for path in sorted(shipped().values(), key=lambda path: path.stat().st_size)[:3]:
        assert paper.landscape_line(Landscape.load(path)) in written
    records = [paper.read_unpacking(paper.RESULTS / "unpacking" / f"stage{stage}.json.gz") for stage in range(2, 6)]
    assert paper.unpacking(records) in written


@pytest.mark.parametrize(("tool", "made", "place"), [(pictures, "draw", "PICTURE")])
def test_an_outdated_page_or_picture_is_refused(
    tool: Any,
    made: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "old").write_text("old")
    monkeypatch.setattr(tool, place, tmp_path / "old")
    monkeypatch.setattr(tool, made, lambda: "new")
    monkeypatch.setattr(sys, "argv", ["tool", "--check"])
    assert tool.main() == 1
    assert "out of date" in capsys.readouterr().err


def test_version_and_changelog_agree() -> None:
    import subbyte

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == subbyte.__version__
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def citation_problems(text: str) -> list[str]:
    """What a reader of CITATION.cff would miss."""
    try:
        facts = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return [f"no YAML: {error}"]
    works = [("", facts, ("cff-version", "message", "title", "authors", "version", "license"))]
    works += [(f"reference {number}: ", one, ("type", "title", "authors", "year", "url"))
              for number, one in enumerate(facts.get("references", ()), 1)]  # fmt: skip
    return [f"{where}no {key}" for where, work, keys in works for key in keys if not work.get(key)]


def test_the_citation_is_complete_and_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not citation_problems(text)
    facts = yaml.safe_load(text)
    assert (facts["version"], facts["license"]) == (project["version"], project["license"])
    assert "2202.06819" in facts["references"][0]["url"]
    page = site_sources.citation(text)
    assert all(one["title"] in page for one in (facts, *facts["references"]))


def test_an_incomplete_citation_is_refused() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert citation_problems(text.replace("message:", "massage:")) == ["no message"]
    assert citation_problems(text.replace("    year: 2020\n", "")) == ["reference 2: no year"]
    assert "no YAML" in citation_problems(text.replace("authors:", "authors: [", 1))[0]


def test_the_glossary_defines_the_words() -> None:
    text = (ROOT / "GLOSSARY.md").read_text().lower()
    words = "workload,block tile,warp tile,fragment,atom,lane,lowered matrix,genuine index,duplicate index,halo,knob"
    words += ",configuration,space,trial,candidate,landscape,strategy,cost model,record,native / emulated"
    for word in words.split(","):
        assert f"**{word}" in text, word


def test_the_glossary_defines_a_word_once() -> None:
    terms = re.findall(r"^\*\*(.+?)\*\* - ", (ROOT / "GLOSSARY.md").read_text(), re.MULTILINE)
    assert len(terms) > 60
    assert sorted(set(terms)) == sorted(terms)


def glossary_words(text: str) -> list[str]:
    """The bold words that a glossary's entries begin with, one by one."""
    terms = re.findall(r"\*\*([^*]+)\*\*(?= -)", text)
    return [word for term in terms for word in re.split(r", | / |\s*\(|\)", " ".join(term.split())) if word]


def unused(words: list[str], text: str) -> list[str]:
    """Those of some words that a text in lower case uses nowhere, singular or plural, with blanks, hyphens or not."""

    def pattern(word: str) -> str:
        first, *more = map(re.escape, re.split(r"[\s-]", word.lower()))
        # its letters first, for which a search is ten times as fast, then what must not stand before them
        return rf"{first}(?<![^\W_]{first})" + "".join(rf"[\s_-]*{part}" for part in more) + r"(s|es)?(?![^\W_])"

    return [word for word in words if not re.search(pattern(word), text)]


def test_every_word_of_the_glossary_is_used() -> None:
    patterns = ("toolkit/**/*.py", "widgets/**/*.py", "widgets/**/*.js", "docs/*.md")
    texts = [path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        texts += ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    words = glossary_words((ROOT / "GLOSSARY.md").read_text())
    assert len(words) > 100
    assert not unused(words, "\n".join(texts).lower())


def test_a_word_that_nobody_uses_is_refused() -> None:
    words = glossary_words("**pipeline, stage buffer** - Where stages lie.\n\n**tap (offset)** - A place.\n")
    assert words == ["pipeline", "stage buffer", "tap", "offset"]
    assert unused(words, "two stage_buffers of a pipeline; tapping, offset") == ["tap"]


def test_binder_installs_this_checkout_with_the_same_pins() -> None:
    lines = (ROOT / "binder/requirements.txt").read_text().split()
    assert lines[:2] == ["-c", "../constraints.txt"]
    # Binder installs before it copies the checkout unless a line begins with a local `-e .`, which it recognizes.
    assert lines[2] == "-e"
    assert lines[3].startswith(".[")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(lines[3][2:-1].split(",")) <= set(extras)
    assert (ROOT / "binder/runtime.txt").read_text().strip() == "python-3.11"
    assert "g++" in (ROOT / "binder/apt.txt").read_text().split()
    assert not (ROOT / "binder/environment.yml").exists(), "it would silently win over requirements.txt"


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_binder_scripts_are_ready(name: str) -> None:
    script = ROOT / "binder" / name
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    if name == "start":
        assert script.read_text().splitlines()[-1] == 'exec "$@"'
    for path in re.findall(r"toolkit/\S+\.json", script.read_text()):
        assert (ROOT / path).exists()


def test_every_note_is_in_the_index_of_notes() -> None:
    folder = ROOT / "benchmarks" / "notes"
    named = set(re.findall(r"^\| \[[^]]+\]\(([^)]+)\)", (folder / "README.md").read_text(), re.MULTILINE))
    assert named == {note.name for note in folder.glob("*")} - {"README.md"}
