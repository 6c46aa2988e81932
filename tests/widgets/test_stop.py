"""Stop reaches a study while the cell that waits for it runs, in a real kernel: from the first wait of it on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

START = """
from subbyte.measure.fake import FakeRunner
from subbyte import space
from subbyte.tune.study import Study
from subbyte_widgets import LiveCurve, TuningMonitor
found = space("n8h14w14c64k64r3s3p1", "sm_90a")
def begin(kind):
    return kind.start(Study(found, "random", seed=3), FakeRunner(delay=0.02), trials=500)
"""
WAIT = "view = begin({kind})\nprint(view.model_id)\nview.wait(30)\nprint('running', view.running)"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A kernel as JupyterLab begins one, without JupyterLab: nothing in it knows of other shells."""
    manager, one = start_new_kernel(kernel_name="python3")
    one.execute_interactive(START, timeout=60)
    yield one
    one.stop_channels()
    manager.shutdown_kernel(now=True)


class Heard:
    """What the kernel has said so far."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.lines: list[str] = []
        self.answered: set[str] = set()

    def until(self, come: Callable[[], bool]) -> None:
        """Listen until something has come."""
        while not come():
            message = self.client.get_iopub_msg(timeout=60)
            self.lines += message["content"].get("text", "").splitlines()
            if message["content"].get("execution_state") == "idle":
                self.answered.add(message["parent_header"]["msg_id"])


@pytest.mark.parametrize("kind", ["TuningMonitor", "LiveCurve"])
def test_stop_ends_a_wait(client: Any, kind: str) -> None:
    client.execute(WAIT.format(kind=kind))
    heard = Heard(client)
    heard.until(lambda: bool(heard.lines))
    (model,) = heard.lines
    began = time.monotonic()
    # The page's first word comes before the one that matters: JupyterLab holds the second back until this was answered.
    for state in ({"in_sight": True}, {"stop_requested": True}):
        content = {"comm_id": model, "data": {"method": "update", "state": state, "buffer_paths": []}}
        sent = client.session.msg("comm_msg", content)
        client.shell_channel.send(sent)
        heard.until(lambda number=sent["header"]["msg_id"]: number in heard.answered)
    assert time.monotonic() - began < 15, "answered while the cell waits"
    heard.until(lambda: len(heard.lines) > 1)
    assert heard.lines[-1] == "running False"
