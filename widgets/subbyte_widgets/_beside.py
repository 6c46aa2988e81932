"""Answers the browser while a cell is running: Stop must not wait for the cell that waits.

ipykernel 7.4 passes a widget's browser messages to the shell that last talked to the browser. A study in a thread talks
on behalf of the running cell, so that Stop would queue behind the very ``wait()`` that it is meant to end. JupyterLab,
in turn, sends no further message of a view until the previous one has been answered: one message sent too early blocks
all that follow. So all messages of a view that can stop something are answered in a shell of their own, in parallel to
the one that runs cells.
"""

from __future__ import annotations

from typing import Any

import traitlets

_shells: dict[int, str] = {}
"""By kernel, the name of the shell that answers."""


class Stoppable(traitlets.HasTraits):
    """Lets a view of running studies respond while a cell is running, in a thread of its own. Closing the view ends the
    studies that it started, since nothing else could stop them."""

    running: Any
    stop_requested: Any

    def close(self) -> None:
        """Remove the view from every page; what it started ends after the measurement in flight."""
        if self.running:
            self.stop_requested = True
        super().close()  # type: ignore[misc]

    @traitlets.observe("comm")
    def _answer_beside(self, change: Any) -> None:
        comm = change.new
        route = getattr(comm, "_reply_subshell_for", None)  # other versions, and pages without kernel, have none
        if route is not None:
            comm._reply_subshell_for = lambda data, asked: beside() or route(data, asked)


def beside() -> str | None:
    """The name of the shell that answers; None if the kernel has no additional shells.

    Called where ipykernel reads the browser's messages, in the only thread that may start a shell.
    """
    from ipykernel.kernelbase import Kernel

    kernel = Kernel.instance() if Kernel.initialized() else None
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    if manager is None or not hasattr(manager, "_create_subshell"):
        return None
    known = _shells.get(id(manager))
    if known is None or known not in manager.list_subshell():
        known = _shells[id(manager)] = str(manager._create_subshell())
    return known
