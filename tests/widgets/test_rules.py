"""Rules of the views: they draw records, so array libraries and compilers are out of their reach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte_widgets import DuplicateMap
from subbyte_widgets._base import refuse_unknown


@pytest.mark.parametrize("line", ["import numpy as np", "from scipy import stats", "import tvm", "import statistics"])
def test_a_view_that_computes_is_refused(repository: Path, line: str) -> None:
    source = f'"""A view."""\n\n\ndef f() -> None:\n    """F."""\n    {line}\n'
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename"]
    done = subprocess.run(
        [*command, str(repository / "widgets/subbyte_widgets/new.py"), "-"],
        input=source, capture_output=True, text=True, cwd=repository,
    )  # fmt: skip
    assert done.returncode == 1
    assert "TID251" in done.stdout


def test_nothing_is_fetched_from_a_network(repository: Path) -> None:
    folder = repository / "widgets/subbyte_widgets"
    for path in [*folder.rglob("*.js"), *folder.rglob("*.css"), *folder.rglob("*.html")]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path


def test_the_closest_option_is_offered() -> None:
    with pytest.raises(InvalidInput, match="did you mean record"):
        refuse_unknown(DuplicateMap, {"recrod": 1})
