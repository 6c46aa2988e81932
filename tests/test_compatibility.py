"""Old inputs mean what they meant: the quick part of what tools/compatibility recorded with an earlier version."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
from compatibility import commands, decoding, library, logs

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def anywhere(monkeypatch):
    """No GPU, and paths from the root of the checkout."""
    monkeypatch.setattr(*library.gpu_question(), lambda: False)
    monkeypatch.chdir(ROOT)


def none_of(found) -> None:
    problems = list(found)
    assert not problems, "\n".join(problems)


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", logs.names())
def test_old_logs_are_read_and_resumed(name: str, tmp_path) -> None:
    none_of(logs.problems(name, tmp_path, name in logs.QUICK))


def test_old_keys_and_fields_mean_the_same_configurations() -> None:
    none_of(decoding.key_problems())


def test_indices_of_shipped_landscapes_mean_the_same_configurations() -> None:
    none_of(decoding.landscape_problems())


def test_indices_of_spaces_mean_the_same_configurations() -> None:
    none_of(decoding.space_problems())


@pytest.mark.sample(24)
@pytest.mark.parametrize("one", commands.names(quick=True), ids=lambda one: " ".join(one["argv"]) or "nothing")
def test_old_command_lines_answer_as_before(one: dict, tmp_path) -> None:
    none_of(commands.problems(one, tmp_path))


def test_what_differs_is_named(tmp_path, monkeypatch) -> None:
    held = copy.deepcopy(decoding.held())
    held["keys"]["brw1-bcw2-wrt4-wct4-ch1-ri0"] = "InvalidInput"
    held["landscapes"]["resnet50.stage2@8.paper.sm_90a"]["keys"][0] = "another"
    held["spaces"] = [held["spaces"][0]]
    held["spaces"][0][1]["keys"][0] = "another"
    monkeypatch.setattr(decoding, "held", lambda: held)
    for found, said in (
        (decoding.key_problems(), "brw1-bcw2-wrt4-wct4-ch1-ri0"),
        (decoding.landscape_problems(), "resnet50.stage2@8.paper.sm_90a"),
        (decoding.space_problems(), "paper space of n8h56w56c64k64r3s3p1"),
    ):
        assert said in next(found)
    one = copy.deepcopy(next(one for one in commands.names() if one["argv"] == ["workloads", "vgg16", "alexnet@1"]))
    one["found"]["shape"].append("workloads[].colour: str")
    one["found"]["values"] = {"digest": "0"}
    one["found"]["exit"] = 2
    said = list(commands.problems(one, tmp_path))
    assert [line.partition(": ")[2].split()[0] for line in said] == ["exit", "no", "digest"]
    everything = copy.deepcopy(logs.read("logs"))
    everything["paper-random"]["trials"] = {}
    monkeypatch.setattr(logs, "read", lambda _: everything)
    assert "other trials" in next(logs.problems("paper-random", tmp_path, resume=False))
