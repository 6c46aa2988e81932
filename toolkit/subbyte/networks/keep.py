"""Trained weights as the content of a file: those that come with the package are written by this."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import WrongResult
from subbyte.networks.images import DIGITS, ImageSet
from subbyte.networks.training import Trained
from subbyte.networks.weights_file import digest, packed

SHIPPED_IMAGES = (DIGITS,)
"""Data sets whose test images are in the files of their networks: scikit-learn gives its digits away (BSD 3-Clause),
MNIST is under a licence that asks for itself (CC BY-SA)."""


def weights_content(found: Trained, given: ImageSet) -> bytes:
    """A file of trained weights, to come with the package or to keep. Raises WrongResult where the integers decide
    differently."""
    if found.differing:
        raise WrongResult(f"{found.differing} predictions differ between integers and real numbers: nothing is kept")
    images, labels = given.images[given.test], given.labels[given.test]
    more: dict[str, NDArray[Any]] = {"test": given.test.astype(np.int32)}
    if given.name in SHIPPED_IMAGES:
        more |= {"images": images, "labels": labels.astype(np.uint8)}
    logits = found.network.reference(images, found.parameters).logits
    return packed(found.network, found.parameters, {**found.summary, "digest": digest(logits)}, **more)
