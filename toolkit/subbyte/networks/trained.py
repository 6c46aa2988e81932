"""The trained weights that ship with the package, with the test images if their licence allows it."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import BrokenRecord, InvalidInput, WrongResult
from subbyte.networks.images import image_set
from subbyte.networks.parameters import Parameters
from subbyte.networks.weights_file import WeightsFile, digest, unpacked

if TYPE_CHECKING:
    from subbyte.networks.network import Network


@cache
def _file(stem: str) -> WeightsFile:
    place = resources.files("subbyte.networks").joinpath("weights", f"{stem}.npz")
    if not place.is_file():
        raise BrokenRecord(f"{stem}: its trained weights are missing from this installation; install subbyte again")
    return unpacked(place.read_bytes(), place.name)


def trained_parameters(network: Network) -> Parameters:
    """The trained parameters of a network. Raises BrokenRecord if its file is missing or damaged."""
    return _file(network.stem).parameters(network)


def facts(network: Network) -> dict[str, Any]:
    """How it was trained: data, epochs, seed, accuracy on the test split, differing predictions, digest."""
    return dict(_file(network.stem).facts)


def test_images(network: Network) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The images uint8 [N,H,W,1] that were not used in training, and their labels int64 [N].

    Raises InvalidInput for a network without trained weights, MissingDependency if the images come with a package that
    is not installed.
    """
    if not network.trained:
        raise InvalidInput(f"{network.name} is for speed only: there are no images that it classifies")
    file = _file(network.stem)
    if "images" in file.arrays:
        return file.arrays["images"].reshape(-1, *network.image), file.arrays["labels"].astype(np.int64)
    given = image_set(network.trained)
    test = file.arrays["test"].astype(np.int64)
    return given.images[test], given.labels[test]


def check_logits(network: Network, logits: NDArray[np.int64]) -> None:
    """Raise WrongResult unless these logits of the test images are, bit for bit, those computed after training."""
    if digest(logits) != facts(network)["digest"]:
        raise WrongResult(f"{network.name}: the logits of its test images are not those that were recorded")
