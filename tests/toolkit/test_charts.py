"""The meeting point of records and charts: without the views one sentence says what to import."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from subbyte import charts
from subbyte.errors import InvalidInput


def test_without_the_views_one_sentence_says_what_to_import() -> None:
    code = (
        "import sys, subbyte\nfrom subbyte.errors import MissingDependency\n"
        "try: subbyte.duplicates('resnet50.stage2@8', tile=(1, 4)).plot()\n"
        "except MissingDependency as problem: print(problem)\n"
        "assert not {'plotly', 'subbyte_widgets'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "import subbyte_widgets" in done.stdout, done.stderr
    assert done.returncode == 0


def test_a_record_is_drawn_by_what_was_registered_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_drawers", {})

    @dataclass(frozen=True)
    class Record(charts.Charted):
        value: int

    class Special(Record):
        pass

    charts.register(Record)(lambda record, sign=1: sign * record.value)
    assert Record(3).plot() == Special(3).plot() == 3
    assert Record(3).plot(sign=-1) == -3
    with pytest.raises(InvalidInput, match="no chart of int; there are charts of Record"):
        charts.draw(7)
