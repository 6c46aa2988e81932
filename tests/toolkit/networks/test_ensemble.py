"""Networks that vote."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from subbyte.errors import InvalidInput
from subbyte.networks import (
    Ensemble,
    EnsembleResult,
    Network,
    NetworkResult,
    Parameters,
    network,
    perceptron,
    train_ensemble,
)
from subbyte.networks.ensemble import SIMULATED, EnsembleTime, random_ensemble


def test_the_majority_decides_and_of_equals_the_first_member() -> None:
    members = np.array([[1, 1, 3], [2, 0, 3], [2, 2, 1]])
    votes = np.stack([(members == one).sum(axis=0) for one in range(4)], axis=1)
    assert EnsembleResult(votes, members, "").predictions.tolist() == [2, 1, 3]


def test_members_vote_as_each_of_them_predicts() -> None:
    found = perceptron("digits", "w1a1", widths=(24,))
    ensemble = random_ensemble(found, 3)
    images = found.random_images()
    result = ensemble.reference(images)
    for one, given in zip(result.members, ensemble.parameters, strict=True):
        np.testing.assert_array_equal(one, found.reference(images, given).predictions)
    assert result.votes.sum(axis=1).tolist() == [3] * 8
    with pytest.raises(InvalidInput, match="an ensemble of 1 networks"):
        Ensemble(found, ensemble.parameters[:1])
    with pytest.raises(InvalidInput, match="weights"):
        Ensemble(network("tcbnn.mlp"), ensemble.parameters)


def test_a_trained_ensemble_decides_as_in_floating_point() -> None:
    found = train_ensemble("digits", "w1a1", 3, epochs=3, widths=(48,))
    assert found.differing == 0
    assert found.accuracy > max(min(found.accuracies), 0.8)
    assert "0 differ from those in floating point; computed by the reference" in found.text()
    labels = {one.label for one in found.ensemble.parameters}
    assert len(labels) == 3


class Member:
    """In the place of a compiled network: what the reference says."""

    def __init__(self, found: Network, parameters: Parameters) -> None:
        self._found, self._parameters = found, parameters

    def run(self, images: NDArray[np.uint8], device: str) -> NetworkResult:
        assert device == "emulator"
        return self._found.reference(images, self._parameters)


def test_members_run_one_after_another_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    found = perceptron("digits", "w1a1", widths=(24,))
    ensemble = random_ensemble(found, 3)
    members = [Member(found, one) for one in ensemble.parameters]
    monkeypatch.setattr(Ensemble, "_compiled", lambda self, arch: members)
    result = ensemble.run(found.random_images(), "emulator")
    np.testing.assert_array_equal(result.votes, ensemble.reference(found.random_images()).votes)
    assert result.label == SIMULATED


def test_times_say_what_is_simulated() -> None:
    record = EnsembleTime("tcbnn.mlp@8", (2.0, 3.0), ("A GPU",), 5.0, 5.0, 9.0, 3.0, SIMULATED)
    assert [row[2] for row in record.table().rows] == ["measured", "measured", "simulated"]
    assert "simulated" in record.text()
