"""Time ensembles (T6, TCBNN's benn): k networks on one GPU and spread over all of them, and their votes.

    python benchmarks/bits networks --build FILE.json tcbnn.cifar_resnet@8       # where TVM is
    python benchmarks/bits ensembles FILE.json RECORD.json --members 1 2 4 8     # where the GPUs are; needs CuPy

Members have the same layers and other random parameters; those of a trained network are trained anew, each on images
drawn with replacement, and vote on its test images. Every logit of every member, on whichever GPU it ran, is compared
with a direct convolution of values by CuPy, and the votes with those of that. Times by the wall's clock, on 1, 2, 4 and
8 GPUs: runs in a row, and one run by itself from its launch to the votes. What more GPUs would take than there are is
simulated: the slowest of as many shares, each timed alone on one GPU, without the copies of the logits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
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
from subbyte.gpu.driver import detect
from subbyte.gpu.lock import hold
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.networks.compiled import CompiledNetwork
from subbyte.networks.ensemble import counted, train_ensemble, where_they_ran
from subbyte.networks.ensemble_gpus import GpuEnsemble
from subbyte.networks.trained import test_images
from subbyte.records.describe import now

MEMBERS = (1, 2, 4, 8)
GPUS = (1, 2, 4, 8)
"""Of which as many as there are run, and more are simulated."""
EPOCHS = 8
"""Of members that are trained for the votes: seconds, not the accuracy of the shipped weights."""


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

    devices = [CudaDevice(one.ordinal) for one in detect()]
    label = where_they_ran(max(asked.members), len(devices))
    record: dict[str, Any] = {"schema": 3, "kind": "ensembles", "date": now(), "command": command_line(),
                              "devices": [one.info.to_dict() for one in devices], "label": label,
                              "ensembles": []}  # fmt: skip
    with ExitStack() as stack:
        for one in devices:
            stack.enter_context(hold(one.info))
        for given in json.loads(asked.networks.read_text(encoding="utf-8")):
            if "layers" not in given:
                continue
            try:
                found = measured(given, sorted(set(asked.members)), devices, cupy)
            except SubbyteError as error:
                found = {"network": given["name"], "failed": str(error)}
            record["ensembles"].append(found)
            print({key: found[key] for key in found if key not in ("samples", "clocks")}, flush=True)
            write_file(asked.out, (json.dumps(record, indent=1) + "\n").encode())
    return int(any(failed(one) for one in record["ensembles"]))


def failed(found: dict[str, Any]) -> bool:
    """Whether anything is wrong."""
    return bool(
        found.get("failed") or found["wrong"] or any(any(one.values()) for one in found["votes_differing"].values())
    )


def members_of(given: dict[str, Any], count: int) -> tuple[list[CompiledNetwork], NDArray[Any], NDArray[Any] | None]:
    """A network's kernels with ``count`` sets of parameters; a batch of images, and their labels where known."""
    first = unpacked(given)
    found = first.network
    if found.trained:
        bits = found.stem.partition(".")[2]
        parameters = train_ensemble(found.trained, bits, max(count, 2), epochs=EPOCHS).ensemble.parameters[:count]
        images, labels = test_images(found)
        images, known = images[: found.batch], labels[: found.batch]
        if len(images) < found.batch:
            raise InvalidInput(f"{found.name}: there are {len(images)} test images; build it for at most as many")
    else:
        parameters = tuple(found.random_parameters(seed) for seed in range(count))
        images, known = found.random_images(1), None
    return [CompiledNetwork(found, one, first.arch, first.kernels) for one in parameters], images, known


def measured(given: dict[str, Any], sizes: Sequence[int], devices: Sequence[CudaDevice], xp: Any) -> dict[str, Any]:
    """Times of each size on one GPU and on all, and how many logits and votes are wrong."""
    members, images, labels = members_of(given, sizes[-1])
    found: dict[str, Any] = {
        "network": members[0].network.name, "label": members[0].network.label, "members": len(members),
        "gpus": len(devices), "wrong": 0, "logits": 0, "votes_differing": {},
        "microseconds": {}, "voted": {}, "samples": {}, "clocks": {},
    }  # fmt: skip
    devices[0].activate()
    right = [expected(one, images, xp) for one in members]
    classes = np.stack([predictions(one, sums) for one, sums in zip(members, right, strict=True)])
    for gpus in (count for count in GPUS if count <= len(devices)):
        with GpuEnsemble(members, images, devices[:gpus]) as running:
            for size in sizes:
                add(found, running.first(size), right[:size], classes[:size])
            if gpus == 1:
                how = TimingProtocol(cold=False, launches=4)
                found["alone"] = [chain.time(how).microseconds for chain in running.chains]
    found["simulated"] = {
        gpus: {size: slowest_share(found["alone"][:size], gpus) for size in sizes}
        for gpus in GPUS if gpus > len(devices)
    }  # fmt: skip
    if labels is not None:
        found["accuracies"] = [float((one == labels).mean()) for one in classes]
        found["accuracy"] = float((votes(classes) == labels).mean())
    return found


def add(found: dict[str, Any], running: GpuEnsemble, right: Sequence[NDArray[Any]], classes: NDArray[np.int64]) -> None:
    """An ensemble's comparison and its two times, for so many members on one GPU or all."""
    size = len(running.members)
    ours = running.run()
    for one, chain, sums in zip(running.members, running.chains, right, strict=True):
        found["wrong"] += differing(one, chain, sums)
        found["logits"] += sums.size
    wrong = int(np.count_nonzero(votes(ours) != votes(classes)))
    timing, gpus = running.time(), len(running.devices)
    for what, value in (
        ("votes_differing", wrong), ("microseconds", timing.microseconds), ("voted", median(running.time_votes(votes))),
        ("samples", list(timing.samples)), ("clocks", timing.to_dict()["after"]),
    ):  # fmt: skip
        found[what].setdefault(gpus, {})[size] = value


def slowest_share(alone: Sequence[float], gpus: int) -> float:
    """Microseconds of the GPU with most to do, where members with these times are dealt to so many GPUs in turn."""
    return max(sum(alone[place::gpus]) for place in range(gpus))


def expected(one: CompiledNetwork, images: NDArray[Any], xp: Any) -> NDArray[Any]:
    """The sums of a member's logits by a direct convolution of values: int32 [N,1,1,K]."""
    *_, (_, right) = direct(one.network, one.parameters, images, xp)
    return np.asarray(host(right))


def predictions(one: CompiledNetwork, sums: NDArray[Any]) -> NDArray[np.int64]:
    """A member's class for each image."""
    return np.asarray(one.parameters.logits.apply(sums.astype(np.int32)).argmax(axis=1))


def differing(one: CompiledNetwork, chain: GpuChain, right: NDArray[Any]) -> int:
    """How many sums of a member's logits on its GPU are others."""
    last = len(one.kernels) - 1
    ours = one.kernels[last].kernel.unpack(chain.output(last)).reshape(right.shape)
    return int(np.count_nonzero(ours != right))


def votes(members: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ensemble's predictions from its members'."""
    return counted(list(members), int(members.max()) + 1, "").predictions
