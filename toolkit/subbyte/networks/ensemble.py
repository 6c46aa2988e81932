"""Ensembles: several networks classify an image and vote (TCBNN's ``benn``, arXiv 2006.16578; Zhu et al., 1806.07550).

Members share one GPU or are spread over the given GPUs; the CPU counts the votes. Results for more GPUs than there are,
are labelled as simulated.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput, WrongResult
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.kernel.execute import resolve_devices
from subbyte.networks.layer import Images
from subbyte.networks.network import Network
from subbyte.networks.parameters import Parameters

if TYPE_CHECKING:
    from subbyte.gpu.timing import TimingProtocol
    from subbyte.networks.compiled import CompiledNetwork
    from subbyte.networks.ensemble_gpus import GpuEnsemble

BY_REFERENCE = "computed by the reference"
SIMULATED = "simulated: the members ran one after another on one device, and what each takes is its own"


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """``votes`` int64 [N, classes] and each member's predictions int64 [members, N]. ``label`` says where they ran."""

    votes: NDArray[np.int64]
    members: NDArray[np.int64]
    label: str

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with the most votes for each image; in a tie, that of the first member that voted for one of
        them."""
        tied = self.votes == self.votes.max(axis=1, keepdims=True)
        image = np.arange(len(self.votes))
        wanted = np.stack([tied[image, member] for member in self.members])
        return self.members[wanted.argmax(axis=0), image]


@dataclass(frozen=True)
class EnsembleTime(InfoRecord):
    """Microseconds for a batch, measured after every vote was compared. ``members``: each alone on its GPU, by that
    GPU's events. By wall clock, over consecutive runs: ``one_gpu`` all members on the first GPU, ``together`` on all of
    ``gpus``; ``voted`` a single run on those, from its launch to the votes on the CPU. ``own_gpus`` is the maximum of
    ``members``: a lower bound for one GPU per member, without the votes; simulated unless there are that many GPUs.
    ``label`` says which."""

    network: str
    members: tuple[float, ...]
    gpus: tuple[str, ...]
    one_gpu: float
    together: float
    voted: float
    own_gpus: float
    label: str

    def title(self) -> str:
        """Members and label."""
        return f"{len(self.members)} x {self.network}; {self.label}"

    def table(self) -> Table:
        """One row for each number of GPUs."""
        rows: list[tuple[object, ...]] = [("1", self.one_gpu, "measured")]
        count = len(self.gpus)
        if count > 1:
            rows.append((str(count), self.together, "measured"))
        rows.append((f"{count}, until the votes are counted", self.voted, "measured"))
        if count < len(self.members):
            rows.append((str(len(self.members)), self.own_gpus, "simulated"))
        return Table(("GPUs", "us", "how"), tuple(rows))

    def text(self) -> str:
        """Title, GPUs and table."""
        where = ", ".join(f"cuda:{place} {name}" for place, name in enumerate(self.gpus))
        return f"{self.title()}\non {where}\n\n{columns_text(self.table())}"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Networks with the same layers and different ``parameters``. Raises InvalidInput for fewer than two."""

    network: Network
    parameters: tuple[Parameters, ...]

    def __post_init__(self) -> None:
        if len(self.parameters) < 2:
            raise InvalidInput(f"an ensemble of {len(self.parameters)} networks: expected at least 2")
        for one in self.parameters:
            one.check(self.network.layers)

    @checked
    def reference(self, images: Images) -> EnsembleResult:
        """The exact votes on images uint8 [N,H,W,C]. Raises InvalidInput."""
        found = [self.network.reference(images, one).predictions for one in self.parameters]
        return counted(found, self.network.classes, BY_REFERENCE)

    @checked
    def run(self, images: Images, device: str = "auto", arch: str = "sm_90a") -> EnsembleResult:
        """The votes of the members' kernels on images uint8 [N,H,W,C]. ``device`` is that of
        :meth:`CompiledNetwork.run`, or several GPUs, ``cuda:0,cuda:1``: they run concurrently, with members assigned in
        turn. Raises InvalidInput, MissingDependency and, for several GPUs, Unsupported if the CPU does a part of a
        layer."""
        places = resolve_devices(device, arch)
        members = self._compiled(arch)
        if len(places) == 1:
            found = [member.run(images, places[0]).predictions for member in members]
            return counted(found, self.network.classes, SIMULATED)
        members[0].require_whole()
        given = self.network.check_images(images)
        batches = list(members[0].batches(given))
        with self._on_gpus(members, batches[0], places) as running:
            parts = []
            for batch in batches:
                running.give(batch)
                parts.append(running.run())
        predictions = np.concatenate(parts, axis=1)[:, : len(given)]
        return counted(list(predictions), self.network.classes, f"the members ran on {len(places)} GPUs")

    @checked
    def time(self, protocol: TimingProtocol | None = None, device: str = "auto", arch: str = "sm_90a") -> EnsembleTime:
        """Times on the GPUs in ``device``, as in :meth:`run`, after every layer of each member and the votes were
        compared with the reference. ``protocol`` is the one for each member alone. Raises what
        :meth:`CompiledNetwork.time` raises."""
        places = resolve_devices("cuda:0" if device == "auto" else device, arch)
        members, images = self._compiled(arch), self.network.random_images(0)
        seats = [places[number % len(places)] for number in range(len(members))]
        right = np.array([one.verified(images, seat).predictions for one, seat in zip(members, seats, strict=True)])
        alone = [one.timed(images, seat, protocol).microseconds for one, seat in zip(members, seats, strict=True)]
        classes = self.network.classes
        with self._on_gpus(members, images, places) as running:
            if (running.run() != right).any():
                raise WrongResult(f"{self.network.name}: votes on {device} differ from the reference's; no time taken")
            together = running.time().microseconds
            voted = statistics.median(running.time_votes(lambda found: counted(list(found), classes, "").predictions))
            gpus = tuple(one.info.name for one in running.devices)
        one_gpu = together
        if len(places) > 1:
            with self._on_gpus(members, images, places[:1]) as running:
                one_gpu = running.time().microseconds
        label = where_they_ran(len(members), len(places))
        return EnsembleTime(self.network.name, tuple(alone), gpus, one_gpu, together, voted, max(alone), label)

    @staticmethod
    def _on_gpus(members: list[CompiledNetwork], images: Images, places: tuple[str, ...]) -> GpuEnsemble:
        from subbyte.gpu.device import open_device
        from subbyte.networks.ensemble_gpus import GpuEnsemble

        return GpuEnsemble(members, images, [open_device(int(place.partition(":")[2])) for place in places])

    def _compiled(self, arch: str) -> list[CompiledNetwork]:
        return [self.network.compile(arch, parameters=one) for one in self.parameters]


