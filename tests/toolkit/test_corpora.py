"""What was once taken though wrong, or ended in a traceback: each entry of a corpus ends as it says."""

from __future__ import annotations

from itertools import islice

import pytest
from hostile import harness
from hostile.corpus import corpus


@pytest.mark.parametrize("area", ["specs", "configurations", "requantization", "chains", "python_arguments"])
def test_what_once_did_harm(area):
    count = len(corpus(area))
    assert count
    came = {case.text: harness.attempt(case) for case in islice(harness.cases(area), count)}
    assert {text: outcome for text, outcome in came.items() if outcome.kind in harness.BAD} == {}


def test_the_corpora_hold_what_is_right_too():
    for area in ("specs", "configurations", "requantization", "chains"):
        assert {entry["must"] for entry in corpus(area)} == {"refuse", "answer"}
