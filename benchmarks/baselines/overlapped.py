"""One layer many times in one graph, each launch beginning before the one ahead of it has ended: the time per layer in
a chain of such layers.

Where a layer's output has the form of its input, the launches are a true chain: each reads what the one before it
wrote. Elsewhere every launch reads the same input; it still waits for the end of the one before it, as in a chain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from subbyte.device.launch import Argument, Launch
from subbyte.errors import WrongResult
from subbyte.gpu.device import CudaDevice, DeviceBuffer
from subbyte.gpu.timing import Timing, TimingProtocol, time_launch
from subbyte.measure.case import Case

OWN_OUTPUT, SAME_INPUT = "own output", "same input"


def reads_from(launch: Launch) -> str:
    """``own output`` where the output has the form of the input, else ``same input``."""
    into, out = argument(launch, "A"), argument(launch, "Out")
    return OWN_OUTPUT if (into.dtype, into.shape, into.form) == (out.dtype, out.shape, out.form) else SAME_INPUT


def argument(launch: Launch, name: str) -> Argument:
    """The argument of this name."""
    return next(a for a in launch.arguments if a.name == name)


def time_overlapped(
    cubin: bytes, launch: Launch, case: Case, following: Case | None, device: CudaDevice, protocol: TimingProtocol
) -> Timing:
    """Time of one launch among overlapping ones (not overlapping where the kernel cannot).

    The output of the second launch is compared first: with ``following``, the case that begins with the first one's
    output, or with ``case`` where every launch reads the same. Raises WrongResult, CudaError.
    """
    function = device.load(cubin, launch.entry)
    function.allow_shared(launch.shared_bytes)
    held: dict[str, DeviceBuffer] = {}
    try:
        held = {a.name: device.upload(case.operand(a)) for a in launch.arguments if a.role == "in"}
        held |= {name: device.alloc(argument(launch, "Out").nbytes) for name in ("Out", "Next")}
        orders = [{**held}, {**held, "Out": held["Next"]}]
        if reads_from(launch) == OWN_OUTPUT:
            orders = [{**held}, {**held, "A": held["Out"], "Out": held["Next"]},
                      {**held, "A": held["Next"], "Out": held["Out"]}]  # fmt: skip
        pointers = [[order[a.name].pointer for a in launch.arguments] for order in orders]

        def enqueue(place: int) -> None:
            function.launch(launch.grid, launch.block, launch.shared_bytes, pointers[place], launch.dependent_launch)

        held["Out"].fill(0xCD)
        held["Next"].fill(0x32)
        enqueue(0)
        enqueue(1)
        device.synchronize(protocol.timeout_s)
        out = argument(launch, "Out")
        _compare(held["Next"].download(out.shape, out.dtype), out, case if following is None else following)
        state = [1]

        def alternate() -> None:
            state[0] = len(orders) - 1 if state[0] == len(orders) - 2 else len(orders) - 2
            enqueue(state[0])

        return time_launch(device, alternate, replace(protocol, cold=False, launches=2 * protocol.launches))
    finally:
        for buffer in held.values():
            buffer.free()
        function.unload()


def _compare(words: Any, out: Argument, case: Case) -> None:
    report = case.check(np.asarray(words).ravel(), out)
    if not report.ok:
        raise WrongResult(f"overlapping launches: {report}")
