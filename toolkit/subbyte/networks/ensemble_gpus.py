"""Members of an ensemble on one GPU or spread over several, each a chain of kernels in its GPU's graph.

Every GPU runs its members one after another, all GPUs at the same time; the logits' sums are copied to page-locked
memory of the CPU in the same graph, and the CPU counts the votes: a few numbers an image, so no GPU waits for another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import copy
from math import prod

import numpy as np
from numpy.typing import NDArray

from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.gpu.together import LONG, PinnedWords, Share, TogetherTiming, run_together, time_together
from subbyte.kernel.operands import activation_words
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.layer import Images, pixel_values

RUNS = 200
"""How often the way from images to votes is timed; the median counts."""


class GpuEnsemble:
    """``members`` with their kernels on ``devices`` in turn: member m on device m modulo their number.

    ``images`` uint8 [N,H,W,C], one batch, lie in every GPU's memory. Close it afterwards. Raises what
    :meth:`Chain.on_gpu` does.
    """

    def __init__(self, members: Sequence[CompiledNetwork], images: Images, devices: Sequence[CudaDevice]) -> None:
        self.members, self.devices = tuple(members), tuple(devices)
        last = self.members[0].kernels[-1].kernel
        words = last.argument("Out").shape
        self._places = last.unpack(np.arange(prod(words), dtype=np.int32).reshape(words))[:, 0, 0]
        """Where the sum of each image and class lies: once, since looking it up takes longer than small networks."""
        logits = [member.parameters.logits for member in self.members]
        self._scales, self._biases = (
            np.stack(each)[:, None] for each in zip(*((one.multiplier, one.bias) for one in logits), strict=True)
        )
        self._stack = ExitStack()
        self.chains: list[GpuChain] = []
        self._logits: list[PinnedWords] = []
        try:
            for place, member in enumerate(self.members):
                chain = member.chain().on_gpu(pixel_values(images), self.devices[place % len(self.devices)])
                self._stack.callback(chain.close)
                self.chains.append(chain)
                self._logits.append(chain.pinned())
                self._stack.callback(self._logits[-1].free)
        except BaseException:
            self.close()
            raise

    def first(self, count: int) -> GpuEnsemble:
        """The first ``count`` members by themselves, where they are; closing it frees nothing."""
        found = copy(self)
        found.members, found.chains = self.members[:count], self.chains[:count]
        found._logits, found._stack = self._logits[:count], ExitStack()
        found._scales, found._biases = self._scales[:count], self._biases[:count]
        return found

    def give(self, images: Images) -> None:
        """Other images, as many."""
        for member, chain in zip(self.members, self.chains, strict=True):
            first = member.kernels[0].kernel
            chain.give(activation_words(first.argument("A"), first.workload, pixel_values(images)))

    def run(self, timeout_s: float = 20.0) -> NDArray[np.int64]:
        """Predictions int64 [members, N] of one run on poisoned buffers."""
        for chain, logits in zip(self.chains, self._logits, strict=True):
            chain.poison()
            logits.poison()
        run_together([(share.device, share.enqueue) for share in self.shares()], timeout_s=timeout_s)
        return self.predictions()

    def predictions(self) -> NDArray[np.int64]:
        """Those of the last run, from the logits that were copied to the CPU: int64 [members, N]."""
        sums = np.stack([one.words() for one in self._logits])[:, self._places]
        return (sums * self._scales + self._biases).argmax(axis=2)

    def shares(self) -> list[Share]:
        """What each GPU does in a run."""
        return [Share(device, self._enqueue_of(device)) for device in self.devices if self._seats(device)]

    def time(self, protocol: TimingProtocol = LONG) -> TogetherTiming:
        """A run's time by the wall's clock, runs of several in a row: the kernels and the copies of the logits."""
        return time_together(self.shares(), protocol)

    def time_votes(
        self, count: Callable[[NDArray[np.int64]], object], runs: int = RUNS, timeout_s: float = 20.0
    ) -> tuple[float, ...]:
        """Microseconds from launching one graph on each GPU until ``count`` has got all predictions, for each of
        ``runs`` runs: launching, waiting and the votes are inside, and nothing of one run overlaps with the next."""
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

    def _seats(self, device: CudaDevice) -> list[int]:
        return [place for place, chain in enumerate(self.chains) if chain.device is device]

    def _enqueue_of(self, device: CudaDevice) -> Callable[[], None]:
        seats = self._seats(device)
        launchers = [self.chains[place].launcher() for place in seats]

        def enqueue() -> None:
            for place, launch in zip(seats, launchers, strict=True):
                launch()
                self.chains[place].enqueue_download(self._logits[place])

        return enqueue
