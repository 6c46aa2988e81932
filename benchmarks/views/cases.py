"""What the latency benchmark shows: each view with the largest record that is sensible for it, and its keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A view, how to make it, and how to step through it.

    ``setup`` makes the record and ``show`` ends with the view; ``root`` is the element that is repainted, ``drawn``
    exists once it is; ``begin`` is pressed once, ``keys`` again and again, each must change something. ``follow`` names
    the traits through which a second view, made by ``again``, follows the first.
    """

    name: str
    size: str
    setup: str
    show: str
    root: str
    drawn: str
    focus: str
    keys: tuple[str, ...]
    begin: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()
    again: str = ""
    control: str = "key"

    def cells(self) -> list[str]:
        """The notebook's cells: record, view, follower."""
        links = [f"ipywidgets.link((view, {name!r}), (other, {name!r}));" for name in self.follow]
        again = self.again or self.show.removesuffix("\nview").replace("view = ", "other = ", 1)
        return [f"import ipywidgets, subbyte\n{self.setup}", self.show, "\n".join([again, *links, "other"])]


BACK_AND_FORTH = ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft")
CASES = [
    Case(
        "bit product", "two times 8 bits, 9 taps of 512 channels",
        "from subbyte_widgets import BitProduct",
        "view = BitProduct('n8h7w7c512k512r3s3p1:w8a8')\nview",
        ".sb-bits", ".sb-bits-svg", ".sb-bits .stage", BACK_AND_FORTH, ("Home", "ArrowRight"), ("step",),
    ),
    Case(
        "plane composition", "4 planes, 32 outputs",
        "from subbyte_widgets import PlaneComposition",
        "view = PlaneComposition('resnet50.stage3@8:w1a4')\nview",
        ".sb-planes", ".sb-planes-svg", ".sb-planes .stage", BACK_AND_FORTH, ("Home", "ArrowRight"), ("step",),
    ),
    Case(
        "tile strides", "8 leading dimensions",
        "from subbyte_widgets import TileStrides",
        "view = TileStrides()\nview",
        ".sb-strides", ".sb-strides-svg", ".sb-strides-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "threshold folding", "101 gammas of 4 bits",
        "from subbyte_widgets import ThresholdFolding\ngammas = [i / 20 for i in range(-50, 51)]",
        "view = ThresholdFolding('resnet50.stage2@8:w1a4', gammas)\nview",
        ".sb-folding", ".sb-folding-svg", ".sb-folding-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "network timeline", "19 layers",
        "from subbyte_widgets import NetworkTimeline",
        "view = NetworkTimeline('tcbnn.resnet18@8')\nview",
        ".sb-timeline", ".sb-timeline-svg", ".sb-timeline-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "bitmap stepper", "a tile of 32 x 32 x 16, 128 OHMMA, beside the toy",
        "from subbyte_widgets import BitmapStepper",
        "view = BitmapStepper(variant='32 x 32 x 16')\nview",
        ".sb-bitmap", ".sb-bitmap-svg", ".sb-bitmap .stage", BACK_AND_FORTH, ("Home", "ArrowRight"), ("step",),
    ),
    Case(
        "sparse im2col", "7 x 7 offsets, rows of 24 pixels",
        "from subbyte import sparse\nfrom subbyte_widgets import SparseIm2col\n"
        "rows = [sparse.row_lowering(f'n1h24w24c4k8r7s7p3u{stride}') for stride in (1, 2)]",
        "view = SparseIm2col(rows)\nview",
        ".sb-im2col", ".sb-im2col-svg", ".sb-im2col .stage", BACK_AND_FORTH, ("Home", "ArrowRight"), ("step",),
    ),
    Case(
        "speed surface", "20 x 20 densities, 4 bases, 9 layers",
        "from subbyte import sparse\nfrom subbyte_widgets import SpeedSurface\n"
        "record = sparse.speed_map('gemm256', 'alexnet@1')",
        "view = SpeedSurface(record)\nview",
        ".sb-surface", ".sb-surface-svg", ".sb-surface-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "layer bars", "8 layers, 2 bases",
        "from subbyte_widgets import LayerBars",
        "view = LayerBars('alexnet@1')\nview",
        ".sb-bars", ".sb-bars-svg", ".sb-bars-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "chart choice", "4 charts of 4 layers",
        "import subbyte\nfrom subbyte import analysis\nfrom subbyte_widgets import ChartChoice, plot\n"
        "specs = [subbyte.workload(f'resnet50.stage{n}@8').spec for n in (2, 3, 4, 5)]\n"
        "found = [analysis.recorded_ablation(spec, 'NVIDIA H200') for spec in specs]\n"
        "charts = {n: plot(found, kind=n) for n in ('accumulated', 'marginal', 'shapley', 'sharing')}",
        "view = ChartChoice(charts)\nview",
        ".sb-charts", ".sb-charts-svg", ".sb-charts-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "layer origin", "a floor and three sources",
        "from subbyte_widgets import LayerOrigin",
        "view = LayerOrigin('resnet50.stage2@8')\nview",
        ".sb-origin", ".sb-origin-svg", ".sb-origin-svg .panel", BACK_AND_FORTH, ("Home",), ("chosen",),
    ),
    Case(
        "tiling", "512 x 576 map, 8 warps",
        "from subbyte import MmaConfig\nfrom subbyte.technique.tiling import tiling\n"
        "from subbyte_widgets import ConvolutionTiling\n"
        "tiled = tiling('n8h512w576c128k128r3s3p1', MmaConfig(4, 2, 16, 2, chunk=2))",
        "view = ConvolutionTiling(tiled, tile=60)\nview",
        ".sb-tiling", ".sb-tiling-svg", ".sb-tiling-svg .panel.out",
        ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"), follow=("tile",),
    ),
    Case(
        "duplicate map", "8 x 11 tile, 792 entries",
        "from subbyte_widgets import DuplicateMap\nentries = subbyte.duplicates('n8h56w56c64k64r3s3p1', (8, 11))",
        "view = DuplicateMap(entries, selected=500)\nview",
        ".sb-map", ".sb-map-svg", ".sb-map-svg .panel.lowered",
        ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"), follow=("selected",),
    ),
    Case(
        "load stepper", "8 pixels, 4 column tiles, 3 ways",
        "from dataclasses import replace\nfrom subbyte.technique.load_steps import load_steps\n"
        "from subbyte_widgets import LoadStepper\nfrom subbyte_widgets.load_stepper.view import SMALL, WAYS\n"
        "small = replace(SMALL, warp_row_tiles=8)\n"
        "loads = [load_steps('n8h28w28c32k64r3s3p1', replace(small, duplicate_aware=way)) for way in WAYS]",
        "view = LoadStepper(loads)\nview",
        ".sb-load", ".sb-load-svg", ".sb-load .stage", BACK_AND_FORTH, ("Home", "PageDown"), ("step",),
    ),
    Case(
        "packing stepper", "32 lanes x 64 sums of 4 bits",
        "from subbyte_widgets import PackingStepper",
        "view = PackingStepper(scheme='width8', follow=77)\nview",
        ".sb-pack", ".sb-pack-svg", ".sb-pack .stage", BACK_AND_FORTH, ("Home", "ArrowRight"), ("step",),
    ),
    Case(
        "layout view", "32 lanes, 3 layouts, 8 accesses",
        "from subbyte_widgets import LayoutView\nLayoutView('resnet50.stage2@8').close()",
        "view = LayoutView('resnet50.stage2@8')\nview",
        ".sb-access", ".sb-access-svg", ".sb-access-svg .panel", BACK_AND_FORTH, ("Home",), ("lane",),
    ),
    Case(
        "layout order", "32 lanes, 2 layouts",
        "from subbyte_widgets import LayoutOrder\nLayoutOrder().close()",
        "view = LayoutOrder(datum=20)\nview",
        ".sb-order", ".sb-order-svg", ".sb-order .stage", BACK_AND_FORTH, ("Home",), ("step",),
    ),
    Case(
        "fragment explorer", "m16n8k256.b1, every instruction",
        "from subbyte_widgets import FragmentExplorer\nFragmentExplorer().close()",
        "view = FragmentExplorer('m16n8k256.b1')\nview",
        ".sb-frag", ".sb-frag-svg", ".sb-frag-svg .panel.a", BACK_AND_FORTH, ("Home",), ("column",),
    ),
    Case(
        "kernel reader", "four texts of two kernels",
        "from subbyte_widgets import KernelReader\nfirst = subbyte.build('resnet50.stage2@8')\n"
        "second = subbyte.build('resnet50.stage2@8', first.config.with_values({'register_packing': False}))",
        "view = KernelReader(first, second)\nview",
        ".sb-reader", ".sb-reader .row", ".sb-reader .pane", ("ArrowDown", "PageDown", "ArrowUp", "PageUp"),
        ("Home",), ("line",),
    ),
    Case(
        "space explorer", "10,000 configurations",
        "import random\nfrom subbyte.records.result import Measured\nfrom subbyte import space\n"
        "from subbyte.records.landscape import Landscape\nfrom subbyte_widgets import SpaceExplorer\n"
        "known = space('n8h14w14c256k256r3s3p1', 'sm_90a', kind='extended')\ndraw = random.Random(0)\n"
        "chosen = draw.sample(range(len(known)), 10_000)\n"
        "times = {i: Measured(5 + 40 * draw.random() ** 2) for i in chosen}\n"
        "points = Landscape.from_results(known, times, {'name': 'none'})",
        "view = SpaceExplorer(points)\nview",
        ".sb-space", ".sb-space td", ".sb-space .lines", ("ArrowUp", "PageUp", "ArrowDown", "PageDown"),
        ("Home",), ("selected",),
    ),
    Case(
        "tuning monitor", "4 studies of 500 trials",
        "from subbyte.measure.replay import ReplayRunner\nfrom subbyte import space\n"
        "from subbyte.tune.study import Study\nfrom subbyte_widgets import TuningMonitor\n"
        "where = space('resnet50.stage5@8', 'sm_90a')\nstudies = [Study(where, 'random', seed=s) for s in range(4)]\n"
        "for study in studies:\n    study.run(ReplayRunner('resnet50.stage5@8'), trials=500)",
        "view = TuningMonitor(studies)\nview",
        ".sb-monitor", ".sb-monitor-svg", ".sb-monitor .stage", BACK_AND_FORTH, ("Home",), ("selected",),
    ),
    Case(
        "live curve", "1,000 trials",
        "from subbyte.measure.replay import ReplayRunner\nfrom subbyte import space\n"
        "from subbyte.tune.study import Study\nfrom subbyte_widgets import LiveCurve\n"
        "where = space('resnet50.stage5@8', 'sm_90a')\n"
        "one = Study(where, 'random', seed=1).run(ReplayRunner('resnet50.stage5@8'), trials=1000)",
        "view = LiveCurve(one)\nview",
        ".sb-curve", ".sb-curve-svg", ".sb-curve .stage", BACK_AND_FORTH, ("Home",), ("selected",),
    ),
    Case(
        "store path", "128 bytes in 5 places",
        "from subbyte_widgets import StorePath",
        "view = StorePath(1)\nview",
        ".sb-stores", ".sb-stores-svg", ".sb-stores .stage", BACK_AND_FORTH, ("Home",), ("step",),
    ),
    Case(
        "tap windows", "49 taps of a 7 x 7 kernel",
        "from subbyte_widgets import TapWindows\n"
        "taps = subbyte.technique.tap_addresses('resnet50.conv1@8', output_row=2)",
        "view = TapWindows(taps)\nview",
        ".sb-taps", ".sb-taps-svg", ".sb-taps .stage", BACK_AND_FORTH, ("Home",), ("tap",),
    ),
    Case(
        "duplicate explorer", "4 x 12 tile, 432 entries with numbers",
        "from subbyte_widgets import DuplicateExplorer",
        "view = DuplicateExplorer('n8h56w56c64k64r3s3p1', (4, 12))\nview",
        ".sb-map", ".sb-map-svg", ".widget-slider:has-text('tile width') .noUi-handle",
        ("ArrowRight", "ArrowLeft"), control="slider",
    ),
    Case(
        "speed of light", "every recorded layer",
        "from subbyte_widgets import SpeedOfLight\nSpeedOfLight().close()",
        "view = SpeedOfLight()\nview",
        ".sb-speed", ".sb-speed svg", ".sb-speed .stage", ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"),
        ("Home", "ArrowDown"), ("item",),
    ),
    Case(
        "layout explorer", "32 lanes, 3 layouts, 8 accesses",
        "from subbyte_widgets import LayoutExplorer",
        "view = LayoutExplorer('resnet50.stage2@8', block=30, kind='activation load')\nview",
        ".sb-access", ".sb-access-svg", ".widget-slider:has-text('block') .noUi-handle",
        BACK_AND_FORTH, control="slider",
    ),
]  # fmt: skip
SIX = ("tiling", "duplicate map", "load stepper", "packing stepper", "layout view", "fragment explorer")
"""The views of the notebook with six: those a lesson on one layer shows together."""
