"""Which GPU a process measures on: one that nobody else uses, or will use until the process has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence

from subbyte.errors import InvalidInput, MissingDependency
from subbyte.gpu.driver import GpuInfo, detect
from subbyte.gpu.lock import GpuBusy, GpuLock, refuse_claimed
from subbyte.gpu.telemetry import Telemetry

PATIENCE_S = 10.0
"""How long to wait for a single GPU: a process that was just killed may still be releasing it."""


def take(devices: Sequence[int] | None, patience: float | None = None) -> tuple[GpuInfo, str, GpuLock]:
    """The first GPU (of ``devices``) on which nobody measures, its UUID and its lock.

    Waits ``patience`` seconds for each (default: ten for a single one). Raises GpuBusy, MissingDependency without
    a GPU, InvalidInput for a number that does not exist.
    """
    found = detect()
    for ordinal in devices or ():
        if not 0 <= ordinal < len(found):
            allowed = ", ".join(f"cuda:{info.ordinal}" for info in found)
            raise InvalidInput(f"device cuda:{ordinal}: this machine has {len(found)} GPU(s); allowed: {allowed}")
    if not found:
        raise MissingDependency("no GPU is visible on this machine")
    offered = [info for info in found if devices is None or info.ordinal in devices]
    busy: list[str] = []
    for info in offered:
        uuid = Telemetry(info.bus_id).uuid() or info.bus_id
        try:
            refuse_claimed(uuid)
            wait = (PATIENCE_S if len(offered) == 1 else 0.0) if patience is None else patience
            return info, uuid, GpuLock(uuid, wait)
        except GpuBusy as error:
            busy.append(str(error))
    raise GpuBusy("; ".join(busy))


_mine: list[tuple[GpuInfo, GpuLock]] = []


def take_gpu() -> int:
    """The number of a GPU on which no other process measures, for a kernel of your own: ``torch.cuda.set_device(n)``,
    ``cupy.cuda.Device(n).use()``.

    The GPU is reserved until this process ends; later calls return the same number. Waits ten seconds for one to become
    free. Raises MissingDependency without a GPU, GpuBusy when all are taken.
    """
    until = time.monotonic() + PATIENCE_S
    while not _mine:
        try:
            info, _, lock = take(None, 0.0)
            _mine.append((info, lock))
        except GpuBusy:
            if time.monotonic() >= until:
                raise
            time.sleep(0.2)
    return _mine[0][0].ordinal


def taken() -> GpuInfo | None:
    """The GPU that this process got from :func:`take_gpu`."""
    return _mine[0][0] if _mine else None
