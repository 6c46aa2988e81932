"""ReLU maps of photographs: real pixels passed through random filters. The photographs are those in scikit-learn's
wheel."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, MissingDependency

PICTURES = ("china.jpg", "flower.jpg")
DEPTHS = (1, 2, 3)
_WIDTHS = (32, 32, 64)
_SHIFT = 0.3
"""Subtracted after the normalization, in standard deviations: 0.3 leaves 0.23 to 0.33 of the values above zero."""


@cache
def feature_maps(picture: int, depth: int) -> NDArray[np.float32]:
    """Values before the ReLU of layer ``depth`` [H, W, channels]: zero-mean 3x3 filters, normalized by channel.

    Raises MissingDependency without scikit-learn and Pillow.
    """
    rng = np.random.default_rng(8)
    x = _pictures()[picture][::2, ::2].astype(np.float32) / 255
    y = x
    for number, width in enumerate(_WIDTHS[:depth]):
        filters = rng.normal(0, 1, (3, 3, x.shape[-1], width)).astype(np.float32)
        filters -= filters.mean((0, 1, 2))
        h, w = x.shape[0] - 2, x.shape[1] - 2
        y = np.zeros((h, w, width), np.float32)
        for r, c in np.ndindex(3, 3):
            y += x[r : r + h, c : c + w] @ filters[r, c]
        y = (y - y.mean((0, 1))) / y.std((0, 1)) - np.float32(_SHIFT)
        x = np.maximum(y, 0)
        if number < depth - 1:
            x = x[:-1:2, :-1:2]
    return np.asarray(y, np.float32)


def relu_mask(image: int, channels: int, height: int, width: int, seed: int) -> NDArray[np.bool_]:
    """A mask [C, H, W]: the map nearest in size, cropped or extended by mirroring, mixed into this many channels."""
    depth = 1 if max(height, width) > 150 else 2 if max(height, width) > 70 else 3
    maps = feature_maps(image % 2, depth)
    rng = np.random.default_rng((seed, image, channels))
    reach = [max(1, size - wanted + 1) for size, wanted in zip(maps.shape, (height, width), strict=False)]
    top, left = (int(rng.integers(0, size)) for size in reach)
    part = maps[top : top + height, left : left + width]
    part = np.pad(part, ((0, height - part.shape[0]), (0, width - part.shape[1]), (0, 0)), mode="symmetric")
    mix = np.random.default_rng((seed, channels)).normal(0, 1, (maps.shape[2], channels)).astype(np.float32)
    mixed = np.maximum(part, 0).reshape(-1, maps.shape[2]) @ mix
    whole = np.maximum(maps[::4, ::4], 0).reshape(-1, maps.shape[2]) @ mix
    mask = mixed > whole.mean(0) + np.float32(_SHIFT) * whole.std(0)
    return np.ascontiguousarray(mask.T).reshape(channels, height, width)


@cache
def _pictures() -> tuple[NDArray[np.uint8], ...]:
    # Read directly as files: importing scikit-learn itself takes seconds.
    spec = find_spec("sklearn")
    folder = Path(spec.origin).parent / "datasets" / "images" if spec is not None and spec.origin else Path("missing")
    try:
        from PIL import Image

        return tuple(np.asarray(Image.open(folder / name)) for name in PICTURES)
    except (ImportError, OSError):
        raise MissingDependency(
            "photographs come from scikit-learn (pip install scikit-learn pillow); without it take a density such as "
            "0.45, a generator such as runs:0.45, or your own .npz"
        ) from None


def profile(depth: int, picture: int) -> NDArray[np.bool_]:
    """The ReLU mask [H, W, C] of one layer of one photograph. Raises InvalidInput for a depth other than 1 to 3."""
    if depth not in DEPTHS:
        raise InvalidInput(f"depth {depth}: expected 1, 2 or 3")
    return np.asarray(feature_maps(picture, depth) > 0)
