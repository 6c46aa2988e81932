"""The list of what runs on a GPU names programs, options and files that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.shared.command import program as answer

ROOT = Path(__file__).parents[3]
BEGIN, END = "## On a GPU, in which order", "## Raw results"
PART = re.compile(r"^benchmarks/(baselines|network|paper)$")


def commands(text):
    """Program and options of every command of the section."""
    section = text.split(BEGIN)[1].split(END)[0]
    found = [code.split() for code in re.findall(r"`([^`]+)`", section)]
    return [words[1:] for words in found if words[0] in ("python", "sh")]


def program(words):
    """The file that asks for a command's options: of a folder, the module of its part."""
    if PART.match(words[0]):
        return ROOT / words[0] / f"{words[1].replace('-', '_')}.py"
    return ROOT / words[0] / "latency.py" if words[0] == "benchmarks/views" else ROOT / words[0]


def wrong(words):
    """What a command names that does not exist."""
    file = program(words)
    if not file.is_file():
        return words[:1] if not PART.match(words[0]) else words[:2]
    text = file.read_text(encoding="utf-8")
    for name in re.findall(r"^from benchmarks\.(\S+) import", text, re.MULTILINE):  # some ask for options there
        beside = ROOT / "benchmarks" / f"{name.replace('.', '/')}.py"
        text += beside.read_text(encoding="utf-8") if beside.is_file() else ""
    options = [word for word in words if word.startswith("--") and f'"{word}"' not in text]
    files = [word for word in words[1:] if word.startswith("R/") and "DAY" not in word]
    return options + [word for word in files if not (ROOT / "benchmarks" / "results" / word[2:]).exists()]


def test_every_command_of_the_list_exists():
    found = commands((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8"))
    assert len(found) >= 12
    assert [problem for words in found for problem in wrong(words)] == []


def test_a_command_that_does_not_exist_is_noticed():
    assert wrong(["benchmarks/nothing.py"]) == ["benchmarks/nothing.py"]
    assert wrong(["benchmarks/baselines", "nothing"]) == ["benchmarks/baselines", "nothing"]
    assert wrong(["benchmarks/baselines", "compare", "--packs", "R/none.json"]) == ["--packs", "R/none.json"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["python", "tests/gpu/build_kernels.py", "FILE/tests", "--variants"], marks=pytest.mark.deep),
        ["sh", "benchmarks/shared/cutlass.sh"],
        ["sh", "benchmarks/shared/cutlass.sh", "benchmarks/baselines/cutlass", "FILE", "FILE.so"],
    ],
)
def test_a_wrong_folder_is_one_sentence(words, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    command = [{"python": sys.executable}.get(word, word.replace("FILE", str(file))) for word in words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "words",
    [
        ["network", "chains", "--build", "FILE/chains"],
        ["paper", "wgmma-sample", "FILE/ablation"],
        ["paper", "wgmma-sample", "--assemble", "FILE"],
    ],
)
def test_a_wrong_folder_of_a_part_is_one_sentence(words, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    folder, *rest = [word.replace("FILE", str(file)) for word in words]
    assert answer(folder, "", rest[:1], rest) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == [file]
