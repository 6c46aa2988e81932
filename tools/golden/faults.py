"""The planted faults, listed and counted: those of tests/wrong with what each does, and the tests that plant others.

The text can be compared before and after a change. A mutation whose text is not found where it is to be planted is an
error here, as it is in the test that plants it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from golden import FOLDER, ROOT
from golden.kernels import digest

FILE = FOLDER / "faults.txt"
WRONG = ROOT / "tests" / "wrong"
CLEAN = {"emulator": "pipeline.cu", "warpgroup": "warpgroup.cu"}
FOLDERS = ("emulator", "kernel")
FAULT = re.compile(r"fault|found|caught|refused|recogni[sz]ed|counted|missing|late|wrong")


def mutations() -> dict[str, list[dict[str, Any]]]:
    """Those of each file in tests/wrong, by the file's name without ``_mutations.toml``."""
    files = sorted(WRONG.glob("*_mutations.toml"))
    return {file.name.removesuffix("_mutations.toml"): tomllib.loads(file.read_text())["mutation"] for file in files}


def listing() -> str:
    """One line for each mutation (file, name, what must catch it, digest of its texts), one for each test that plants a
    fault of its own, and the counts."""
    lines, counts = [], []
    for file, found in mutations().items():
        for one in found:
            caught = one.get("expect", one.get("caught"))
            caught = caught if isinstance(caught, str) else " or ".join(caught)
            texts = digest("\0".join(str(one.get(part, "")) for part in ("old", "new", "which", "count", "says")))
            where = f" in {one['kernel']}" if "kernel" in one else ""
            lines.append(f"{file}{where}: {one['name']}: {caught} [{texts}]")
        clean = sum(one.get("expect") == "clean" for one in found)
        counts.append(f"{file}: {len(found)} mutations, {clean} of them correct variants")
    tests = planting_tests()
    counts.append(f"{len(tests)} tests plant faults in their own code")
    return "\n".join([*counts, "", *lines, "", *tests]) + "\n"


def planting_tests() -> list[str]:
    """``test [planted texts]`` of the tests of the emulator and of kernels that change a text, with how many they
    change."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "tests/toolkit" / folder).glob("test_*.py")):
            tree = ast.parse(path.read_text())
            lists = {
                target.id: len(node.value.elts)
                for node in tree.body
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            found += [
                f"{folder}: {node.name} x{_cases(node, lists)}"
                for node in tree.body
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and FAULT.search(node.name)
            ]
    return sorted(found)


def _cases(function: ast.FunctionDef, lists: dict[str, int]) -> int:
    """How often a test runs, as far as its parameters stand in its file."""
    cases = 1
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize":
            values = mark.args[1]
            cases *= (
                len(values.elts) if isinstance(values, ast.List | ast.Tuple)
                else lists.get(values.id, 1) if isinstance(values, ast.Name)
                else 1
            )  # fmt: skip
    return cases


def not_found() -> list[str]:
    """Mutations of the hand-written kernels whose text is not where it is to be planted. Those of generated kernels are
    looked for by tests/toolkit/kernel/test_faults.py, which fails likewise."""
    problems = []
    for file, clean in CLEAN.items():
        text = (ROOT / "tests/toolkit/emulator" / clean).read_text()
        for one in mutations()[file]:
            count = text.count(one["old"]) if file == "emulator" else len(re.findall(one["old"], text))
            if count != int(one.get("count", 1)):
                problems.append(f"{file}: {one['name']}: its text stands {count} times in {clean}")
    return problems


def differences(path: Path = FILE) -> tuple[list[str], list[str]]:
    """Lines of the recorded list that are not in today's, and those that are new. Nothing may be gone."""
    before, now = (_entries(text) for text in (path.read_text(encoding="utf-8"), listing()))
    return [f"no longer there: {line}" for line in (before - now).elements()], sorted((now - before).elements())


def _entries(text: str) -> Counter[str]:
    return Counter(line for line in text.partition("\n\n")[2].splitlines() if line)
