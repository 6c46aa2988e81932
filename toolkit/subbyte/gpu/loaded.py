"""The functions of a launch on a device, ready to run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from subbyte.device.launch import Launch
from subbyte.gpu.device import CudaDevice, CudaFunction


class LoadedLaunch:
    """The functions for :attr:`Launch.steps`, loaded from a cubin. Raises CudaError if the device cannot load them.

    A step after the first may begin before the preceding one has ended, if its kernel waits by itself.
    """

    def __init__(self, device: CudaDevice, cubin: bytes, launch: Launch) -> None:
        self.launch = launch
        self.functions: list[CudaFunction] = []
        try:
            for step in launch.steps:
                self.functions.append(device.load(cubin, step.launch.entry))
                if step.launch.shared_bytes:
                    self.functions[-1].allow_shared(step.launch.shared_bytes)
        except BaseException:
            self.unload()
            raise

    def enqueue(self, pointers: Sequence[int], overlap: bool = False) -> None:
        """Enqueue all steps on our stream; ``overlap`` is that of the first."""
        for place, (step, function) in enumerate(zip(self.launch.steps, self.functions, strict=True)):
            one = step.launch
            early = one.dependent_launch if place else overlap
            function.launch(one.grid, one.block, one.shared_bytes, step.addresses(pointers), early)

    def quick(self) -> Callable[[Sequence[int], int, bool], None]:
        """The same on another library's stream, repeatedly: addresses, handle of the stream, overlap."""
        runs = [function.quick(step.launch).bound
                for step, function in zip(self.launch.steps, self.functions, strict=True)]  # fmt: skip
        if len(runs) == 1:
            return runs[0]
        steps = list(zip(runs, self.launch.steps, strict=True))

        def run(addresses: Sequence[int], stream: int, overlap: bool) -> None:
            for place, (start, step) in enumerate(steps):
                start(step.addresses(addresses), stream, step.launch.dependent_launch if place else overlap)

        return run

    def unload(self) -> None:
        """Unload the functions. May be called twice."""
        for function in self.functions:
            function.unload()
        self.functions = []
