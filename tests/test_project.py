"""The shape of the project: who imports whom, how long files are, what they may mention."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import house_rules
import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = sorted((ROOT / "toolkit/subbyte").rglob("*.py"))
VIEWS = sorted((ROOT / "widgets/subbyte_widgets").rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BINARY = {".gz", ".png", ".webp", ".npz", ".npy", ".cubin", ".woff2"}
NAMES_FOREIGN_PLACES = {"tests/test_project.py", "tools/house_rules.py"}


def relative(path: Path) -> str:
    """The path from the repository root, with forward slashes."""
    return path.relative_to(ROOT).as_posix()


@cache
def project_files() -> list[Path]:
    """Files of the project: what git tracks or would add; without git, everything outside the known caches."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
    folders = ("toolkit", "widgets", "notebooks", "tests", "benchmarks", "binder", "docs", "tools", ".ci")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


WRONG_IMPORTS = {
    "subbyte/tune/study.py": "def f():\n    import plotly.graph_objects\n",
    "subbyte/numerics/int4.py": "from subbyte.kernel.build import build\n",
    "subbyte/kernel/build.py": "from subbyte import tune\n",
    "subbyte/records/log.py": "def f():\n    from subbyte.kernel import build\n",
    "subbyte/families/mma/plan.py": "from subbyte.families.wgmma import plan\n",
    "subbyte/sparse/machines.py": "from subbyte.technique import record\n",
    "subbyte/errors.py": "import subbyte.workload\n",
    "subbyte/gpu/launched.py": "from subbyte.cli import main\n",
    "subbyte/device/arch.py": "def f():\n    from subbyte.device import launch\n",
    "subbyte/device/launch.py": "from subbyte.device import arch\n",
    "subbyte_widgets/picture.py": "from subbyte_widgets import view\n",
    "subbyte_widgets/view.py": "def f():\n    from subbyte_widgets import picture\n",
    "subbyte/nowhere/room.py": "",
}
"""Modules that break a contract each, with what an error says of them behind."""
NOT_ALLOWED = (
    ("numerics", "kernel"), ("kernel", "tune"), ("records", "kernel"), ("errors", "workload"), ("gpu", "cli"),
    ("families.mma", "families.wgmma"),
)  # fmt: skip
REFUSED = (
    *(f"subbyte.{room} is not allowed to import subbyte.{other}" for room, other in NOT_ALLOWED),
    "subbyte.sparse.machines -> subbyte.technique", "subbyte.tune.study -> plotly",
    "No cycles are allowed in subbyte.device", "No cycles are allowed in subbyte_widgets", "nowhere",
)  # fmt: skip


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """The import rules of pyproject.toml on the packages that lie in a folder."""
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    here = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=here)


def test_an_import_against_the_flow_a_circle_and_a_room_without_a_place_are_refused(tmp_path: Path) -> None:
    """`make lint` looks at the library itself."""
    for package in ("toolkit/subbyte", "widgets/subbyte_widgets"):
        for path in (ROOT / package).rglob("*.py"):
            made = tmp_path / path.relative_to((ROOT / package).parent)
            made.parent.mkdir(parents=True, exist_ok=True)
            made.touch()
    assert lint_imports(tmp_path).returncode == 0
    for name, source in WRONG_IMPORTS.items():
        made = tmp_path / name
        made.parent.mkdir(parents=True, exist_ok=True)
        (made.parent / "__init__.py").touch()
        made.write_text(source)
    done = lint_imports(tmp_path)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert [text for text in REFUSED if text not in said] == []


@cache
def family_classes() -> frozenset[str]:
    """Classes that only families may name."""
    return frozenset(house_rules.family_classes({relative(path): path.read_text() for path in LIBRARY}))


