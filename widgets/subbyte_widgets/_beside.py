"""Answering the browser while a cell runs: Stop must not wait for the cell that waits.

ipykernel 7.4 hands what the browser says of a widget to the shell that spoke to the browser last. A study in a thread
speaks for the running cell, so that Stop would queue behind the very ``wait()`` it is to end. JupyterLab, in turn,
sends nothing more of a view before its message before was answered: one word said too early holds up all that follow.
So all messages of a view that can stop something are answered in a shell of their own, beside the one that runs cells.
"""

from __future__ import annotations

from typing import Any

import traitlets

_shells: dict[int, str] = {}
"""By kernel, the name of the shell that answers."""


class Stoppable(traitlets.HasTraits):
    """Adds to a view of running studies that it is answered while a cell runs too, in a thread of its own, and that
    closing it ends what it has started: nothing could stop that any more."""

    running: Any
    stop_requested: Any

    def close(self) -> None:
        """Remove the view from every page; what it has started ends after the measurement in flight."""
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
    """The name of the shell that answers; None where the kernel has no shells beside its own.

    Called where ipykernel reads the browser's messages, in the one thread that may begin a shell.
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