@dataclass(frozen=True, eq=False)
class TrainedEnsemble:
    """An ensemble whose members were each trained on images drawn with replacement. ``accuracies`` of the members and
    ``accuracy`` of their votes are those of the integers on the test split; ``differing`` counts votes that differ in
    floating point."""

    ensemble: Ensemble
    accuracies: tuple[float, ...]
    accuracy: float
    differing: int
    images: int

    @property
    def summary(self) -> dict[str, object]:
        """All fields except the arrays."""
        return {"network": self.ensemble.network.stem, "members": len(self.accuracies), "accuracies": self.accuracies,
                "accuracy": self.accuracy, "differing": self.differing, "test_images": self.images,
                "label": BY_REFERENCE}  # fmt: skip

    def text(self) -> str:
        """Three lines for a terminal."""
        each = ", ".join(f"{one:.1%}" for one in self.accuracies)
        return (
            f"{len(self.accuracies)} x {self.ensemble.network.stem}, each alone: {each}\n"
            f"their votes {round(self.accuracy * self.images)} of {self.images} test images as they should be: "
            f"{self.accuracy:.1%}; {self.differing} differ from those in floating point; {BY_REFERENCE}"
        )


@checked
def train_ensemble(
    data: str, precision: str = "w1a1", members: int = 3, *, epochs: int | None = None, seed: int = 0,
    widths: tuple[int, ...] | None = None, report: Callable[[int, int], None] | None = None,
) -> TrainedEnsemble:  # fmt: skip
    """Train ``members`` networks, each as :func:`~subbyte.networks.training.train` does with ``bagged``, with seeds
    from ``seed`` on, and let them vote. Raises what that raises, and InvalidInput for fewer than two members."""
    from subbyte.networks.training import train

    count = whole(members, "members", 2, 64)
    found = [train(data, precision, epochs=epochs, seed=seed + one, widths=widths, bagged=True, report=report)
             for one in range(count)]  # fmt: skip
    first = found[0]
    votes, reals = (
        counted(each, first.network.classes, "").predictions
        for each in ([one.predictions for one in found], [one.float_predictions for one in found])
    )
    accuracy = float((votes == first.labels).mean())
    ensemble = Ensemble(first.network, tuple(one.parameters for one in found))
    differing = int(np.count_nonzero(votes != reals))
    return TrainedEnsemble(ensemble, tuple(one.accuracy for one in found), accuracy, differing, first.images)


def where_they_ran(members: int, gpus: int) -> str:
    """Which of an ensemble's times are measured, and which are simulated."""
    if gpus == 1:
        return SIMULATED
    if gpus >= members:
        return f"measured on {gpus} GPUs"
    return f"measured on {gpus} GPUs; what {members} would take is simulated"


def random_ensemble(network: Network, members: int, seed: int = 0) -> Ensemble:
    """Members with random parameters: for speed only. Raises InvalidInput."""
    count = whole(members, "members", 2)
    return Ensemble(network, tuple(network.random_parameters(seed + member) for member in range(count)))


def counted(members: Sequence[NDArray[np.int64]], classes: int, label: str) -> EnsembleResult:
    """The votes of members' predictions, int64 [N] each."""
    found = np.stack(members)
    votes = np.zeros((found.shape[1], classes), np.int64)
    image = np.arange(len(votes))
    for member in found:
        votes[image, member] += 1
    return EnsembleResult(votes, found, label)