def test_no_kind_of_kernel_is_named_outside_families() -> None:
    assert family_classes() >= {"MmaConfig", "WarpgroupConfig"}
    found = [
        line
        for path in (*LIBRARY, *VIEWS)
        for line in house_rules.family_by_name(relative(path), path.read_text(), family_classes())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("toolkit/subbyte/kernel/build.py", "from subbyte.families.mma.plan import BLOCK_WORDS\n"),
        ("toolkit/subbyte/tune/study.py", "def f(config):\n    return warp_family_only(config)\n"),
        ("toolkit/subbyte/cli/run.py", 'FAMILY = "warpgroup"\n'),
        ("toolkit/subbyte/cli/run.py", 'def f(family):\n    return family.name == "mma"\n'),
        ("toolkit/subbyte/measure/case.py", "from subbyte.families import MmaConfig\n"),
        ("widgets/subbyte_widgets/store_path/view.py", "def f(config: WarpgroupConfig) -> None: ...\n"),
        ("widgets/subbyte_widgets/store_path/view.py", "wgmma = 1\n"),
    ],
)
def test_a_kind_of_kernel_by_name_is_refused(path: str, source: str) -> None:
    assert house_rules.family_by_name(path, source, family_classes())
    assert not house_rules.family_by_name("toolkit/subbyte/families/mma/plan.py", source, family_classes())


def test_a_sentence_may_explain_a_kind_of_kernel() -> None:
    source = '"""Of kernels on wgmma."""\nfrom subbyte.families.base import Plan\nWORDS = "as wgmma reads it"\n'
    assert not house_rules.family_by_name("widgets/subbyte_widgets/svg.py", source, family_classes())


def test_kinds_are_told_apart_inside_families_alone() -> None:
    found = [
        line for path in (*LIBRARY, *VIEWS) for line in house_rules.kinds_told_apart(relative(path), path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(config, MmaConfig | None)",
        "isinstance(plan, (Plan, wgmma.plan.WarpgroupPlan))",
        "type(config) is WarpgroupConfig",
        "match config:\n    case MmaConfig():\n        pass\n",
    ],
)
def test_telling_kinds_apart_is_refused(source: str) -> None:
    assert house_rules.kinds_told_apart("toolkit/subbyte/analysis/speed.py", source)
    assert not house_rules.kinds_told_apart("toolkit/subbyte/families/mma/space.py", source)


@pytest.mark.parametrize("path", house_rules.TYPED)
def test_what_everybody_builds_on_says_its_types(path: str) -> None:
    assert not house_rules.untyped(path, (ROOT / path).read_text())


@pytest.mark.parametrize(
    "body", ["plan: Any", "def emit(self, plan: Plan) -> Any: ...", "def index(self, config: Any | None) -> int: ..."]
)
def test_an_unsaid_type_is_refused(body: str) -> None:
    assert house_rules.untyped("toolkit/subbyte/kernel/kernel.py", f"class Kernel:\n    {body}\n")


def test_files_stay_short_enough_to_read_in_one_go() -> None:
    files = [path for path in project_files() if path.suffix in (".py", ".js")]
    found = [line for path in files for line in house_rules.too_long(relative(path), path.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("toolkit/subbyte/families/mma/plan.py", 401),
        ("widgets/subbyte_widgets/live_curve/view.py", 151),
        ("widgets/subbyte_widgets/live_curve/view.js", 251),
    ],
)
def test_a_long_file_is_refused(path: str, lines: int) -> None:
    assert house_rules.too_long(path, "x\n" * lines)
    assert not house_rules.too_long(path, "x\n" * (lines - 1))


def test_no_file_mentions_one_machine_or_a_registry() -> None:
    found = []
    for path in project_files():
        if path.suffix not in BINARY and relative(path) not in NAMES_FOREIGN_PLACES:
            found += house_rules.foreign_places(relative(path), path.read_text(errors="replace"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    ["see /home/ada/x", "/root/notes", "https://pypi.org/simple", "files.pythonhosted.org/p", "--extra-index-url X"],
)
def test_a_foreign_place_is_refused(text: str) -> None:
    assert house_rules.foreign_places("x", text)


def test_pins_hold_no_address() -> None:
    for name in ("constraints.txt", "pyproject.toml", "binder/requirements.txt"):
        assert "://" not in (ROOT / name).read_text(), f"{name} holds an address"
    for name in ("uv.lock", "pylock.toml"):
        assert name in (ROOT / ".gitignore").read_text().splitlines()
        assert ROOT / name not in project_files()


def test_no_tag_is_written_by_hand() -> None:
    files = [*LIBRARY, *VIEWS, *(ROOT / "tools").glob("site_*.py")]
    found = [line for path in files for line in house_rules.tags_by_hand(relative(path), path.read_text())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        'f"<td>{name}</td>"', 'f"{a}</table>"', "f'<text x={x}'", 'f"a<br>{b}"', '"<p>{}</p>".format(a)',
        '"<b>%s</b>" % a', 'f"""<svg\n{a}"""',
    ],
)  # fmt: skip
def test_a_tag_by_hand_is_refused(source: str) -> None:
    assert house_rules.tags_by_hand("toolkit/subbyte/a.py", source)
    assert not house_rules.tags_by_hand("toolkit/subbyte/html.py", source)


