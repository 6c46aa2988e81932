"""Layers back to back on a GPU: the packed output of each is the input of the next, with no kernel in between.

With ``overlap`` a layer is launched while the one before it still runs (programmatic dependent launch): it fetches its
weights and sets up its barriers, then waits for the other's output by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput
from subbyte.gpu.device import CudaDevice, DeviceBuffer, open_device
from subbyte.gpu.loaded import LoadedLaunch
from subbyte.gpu.timing import Timing, TimingProtocol, time_launch
from subbyte.numerics.residual import source_of

_OUTPUTS = {"Out", "Sum"}


class GpuChain:
    """Cubins with their launches, in order; argument ``A`` of each but the first is ``Out`` of the one before.

    ``inputs`` holds, for each layer, the words of its other inputs (and of ``A`` for the first); ``residuals`` the
    layer whose ``Sum`` is its ``Res``, None if there is none. The last output goes to ``out`` if given, which the
    caller keeps. Raises InvalidInput when the sizes do not fit, CudaError for a kernel that the device cannot load.
    """

    def __init__(
        self,
        kernels: Sequence[tuple[bytes, Launch]],
        inputs: Sequence[Mapping[str, NDArray[Any]]],
        device: int | CudaDevice = 0,
        residuals: Sequence[int | None] = (),
        out: DeviceBuffer | None = None,
    ) -> None:
        check_chain([launch for _, launch in kernels])
        sources = list(residuals) or [None] * len(kernels)
        self.device = device if isinstance(device, CudaDevice) else open_device(device)
        self.launches = [launch for _, launch in kernels]
        self._loaded, self._buffers, self._out = [], [], out
        try:
            for (cubin, launch), words, source in zip(kernels, inputs, sources, strict=True):
                self._loaded.append(LoadedLaunch(self.device, cubin, launch))
                self._buffers.append(self._place(launch, words, source))
        except BaseException:
            self.close()
            raise

    def run(self, overlap: bool = True, timeout_s: float = 20.0) -> NDArray[Any]:
        """Run all layers once on poisoned buffers; returns the words of the last output."""
        self.poison()
        self._enqueue(overlap)
        self.device.synchronize(timeout_s)
        return self.output(len(self.launches) - 1)

    def poison(self) -> None:
        """Enqueue setting every byte of every output to 0xCD."""
        self.device.activate()
        for buffers in self._buffers:
            for name in buffers.keys() & _OUTPUTS:
                buffers[name].fill(0xCD)

    def output(self, layer: int, name: str = "Out") -> NDArray[Any]:
        """The words that a layer (0 is the first) wrote in the last run; ``Sum`` for the sums it kept."""
        out = _argument(self.launches[layer], name)
        self.device.activate()
        return self._buffers[layer][name].download(out.shape, out.dtype)

    def time(self, protocol: TimingProtocol | None = None, overlap: bool = True) -> Timing:
        """Time of the whole chain by graph replay, L2 hot, one graph of ``protocol.launches`` chains."""
        return time_launch(self.device, self.launcher(overlap), protocol)

    def launcher(self, overlap: bool = True) -> Callable[[], None]:
        """A function that enqueues the whole chain once."""
        return lambda: self._enqueue(overlap)

    def give(self, words: NDArray[Any]) -> None:
        """Replace the words of ``A`` of the first layer by the same number of others. Raises InvalidInput."""
        self.device.activate()
        self._buffers[0]["A"].upload(words)

    def close(self) -> None:
        """Free everything. May be called twice."""
        if self._loaded and not self.device.lost:
            self.device.activate()  # modules are unloaded from the current context
        for place, buffers in enumerate(self._buffers):
            for name, buffer in buffers.items():
                if name != "Res" and (name != "A" or place == 0) and buffer is not self._out:
                    buffer.free()
        for loaded in self._loaded:
            loaded.unload()
        self._loaded, self._buffers = [], []

    def __enter__(self) -> GpuChain:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _place(self, launch: Launch, words: Mapping[str, NDArray[Any]], source: int | None) -> dict[str, DeviceBuffer]:
        placed: dict[str, DeviceBuffer] = {}
        for argument in launch.arguments:
            if argument.name == "Out" and self._out is not None and launch is self.launches[-1]:
                if self._out.nbytes != argument.nbytes:
                    raise InvalidInput(f"out has {self._out.nbytes} bytes: the last output has {argument.nbytes}")
                placed["Out"] = self._out
            elif argument.name in _OUTPUTS:
                placed[argument.name] = self.device.alloc(argument.nbytes)
            elif argument.name == "Res" and source is not None:
                placed["Res"] = self._buffers[0]["A"] if source < 0 else self._buffers[source][source_of(argument.form)]
            elif argument.name == "A" and self._buffers:
                placed["A"] = self._buffers[-1]["Out"]
            else:
                placed[argument.name] = self.device.upload(np.ascontiguousarray(words[argument.name]))
        return placed

    def _enqueue(self, overlap: bool) -> None:
        for place, (launch, loaded) in enumerate(zip(self.launches, self._loaded, strict=True)):
            pointers = [self._buffers[place][argument.name].pointer for argument in launch.arguments]
            loaded.enqueue(pointers, overlap and place > 0 and launch.dependent_launch)


def check_chain(launches: Sequence[Launch]) -> None:
    """Raise InvalidInput unless each output's words are exactly the next one's input.

    Launches only know padded words; :class:`subbyte.kernel.Chain` checks whether the actual sizes fit too.
    """
    if not launches:
        raise InvalidInput("a chain needs at least one layer")
    for number, (before, after) in enumerate(pairwise(launches)):
        out, into = _argument(before, "Out"), _argument(after, "A")
        if (out.dtype, out.shape, out.form) != (into.dtype, into.shape, into.form):
            raise InvalidInput(
                f"layer {number} gives {out.dtype}{list(out.shape)} in {out.form}, layer {number + 1} takes "
                f"{into.dtype}{list(into.shape)} in {into.form}: sizes, channels, batch and layout must be the same"
            )


def _argument(launch: Launch, name: str) -> Argument:
    return next(argument for argument in launch.arguments if argument.name == name)
