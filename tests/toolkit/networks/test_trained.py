"""The weights that come with the package say, bit for bit, what they said on the day of training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import subbyte
from subbyte.errors import BrokenRecord, InvalidInput, WrongResult
from subbyte.networks import CATALOGUE, network, perceptron
from subbyte.networks.trained import check_logits, facts, test_images
from subbyte.networks.weights_file import packed, unpacked

TRAINED = [name for name, entry in CATALOGUE.items() if entry.trained]


@pytest.mark.sample("digits")
@pytest.mark.parametrize("name", TRAINED)
def test_shipped_weights_give_the_recorded_logits(name: str) -> None:
    found = network(name)
    images, labels = test_images(found)
    result = found.reference(images)
    check_logits(found, result.logits)
    said = facts(found)
    assert (result.predictions == labels).mean() == said["accuracy"] >= 0.93
    assert said["differing"] == 0
    assert said["float_accuracy"] == said["accuracy"]
    assert "trained on" in result.label


def test_the_last_layer_of_a_trained_network_in_the_emulator() -> None:
    """Its inputs are those of the test images; its sums become the recorded logits."""
    found = network("digits.w1a1@359")
    images, _ = test_images(found)
    right = found.reference(images)
    kernel = subbyte.compile(found.layers[-1].workload, output="int32")
    sums = kernel.run(right.layers[-2].values, found.parameters.weights[-1], device="emulator")
    check_logits(found, found.parameters.logits.apply(sums))


def test_one_changed_weight_is_seen() -> None:
    found = network("digits.w1a1")
    images, _ = test_images(found)
    weights = [w.copy() for w in found.parameters.weights]
    weights[2][0, 0, 0, 0] *= -1
    other = replace(found.parameters, weights=tuple(weights))
    with pytest.raises(WrongResult, match="not those that were recorded"):
        check_logits(found, found.reference(images, other).logits)


def test_a_file_gives_back_what_it_was_made_of() -> None:
    for types in ("w1a1", "w2a2", "w3a1"):
        found = perceptron("digits", types, widths=(24,))
        given = found.random_parameters(1)
        content = packed(found, given, {"data": "digits"})
        assert content == packed(found, given, {"data": "digits"})
        back = unpacked(content, "here").parameters(found)
        for one, other in zip(given.weights, back.weights, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(given.thresholds[0].levels, back.thresholds[0].levels)
        np.testing.assert_array_equal(given.logits.bias, back.logits.bias)


def test_broken_files_are_refused() -> None:
    found = perceptron("digits", "w1a1", widths=(24,))
    content = packed(found, found.random_parameters(1), {})
    with pytest.raises(BrokenRecord, match="no file of trained weights"):
        unpacked(content[:-40], "here")
    with pytest.raises(BrokenRecord, match="do not fit"):
        unpacked(content, "here").parameters(perceptron("digits", "w1a1", widths=(32,)))
    with pytest.raises(InvalidInput, match="speed only"):
        test_images(network("tcbnn.mlp"))


test_images.__test__ = False  # type: ignore[attr-defined]
