"""One of each view, as the tests, the measurements of pages and the screenshots show it."""

from __future__ import annotations

from typing import Any

VIEWS = {
    ".sb-tiling": "ConvolutionTiling(tiling('n8h9w9c32k32r3s3p1', SMALL, arch='sm_80'))",
    ".sb-map": "DuplicateMap(subbyte.duplicates('n8h9w9c32k32r3s3p1', (1, 4)))",
    ".sb-pack": "PackingStepper()",
    ".sb-access": "LayoutView()",
    ".sb-order": "LayoutOrder()",
    ".sb-frag": "FragmentExplorer()",
    ".sb-space": "SpaceExplorer('resnet50.stage5@8')",
    ".sb-curve": "LiveCurve(RECORD)",
    ".sb-monitor": "TuningMonitor(RECORD)",
    ".sb-reader": "KernelReader(KERNEL)",
    ".sb-load": "LoadStepper(LOADS)",
    ".sb-speed": "SpeedOfLight()",
    ".sb-taps": "TapWindows('n8h8w8c64k64r3s3p1')",
    ".sb-stores": "StorePath()",
    ".sb-bits": "BitProduct('n8h7w7c64k32r3s3p1:w1a2')",
    ".sb-planes": "PlaneComposition('n8h8w8c64k64r3s3p1:w2a2')",
    ".sb-strides": "TileStrides()",
    ".sb-folding": "ThresholdFolding('n8h7w7c64k32r3s3p1:w1a2')",
    ".sb-timeline": "NetworkTimeline('digits.w1a1@16')",
    ".sb-bitmap": "BitmapStepper(sparse.tile_steps(size='toy'))",
    ".sb-im2col": "SparseIm2col()",
    ".sb-surface": "SpeedSurface(SURFACE)",
    ".sb-bars": "LayerBars('alexnet@1')",
    ".sb-charts": "ChartChoice({one: plot(ABLATION, kind=one) for one in ('accumulated', 'shapley', 'sharing')})",
    ".sb-origin": "LayerOrigin('resnet50.stage5@8')",
}
"""How each view is made, by the class of its root element in a page."""
PANELS = {
    "tiling explorer": ("TilingExplorer()", ".sb-tiling-svg"),
    "duplicate explorer": ("DuplicateExplorer()", ".sb-map-svg"),
    "layout explorer": ("LayoutExplorer()", ".sb-access-svg"),
    "kernel explorer": ("KernelExplorer('n8h7w7c32k32r3s3p1')", ".sb-reader .pane code"),
    "kernel editor": ("KernelEditor(KERNEL)", ".sb-reader .pane code"),
    "laboratory": ("KernelLab('n8h7w7c32k32r3s3p1')", ".widget-dropdown"),
    "tuner": ("LayerTuner()", ".sb-origin-svg"),
    "workbench": ("workbench('resnet50.stage5@8', RECORD)", ".sb-tiling-svg"),
    "ablation": ("plot(ABLATION)", "[aria-hidden] .main-svg"),
    "side by side": ("analysis.side_by_sides()[-1].plot()", "[aria-hidden] .main-svg"),
}
"""Views with controls of ipywidgets, which need a kernel, and charts: what shows them, and what is waited for."""
START = """import os, psutil, subbyte
from subbyte.measure.replay import ReplayRunner
from subbyte import analysis, space, sparse
from subbyte.technique.load_steps import load_steps
from subbyte.technique.tiling import tiling
from subbyte.tune.study import Study
from subbyte_widgets import *
SMALL = subbyte.MmaConfig(blk_row_warps=2, blk_col_warps=1, warp_row_tiles=4, warp_col_tiles=2, tile_height=2)
KERNEL = subbyte.build("n8h7w7c32k32r3s3p1")
LOADS = [load_steps("n8h9w9c32k32r3s3p1", SMALL)]
RECORD = Study(space("resnet50.stage5@8", "sm_90a"), "random", seed=1).run(ReplayRunner("resnet50.stage5@8"), trials=40)
SURFACE = sparse.speed_map("gemm256", activations=(0.1, 0.3, 0.6, 1), weights=(0.1, 0.4, 1))
ABLATION = [analysis.recorded_ablation(subbyte.workload(f"resnet50.stage{n}@8").spec, "NVIDIA H200") for n in (2, 5)]
made = {}"""
"""What must be run before one of them is made."""


def sample_names() -> dict[str, Any]:
    """What :data:`START` defines."""
    found: dict[str, Any] = {}
    exec(START, found)
    return found


def sample_view(selector: str, names: dict[str, Any]) -> Any:
    """The view of this root element, made with the names of :func:`sample_names`."""
    return eval(VIEWS[selector], names)