@pytest.mark.parametrize(
    "source", ['f"<{kind}: {a}>"', 'f"#include <cstdint> {a}"', '"<td>"', 'f"{a} < b"', 'f"as<uint4>({a})"']
)
def test_text_that_is_no_tag_passes(source: str) -> None:
    assert not house_rules.tags_by_hand("toolkit/subbyte/a.py", source)


def test_every_public_name_is_documented() -> None:
    found = [line for path in [*LIBRARY, *VIEWS] for line in house_rules.undocumented(relative(path), path.read_text())]
    assert not found, "\n".join(found)


def test_a_missing_docstring_is_refused() -> None:
    source = '"""Module."""\nclass A:\n    """A."""\n    def f(self): pass\n    def _g(self): pass\n'
    assert house_rules.undocumented("a.py", source) == ["a.py:4: A.f has no docstring"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_ready_to_read(path: Path) -> None:
    found = house_rules.notebook_problems(path.name, json.loads(path.read_text()))
    assert not found, "\n".join(found)
    assert path.stat().st_size <= house_rules.NOTEBOOK_BYTES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": "x\n" * 16}, "16 lines"),
        ({"execution_count": None}, "not executed"),
        ({"execution_count": 7}, "not executed"),
        ({"outputs": [{"output_type": "error", "ename": "ValueError"}]}, "ValueError"),
        ({"outputs": []}, "keeps its output"),
    ],
)
def test_an_unready_notebook_is_refused(change: dict[str, object], words: str) -> None:
    cell = {"cell_type": "code", "source": "1", "execution_count": 1, "outputs": [{"output_type": "execute_result"}]}
    assert not house_rules.notebook_problems("n", {"metadata": {}, "cells": [cell]})
    assert words in " ".join(house_rules.notebook_problems("n", {"metadata": {}, "cells": [{**cell, **change}]}))
    assert house_rules.notebook_problems("n", {"metadata": {"widgets": {}}, "cells": [cell]})


def test_no_cuda_toolkit_of_the_machine_is_in_reach() -> None:
    for name in ("nvcc", "ptxas"):
        found = shutil.which(name)
        assert found is not None
        assert "subbyte-tests-" in found
        assert subprocess.run([found], capture_output=True).returncode == 97


@pytest.mark.parametrize("module", ["subbyte.tune.study", "subbyte_widgets.svg"])
def test_a_warning_from_our_packages_is_an_error(module: str) -> None:
    with pytest.raises(UserWarning):
        warnings.warn_explicit("x", UserWarning, "x.py", 1, module=module)


HEAVY = ("tvm", "tvm_ffi", "cuda", "pynvml", "pandas", "rich", "subbyte.kernel", "subbyte.measure", "subbyte_widgets")


def test_import_loads_neither_tvm_nor_a_gpu_library() -> None:
    code = "import sys, subbyte; dir(subbyte); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "subbyte" in loaded
    assert not [name for name in loaded if name in HEAVY]


def test_import_is_quick() -> None:
    code = "import time; start = time.perf_counter(); import subbyte; print(time.perf_counter() - start)"
    seconds = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seconds.append(float(done.stdout))
    assert statistics.median(seconds) < 0.3, seconds


def test_every_public_name_resolves() -> None:
    import subbyte

    for name in subbyte.__all__:
        assert getattr(subbyte, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'convolve'"):
        _ = subbyte.convolve
