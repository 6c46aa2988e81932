"""``subbyte explain speed``."""

from __future__ import annotations

import json

import pytest

from subbyte.analysis import speed_of_light
from subbyte.cli.main import main


def test_speed_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    one = speed_of_light("resnet50.stage3@8")
    assert main(["explain", "speed", "resnet50.stage3@8"]) == 0
    assert one.finding in capsys.readouterr().out
    assert main(["explain", "speed", "resnet50.stage3@8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["command"], found["topic"], found["spec"]) == ("explain", "speed", one.spec)
    assert [floor["microseconds"] for floor in found["floors"]] == [floor.microseconds for floor in one.floors]


def test_a_gpu_without_measured_peaks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "speed", "--gpu", "T4"]) == 2
    assert "no peaks of 'T4' were measured" in capsys.readouterr().err
