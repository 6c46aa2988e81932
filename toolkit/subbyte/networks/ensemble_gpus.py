"""Members of an ensemble on one GPU or spread over several, each a chain of kernels in its GPU's graph.

Every GPU runs its members one after another, and all GPUs run concurrently. The sums of the logits are copied to pinned
CPU memory in the same graph, and the CPU counts the votes: only a few numbers per image, so no GPU waits for another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import copy
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.gpu.together import LONG, PinnedCopy, Share, TogetherTiming, run_together, time_together
from subbyte.kernel.operands import activation_words
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.layer import Images, pixel_values

RUNS = 200
"""How often the path from images to votes is timed; the median counts."""


ALIGNMENT = 256
"""Alignment, in bytes, of a kernel's output."""


class GpuEnsemble:
    """``members`` with their kernels on ``devices`` in turn: member m on device m modulo their number.

    ``images`` uint8 [N,H,W,C], one batch, are in every GPU's memory. All members on a GPU write the sums of their
    logits into one buffer, so that a single copy brings them to the CPU: each copy takes as long as the layers of a
    small network. Call :meth:`close` afterwards. Raises what :meth:`Chain.on_gpu` raises.
    """

    def __init__(self, members: Sequence[CompiledNetwork], images: Images, devices: Sequence[CudaDevice]) -> None:
        self.members, self.devices = tuple(members), tuple(devices)
        out = self.members[0].kernels[-1].kernel.argument("Out")
        self._slot = ceil(out.nbytes / ALIGNMENT) * ALIGNMENT
        words = np.arange(prod(out.shape), dtype=np.int32).reshape(out.shape)
        self._places = self.members[0].kernels[-1].kernel.unpack(words)[:, 0, 0]
        """Where the sum of each image and class lies: once, since looking it up takes longer than small networks."""
        logits = [member.parameters.logits for member in self.members]
        self._scales = np.stack([one.multiplier for one in logits])[:, None]
        self._biases = np.stack([one.bias for one in logits])[:, None]
        self._stack = ExitStack()
        self.chains: list[GpuChain] = []
        try:
            seats = ceil(len(self.members) / len(self.devices))
            self._logits = [PinnedCopy(device, seats * self._slot) for device in self.devices]
            for logits_of_device in self._logits:
                self._stack.callback(logits_of_device.close)
            for place, member in enumerate(self.members):
                seat, on = divmod(place, len(self.devices))
                part = self._logits[on].buffer.part(seat * self._slot, out.nbytes)
                self.chains.append(member.chain().on_gpu(pixel_values(images), self.devices[on], part))
                self._stack.callback(self.chains[-1].close)
        except BaseException:
            self.close()
            raise

    def first(self, count: int) -> GpuEnsemble:
        """The first ``count`` members only, in place; closing the result frees nothing."""
        found = copy(self)
        found.members, found.chains, found._stack = self.members[:count], self.chains[:count], ExitStack()
        found._scales, found._biases = self._scales[:count], self._biases[:count]
        return found

    def give(self, images: Images) -> None:
        """Replace the images by the same number of other ones."""
        for member, chain in zip(self.members, self.chains, strict=True):
            first = member.kernels[0].kernel
            chain.give(activation_words(first.argument("A"), first.workload, pixel_values(images)))

    def run(self, timeout_s: float = 20.0) -> NDArray[np.int64]:
        """Predictions int64 [members, N] of one run on poisoned buffers."""
        for chain in self.chains:
            chain.poison()
        for logits in self._logits:
            logits.copied()[...] = 0xCD
        run_together([(share.device, share.enqueue) for share in self.shares()], timeout_s=timeout_s)
        return self.predictions()

    def predictions(self) -> NDArray[np.int64]:
        """The predictions of the last run, from the logits that were copied to the CPU: int64 [members, N]."""
        by_device = [one.copied().view(np.int32).reshape(-1, self._slot // 4) for one in self._logits]
        count, gpus = len(self.members), len(by_device)
        words = np.stack([by_device[place % gpus][place // gpus] for place in range(count)])
        sums = np.take(words, self._places.reshape(-1), axis=1).reshape(count, *self._places.shape)
        return (sums * self._scales + self._biases).argmax(axis=2)

    def shares(self) -> list[Share]:
        """What each GPU does in a run."""
        return [Share(one.device, self._enqueue(on)) for on, one in enumerate(self._logits) if self.chains[on:]]

    def time(self, protocol: TimingProtocol = LONG) -> TogetherTiming:
        """Wall-clock time of a run, over several consecutive runs: the kernels and the copies of the logits."""
        return time_together(self.shares(), protocol)

    def time_votes(
        self, count: Callable[[NDArray[np.int64]], object], runs: int = RUNS, timeout_s: float = 20.0
    ) -> tuple[float, ...]:
        """Microseconds from launching one graph on each GPU until all predictions of ``count`` members have arrived,
        for each of ``runs`` runs: launching, waiting and the votes are included, and runs do not overlap."""
        samples = []
        with ExitStack() as stack:
            shares = self.shares()
            replays = []
            for share in shares:
                share.device.activate()
                replays.append((share.device, stack.enter_context(share.device.graph(share.enqueue))))
            run_together(replays, 1, timeout_s)
            for _ in range(runs):
                start = time.perf_counter()
                run_together(replays, 1, timeout_s)
                count(self.predictions())
                samples.append(1e6 * (time.perf_counter() - start))
        return tuple(samples)

    def close(self) -> None:
        """Free everything. May be called twice."""
        self._stack.close()

    def __enter__(self) -> GpuEnsemble:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _enqueue(self, on: int) -> Callable[[], None]:
        """A function that enqueues the work of device ``on``: its members, then the copy of their logits."""
        launchers = [chain.launcher() for chain in self.chains[on :: len(self.devices)]]

        def enqueue() -> None:
            for launch in launchers:
                launch()
            self._logits[on].enqueue(len(launchers) * self._slot)

        return enqueue
