"""What the tests cost: CPU seconds of each folder, printed at the end of a run. A plugin of pytest (tests/conftest.py).

Counted are the test's process and those that it started and that have ended. Processes of a session (JupyterLab, a
browser) count with the last test that used them. SUBBYTE_TEST_TIMES=FILE keeps a line for each test: seconds, a tab,
its name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest

DEPTH = 3  # tests/toolkit/tune/search/test_speed.py counts with tests/toolkit/tune
STARTED = "start and collection"


def used() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def folder_of(nodeid: str) -> str:
    """The folder with which a test is counted."""
    return "/".join(PurePosixPath(nodeid.partition("::")[0]).parts[:-1][:DEPTH])


def table(seconds: dict[str, float]) -> list[str]:
    """Rows of what each folder took, the largest first, and their sum."""
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    return [f"{value:8.1f}  {name}" for name, value in [*rows, ("sum", sum(seconds.values()))]]


class CpuSeconds:
    """Measures where tests run, and adds up where their reports arrive (with xdist two kinds of process)."""

    def __init__(self, config: pytest.Config, clock: Callable[[], float] = used) -> None:
        self.config, self.clock, self.before = config, clock, 0.0
        self.kept = None if hasattr(config, "workerinput") else os.environ.get("SUBBYTE_TEST_TIMES")
        self.of_folder: Counter[str] = Counter()
        self.of_test: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """What starting and collecting took in this process."""
        self.before = self.clock()
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["cpu_seconds"] = self.before
        else:
            self.of_folder[STARTED] += self.before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        """Add to the report of a setup, call or teardown what it took."""
        report = yield
        now = self.clock()
        report.cpu_seconds, self.before = now - self.before, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what a report brings."""
        seconds = getattr(report, "cpu_seconds", 0.0)
        self.of_folder[folder_of(report.nodeid)] += seconds
        self.of_test[report.nodeid] += seconds
        if report.when == "teardown" and self.kept:
            with open(self.kept, "a", encoding="utf-8") as lines:
                lines.write(f"{self.of_test[report.nodeid]:.2f}\t{report.nodeid}\n")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker took to start and collect."""
        self.of_folder[STARTED] += getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, unless asked to be quiet."""
        if self.config.option.verbose < 0 or len(self.of_test) < 2:
            return
        terminalreporter.section("CPU seconds of each folder")
        for row in table(self.of_folder):
            terminalreporter.write_line(row)
