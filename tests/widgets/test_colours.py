"""Colours that mean different things stay apart for every common kind of colour vision."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

# Machado et al. 2009, full severity, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
LEAST = 10.0
SETS = {
    "convolution_tiling": [
        r"\.mark\.(?:tile|stage|warp|now) \{ fill: (#\w{6})",
        r"\.rt\.(?:w\d|own|now) \{ fill: (#\w{6})",
    ],
    "fragment_explorer": [r"rect\.k\d \{ fill: (#\w{6})"],
    "kernel_reader": [r"i\.[MCLSXB] \{ background: (#\w{6})"],
    "layout_view": [r"\.c\d rect \{ fill: (#\w{6})"],
    "speed_of_light": [r"\.(?:f\d|bar\.ours) \{ fill: (#\w{6})"],
}


def lab(colour: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a colour as one kind of vision sees it."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(VISIONS[vision] @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def smallest_distance(colours: list[str], vision: str) -> float:
    """The two colours that lie closest."""
    return min(float(np.linalg.norm(lab(a, vision) - lab(b, vision))) for a, b in combinations(set(colours), 2))


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("view", SETS)
def test_colours_stay_apart(view: str, vision: str, repository: Path) -> None:
    style = (repository / f"widgets/subbyte_widgets/{view}/view.css").read_text(encoding="utf-8")
    for pattern in SETS[view]:
        colours = re.findall(pattern, style)
        assert len(colours) >= 4
        assert smallest_distance(colours, vision) > LEAST, colours


def test_colours_that_fall_together_are_refused() -> None:
    assert smallest_distance(["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"], "protan") < LEAST
