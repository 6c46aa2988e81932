"""Ensembles (T6, TCBNN's benn): k networks on one GPU, one after another in one graph, and their votes.

    python benchmarks/bits networks --build FILE.json tcbnn.cifar_resnet@8       # where TVM is
    python benchmarks/bits ensembles FILE.json RECORD.json --members 1 2 4 8     # where the GPU is; needs CuPy

Members have the same layers and other random parameters. Every logit of every member is compared with a direct
convolution of values by CuPy, and the votes with those of that. What k GPUs would take is simulated: the slowest of k
members, each timed alone, without the votes' way between GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bits.direct import host
from benchmarks.bits.networks import direct, unpacked
from benchmarks.shared.command import answering, parser_of
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.files import prove_writable, write_file
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.lock import hold
from subbyte.gpu.timing import TimingProtocol, command_line, time_launch
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.ensemble import SIMULATED, EnsembleResult
from subbyte.networks.layer import pixel_values
from subbyte.records.describe import now

MEMBERS = (1, 2, 4, 8)


@answering
def main(arguments: Sequence[str]) -> int:
    """Measure."""
    parser = parser_of("bits ensembles", __doc__)
    parser.add_argument("networks", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--members", type=int, nargs="+", default=list(MEMBERS), help="sizes (default 1 2 4 8)")
    asked = parser.parse_args(arguments)
    if min(asked.members) < 1:
        raise InvalidInput("--members: expected sizes of at least 1")
    prove_writable(asked.out)
    import cupy  # type: ignore[import-not-found,unused-ignore]

    device = CudaDevice(0)
    record: dict[str, Any] = {"schema": 1, "kind": "ensembles", "date": now(), "command": command_line(),
                              "device": device.info.to_dict(), "label": SIMULATED, "ensembles": []}  # fmt: skip
    with hold(device.info):
        for given in json.loads(asked.networks.read_text(encoding="utf-8")):
            if "layers" not in given:
                continue
            try:
                found = measured(given, sorted(set(asked.members)), device, cupy)
            except SubbyteError as error:
                found = {"network": given["name"], "failed": str(error)}
            record["ensembles"].append(found)
            print({key: found[key] for key in found if key != "samples"}, flush=True)
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(one.get("wrong") or one.get("failed") for one in record["ensembles"]))


def members_of(given: dict[str, Any], count: int) -> list[CompiledNetwork]:
    """A network's kernels with ``count`` random sets of parameters."""
    first = unpacked(given)
    return [
        CompiledNetwork(first.network, first.network.random_parameters(seed), first.arch, first.kernels)
        for seed in range(count)
    ]


def measured(given: dict[str, Any], sizes: Sequence[int], device: CudaDevice, xp: Any) -> dict[str, Any]:
    """Times of each size, and how many logits and votes are wrong."""
    members = members_of(given, sizes[-1])
    images = members[0].network.random_images(1)
    with ExitStack() as stack:
        chains = [stack.enter_context(one.chain().on_gpu(pixel_values(images), device)) for one in members]
        pairs = [compared(one, chain, images, xp) for one, chain in zip(members, chains, strict=True)]
        how = TimingProtocol(cold=False, launches=4)
        alone = [chain.time(how).microseconds for chain in chains]
        timings = {size: time_launch(device, in_turn(chains[:size]), how) for size in sizes}
    ours, right = ([pair[which] for pair in pairs] for which in (0, 1))
    return {
        "network": members[0].network.name, "label": members[0].network.label, "members": len(members),
        "wrong": sum(pair[2] for pair in pairs),
        "votes_differing": {size: int(np.count_nonzero(votes(ours[:size]) != votes(right[:size]))) for size in sizes},
        "alone": alone, "one_gpu": {size: timing.microseconds for size, timing in timings.items()},
        "own_gpus_simulated": {size: max(alone[:size]) for size in sizes},
        "samples": {size: list(timing.samples) for size, timing in timings.items()},
        "clocks": timings[sizes[-1]].clocks(),
    }  # fmt: skip


def in_turn(chains: Sequence[GpuChain]) -> Any:
    """A function that enqueues all members, one after another."""
    launchers = [chain.launcher() for chain in chains]

    def enqueue() -> None:
        for launch in launchers:
            launch()

    return enqueue


def compared(one: CompiledNetwork, chain: GpuChain, images: Any, xp: Any) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Predictions of a member's kernels and of a direct convolution, and how many logits' sums differ."""
    chain.run()
    last = len(one.kernels) - 1
    *_, (_, right) = direct(one.network, one.parameters, images, xp)
    sums = host(right)
    found = one.kernels[last].kernel.unpack(chain.output(last)).reshape(sums.shape)
    predictions = [one.parameters.logits.apply(each).reshape(len(images), -1).argmax(axis=1) for each in (found, sums)]
    return predictions[0], predictions[1], int(np.count_nonzero(found != sums))


def votes(members: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """The ensemble's predictions from its members'."""
    found = np.stack(members)
    counts = np.stack([(found == one).sum(axis=0) for one in range(int(found.max()) + 1)], axis=1)
    return EnsembleResult(counts.astype(np.int64), found, SIMULATED).predictions
