"""Writes trained weights as the content of a file; the weights that ship with the package were written by this."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import WrongResult
from subbyte.networks.images import DIGITS, ImageSet
from subbyte.networks.training import Trained
from subbyte.networks.weights_file import digest, packed

SHIPPED_IMAGES = (DIGITS,)
"""Data sets whose test images are stored with their networks: scikit-learn's digits are BSD 3-Clause, while MNIST's
licence (CC BY-SA) would apply to the file."""


def weights_content(found: Trained, given: ImageSet) -> bytes:
    """A file of trained weights, to keep or to ship with the package. Raises WrongResult if the integer network
    predicts differently."""
    if found.differing:
        raise WrongResult(f"{found.differing} predictions differ between integers and real numbers: nothing was saved")
    images, labels = given.images[given.test], given.labels[given.test]
    more: dict[str, NDArray[Any]] = {"test": given.test.astype(np.int32)}
    if given.name in SHIPPED_IMAGES:
        more |= {"images": images, "labels": labels.astype(np.uint8)}
    logits = found.network.reference(images, found.parameters).logits
    return packed(found.network, found.parameters, {**found.summary, "digest": digest(logits)}, **more)
