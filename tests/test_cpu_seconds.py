"""The table of what tests cost: seconds are counted where they were used, with the folder of their test."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import cpu_seconds
import pytest
from cpu_seconds import STARTED, CpuSeconds, folder_of, table


def report_of(plugin: CpuSeconds, nodeid: str) -> Any:
    """What the plugin makes of the report of a test."""
    wrapper = plugin.pytest_runtest_makereport()
    next(wrapper)
    with pytest.raises(StopIteration) as made:
        wrapper.send(SimpleNamespace(nodeid=nodeid, when="teardown"))
    return made.value.value


def test_seconds_are_counted_with_the_folder_of_their_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("SUBBYTE_TEST_TIMES", str(tmp_path / "times.tsv"))
    clock = iter((3.0, 3.5, 3.5, 7.5))
    plugin = CpuSeconds(SimpleNamespace(), clock.__next__)  # type: ignore[arg-type]
    plugin.pytest_collection_finish()
    for nodeid in ("tests/toolkit/tune/test_a.py::test_x", "tests/test_b.py::test_y", "tests/toolkit/tune/s/t.py::z"):
        plugin.pytest_runtest_logreport(report_of(plugin, nodeid))
    plugin.pytest_testnodedown(SimpleNamespace(workeroutput={"cpu_seconds": 2.0}))
    assert plugin.of_folder == {STARTED: 5.0, "tests/toolkit/tune": 4.5, "tests": 0.0}
    assert table(plugin.of_folder) == [
        "     5.0  start and collection", "     4.5  tests/toolkit/tune", "     0.0  tests", "     9.5  sum",
    ]  # fmt: skip
    assert (tmp_path / "times.tsv").read_text().splitlines()[0] == "0.50\ttests/toolkit/tune/test_a.py::test_x"


def test_a_worker_hands_on_what_its_collection_took() -> None:
    config = SimpleNamespace(workerinput={}, workeroutput={})
    plugin = CpuSeconds(config)  # type: ignore[arg-type]
    plugin.pytest_collection_finish()
    assert config.workeroutput["cpu_seconds"] > 0
    assert not plugin.of_folder


def test_work_counts() -> None:
    before = cpu_seconds.used()
    until = time.process_time() + 0.04
    while time.process_time() < until:
        pass
    assert cpu_seconds.used() - before >= 0.02  # times come in steps of 0.01


def test_folders() -> None:
    assert folder_of("tests/toolkit/tune/search/test_speed.py::test_x[a/b]") == "tests/toolkit/tune"
    assert folder_of("tests/test_names.py::test_x") == "tests"
