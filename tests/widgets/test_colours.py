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
SIX = r"\.c\d \{ fill: (#\w{6})"
SETS: dict[str, list[str]] = {
    "bit_product/view.css": [r"\.b1 rect \{ fill: (#\w{6})"],
    "bitmap_stepper/view.css": [r"\.slot\.[itvc] \{ (?:fill|stroke): (#\w{6})"],
    "convolution_tiling/view.css": [
        r"\.mark\.(?:tile|stage|warp|now) \{ fill: (#\w{6})",
        r"\.rt\.(?:w\d|own|now) \{ fill: (#\w{6})",
    ],
    "duplicate_map/view.css": [SIX],
    "fragment_explorer/view.css": [r"rect\.k\d \{ fill: (#\w{6})"],
    "kernel_reader/view.css": [r"i\.[MCLSXB] \{ background: (#\w{6})", r"-svg \.[MCLSXB] \{ stroke: (#\w{6})"],
    "layer_bars/view.css": [r"\.(?:dense|weight|activation|dual|half) \{ fill: (#\w{6})"],
    "layer_origin/view.css": [r"\.(?:floor|own|shipped|predicted|search) \{ fill: (#\w{6})"],
    "layout_view/view.css": [r"\.c\d rect \{ fill: (#\w{6})"],
    "live_curve/view.css": [r"\.(?:dots|failed|best) \{ (?:fill|stroke): (#\w{6})"],
    "load_stepper/view.css": [r"\.bar\.b\d \{ fill: (#\w{6})"],
    "network_timeline/view.css": [r"\.(?:launch|move|multiply|bytes|residual) \{ fill: (#\w{6})"],
    "packing_stepper/view.css": [r"\.bar\.b\d \{ fill: (#\w{6})", r"\.full \{ fill: (#\w{6})"],
    "plane_composition/view.css": [r"\.(?:b\d|ones) \{ fill: (#\w{6})"],
    "space_explorer/view.css": [r"\.cell\.s[036] \{ fill: (#\w{6})|--sb-chosen: (#\w{6})"],
    "sparse_im2col/view.css": [r"\.s[abx] \{ fill: (#\w{6})"],
    "speed_of_light/view.css": [r"\.(?:f\d|bar\.ours) \{ fill: (#\w{6})"],
    "speed_surface/view.css": [r"\.h\d \{ fill: (#\w{6})", r"\.soft(?:\.k\d)? \{ stroke: (#\w{6})"],
    "stepper.css": [SIX],
    "store_path/view.css": [r"\.p\d \{ fill: (#\w{6})"],
    "tap_windows/view.css": [r"\.(?:f\d|core\.c\d|window) \{ fill: (#\w{6})"],
    "threshold_folding/view.css": [r"\.v\d \{ fill: (#\w{6})"],
    "tile_strides/view.css": [SIX],
    "tuning_monitor/view.css": [r"\.(?:dots|other|failed|reading) \{ stroke: (#\w{6})"],
    "tuning_monitor/panels.js": [r"[\[ ]\"(#\w{6})\"[,\]]"],
}
"""Of each view: what selects colours that stand for different things beside each other."""
COUNTS = {
    "bit_product/view.css": 3,
    "live_curve/view.css": 3,
    "load_stepper/view.css": 3,
    "packing_stepper/view.css": 2,
    "sparse_im2col/view.css": 3,
    "speed_surface/view.css": 3,
    "store_path/view.css": 2,
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


def found(repository: Path, source: str, pattern: str) -> list[str]:
    """The colours that a pattern selects in a file of the views."""
    text = (repository / "widgets/subbyte_widgets" / source).read_text(encoding="utf-8")
    return [colour for groups in re.finditer(pattern, text) for colour in groups.groups() if colour]


@pytest.mark.parametrize("source", SETS)
def test_colours_stay_apart(source: str, repository: Path) -> None:
    for pattern in SETS[source]:
        colours = found(repository, source, pattern)
        assert len(set(colours)) >= COUNTS.get(source, 4)
        for vision in VISIONS:
            assert smallest_distance(colours, vision) > LEAST, (vision, colours)


def test_no_view_is_left_out(repository: Path) -> None:
    """But the choice of charts, which has the colours of the charts it is given."""
    folders = {path.parent.name for path in (repository / "widgets/subbyte_widgets").glob("*/view.css")}
    assert folders - {"chart_choice"} == {source.split("/")[0] for source in SETS if "/" in source}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_ramp_of_times_goes_one_way(theme: int, vision: str, repository: Path) -> None:
    """From the fastest to the slowest, lightness alone tells which is which."""
    style = (repository / "widgets/subbyte_widgets/space_explorer/view.css").read_text(encoding="utf-8")
    ramps = re.findall(r"--sb-fast: ([\d, ]+); --sb-slow: ([\d, ]+);", style)
    fast, slow = ([int(part) for part in end.split(",")] for end in ramps[theme])
    steps = [[round(a + (b - a) * i / 7) for a, b in zip(fast, slow, strict=True)] for i in range(8)]
    light = [lab("#" + "".join(f"{part:02x}" for part in step), vision)[0] for step in steps]
    gaps = np.diff(light)
    assert all(gaps > 3) or all(gaps < -3), light


def test_colours_that_fall_together_are_refused() -> None:
    assert smallest_distance(["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b"], "protan") < LEAST
