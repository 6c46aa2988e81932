"""One process per GPU: whoever measures holds a lock that all processes of the machine see.

The lock is a file in the machine's temporary folder, named after the GPU. It belongs to the measuring process
and is released the moment that process ends, however it ends.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Protocol

from subbyte.errors import MissingDependency

try:
    import fcntl
except ImportError:  # not a POSIX system: the user must keep two measuring processes apart
    fcntl = None  # type: ignore[assignment]

_PATIENCE_S = 10.0
"""A process that was just killed may still be releasing the GPU."""

_CLAIM_PATIENCE_S = 0.3
"""How long others check whether a GPU is claimed."""


class GpuBusy(MissingDependency):
    """Another process is measuring on the GPU; ``holder`` names it."""

    holder = ""


class _Info(Protocol):
    @property
    def bus_id(self) -> str: ...


class GpuLock:
    """Exclusive use of the GPU ``uuid`` among measuring processes, until ``release`` or the end of the process.

    Waits up to ``patience`` seconds; then raises GpuBusy naming the holder. With ``role`` it is a second lock on the
    same GPU, see :func:`claim`.
    """

    def __init__(
        self,
        uuid: str,
        patience: float = _PATIENCE_S,
        folder: str | os.PathLike[str] | None = None,
        role: str = "",
    ) -> None:
        safe = "".join(c if c.isalnum() or c in "-." else "_" for c in uuid + role)
        self.path = Path(folder or tempfile.gettempdir()) / f"subbyte-{safe}.lock"
        self._file: int | None = _open(self.path)
        deadline = time.monotonic() + patience
        while not self._try():
            if time.monotonic() >= deadline:
                holder = self._holder()
                self.release()
                busy = GpuBusy(
                    f"GPU {uuid} is in use by {holder}, which is measuring: two at once would spoil both. Wait for it, "
                    "or choose another GPU (--device)"
                )
                busy.holder = holder
                raise busy
            time.sleep(0.05)
        self._sign()

    def release(self) -> None:
        """Release the GPU. May be called twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __enter__(self) -> GpuLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _try(self) -> bool:
        if self._file is None:
            return True
        try:
            _lock(self._file)
        except OSError:
            return False
        return True

    def _sign(self) -> None:
        try:
            self.path.write_text(f"process {os.getpid()}\n", encoding="utf-8")
        except OSError:  # another user's file: the lock works, only its holder's name is unknown
            return

    def _holder(self) -> str:
        try:
            text = self.path.read_text(encoding="utf-8").strip()
        except OSError:
            text = ""
        return text or "another process"


def hold(info: _Info) -> GpuLock:
    """Lock the GPU on which this process measures (``device.info``). Raises GpuBusy."""
    from subbyte.gpu.telemetry import Telemetry

    return GpuLock(Telemetry(info.bus_id).uuid() or info.bus_id)


def claim(uuid: str, folder: str | os.PathLike[str] | None = None) -> GpuLock:
    """A runner's claim to a GPU, in addition to the lock of its measuring process: it persists while that process is
    replaced.

    Raises GpuBusy when another runner has it.
    """
    return GpuLock(uuid, _CLAIM_PATIENCE_S, folder, ".runner")


def refuse_claimed(uuid: str, folder: str | os.PathLike[str] | None = None) -> None:
    """Raise GpuBusy when a runner other than the one that started this process claims the GPU."""
    try:
        claim(uuid, folder).release()
    except GpuBusy as busy:
        if busy.holder != f"process {os.getppid()}":
            raise


def _lock(descriptor: int) -> None:
    """Lock without waiting. Raises OSError when another process holds the lock."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        pass
    try:
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
    except OSError as error:
        raise MissingDependency(
            f"the GPU's lock file {path} cannot be opened ({error.strerror}): set TMPDIR to a writable folder"
        ) from None
