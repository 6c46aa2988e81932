"""Ensembles: several networks look at an image and vote (TCBNN's ``benn``, arXiv 2006.16578; Zhu et al., 1806.07550).

Each member could have a GPU of its own. Here they run one after another on one device: what several GPUs would take is
said to be simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, whole
from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.networks.layer import Images
from subbyte.networks.network import Network
from subbyte.networks.parameters import Parameters

if TYPE_CHECKING:
    from subbyte.gpu.timing import TimingProtocol
    from subbyte.networks.compiled import CompiledNetwork

SIMULATED = "simulated: the members ran one after another on one device, and what each takes is its own"


@dataclass(frozen=True, eq=False)
class EnsembleResult:
    """``votes`` int64 [N, classes] and each member's predictions int64 [members, N]. ``label`` says where they ran."""

    votes: NDArray[np.int64]
    members: NDArray[np.int64]
    label: str

    @property
    def predictions(self) -> NDArray[np.int64]:
        """The class with most votes of each image, of equal ones that of the first member that is for one of them."""
        tied = self.votes == self.votes.max(axis=1, keepdims=True)
        image = np.arange(len(self.votes))
        wanted = np.stack([tied[image, member] for member in self.members])
        return self.members[wanted.argmax(axis=0), image]


@dataclass(frozen=True)
class EnsembleTime(InfoRecord):
    """Microseconds of each member's run of a batch; ``one_gpu`` is all of them, ``own_gpus`` the longest: what as many
    GPUs would take at least, without the votes' way between them. ``label`` says that this is simulated."""

    network: str
    members: tuple[float, ...]
    one_gpu: float
    own_gpus: float
    label: str

    def title(self) -> str:
        """Members and label."""
        return f"{len(self.members)} x {self.network}; {self.label}"

    def table(self) -> Table:
        """One row for each number of GPUs."""
        rows = (("1", self.one_gpu, "measured"), (str(len(self.members)), self.own_gpus, "simulated"))
        return Table(("GPUs", "us", "how"), rows)

    def text(self) -> str:
        """Title and table."""
        return f"{self.title()}\n\n{columns_text(self.table())}"


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Networks of the same layers with different ``parameters``. Raises InvalidInput for less than two."""

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
        return _counted(found, self.network.classes, "computed by the reference")

    @checked
    def run(self, images: Images, device: str = "auto", arch: str = "sm_90a") -> EnsembleResult:
        """The votes of the members' kernels, one member after another. Raises InvalidInput, MissingDependency."""
        found = [member.run(images, device).predictions for member in self._compiled(arch)]
        return _counted(found, self.network.classes, SIMULATED)

    @checked
    def time(self, protocol: TimingProtocol | None = None, device: str = "auto", arch: str = "sm_90a") -> EnsembleTime:
        """Each member timed on one GPU, every layer compared first. Raises what :meth:`CompiledNetwork.time` does."""
        times = [member.time(protocol, device).microseconds for member in self._compiled(arch)]
        return EnsembleTime(self.network.name, tuple(times), sum(times), max(times), SIMULATED)

    def _compiled(self, arch: str) -> list[CompiledNetwork]:
        return [self.network.compile(arch, parameters=one) for one in self.parameters]


@dataclass(frozen=True, eq=False)
class TrainedEnsemble:
    """An ensemble whose members were each trained on images drawn with replacement. ``accuracies`` of the members and
    ``accuracy`` of their votes are those of the integers on the test split; ``differing`` votes are others in floating
    point."""

    ensemble: Ensemble
    accuracies: tuple[float, ...]
    accuracy: float
    differing: int
    images: int

    @property
    def summary(self) -> dict[str, object]:
        """All but the arrays."""
        return {"network": self.ensemble.network.stem, "members": len(self.accuracies), "accuracies": self.accuracies,
                "accuracy": self.accuracy, "differing": self.differing, "test_images": self.images,
                "label": SIMULATED}  # fmt: skip

    def text(self) -> str:
        """In three lines, for a terminal."""
        each = ", ".join(f"{one:.1%}" for one in self.accuracies)
        return (
            f"{len(self.accuracies)} x {self.ensemble.network.stem}, each alone: {each}\n"
            f"their votes {round(self.accuracy * self.images)} of {self.images} test images as they should be: "
            f"{self.accuracy:.1%}; {self.differing} differ from those in floating point\n{SIMULATED}"
        )


@checked
def train_ensemble(
    data: str, precision: str = "w1a1", members: int = 3, *, epochs: int | None = None, seed: int = 0,
    widths: tuple[int, ...] | None = None, report: Callable[[int, int], None] | None = None,
) -> TrainedEnsemble:  # fmt: skip
    """Train ``members`` networks, each as :func:`~subbyte.networks.training.train` does with ``bagged``, seeds from
    ``seed`` on, and let them vote. Raises what that raises, and InvalidInput for less than two members."""
    from subbyte.networks.training import train

    count = whole(members, "members", 2, 64)
    found = [train(data, precision, epochs=epochs, seed=seed + one, widths=widths, bagged=True, report=report)
             for one in range(count)]  # fmt: skip
    first = found[0]
    votes, reals = (
        _counted(each, first.network.classes, "").predictions
        for each in ([one.predictions for one in found], [one.float_predictions for one in found])
    )
    accuracy = float((votes == first.labels).mean())
    ensemble = Ensemble(first.network, tuple(one.parameters for one in found))
    differing = int(np.count_nonzero(votes != reals))
    return TrainedEnsemble(ensemble, tuple(one.accuracy for one in found), accuracy, differing, first.images)


def random_ensemble(network: Network, members: int, seed: int = 0) -> Ensemble:
    """Made-up members: for speed only. Raises InvalidInput."""
    count = whole(members, "members", 2)
    return Ensemble(network, tuple(network.random_parameters(seed + member) for member in range(count)))


def _counted(members: Sequence[NDArray[np.int64]], classes: int, label: str) -> EnsembleResult:
    found = np.stack(members)
    votes = np.stack([(found == one).sum(axis=0) for one in range(classes)], axis=1)
    return EnsembleResult(votes.astype(np.int64), found, label)
