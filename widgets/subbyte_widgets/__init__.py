"""Views for notebooks: each draws a record of the toolkit and decides nothing itself."""

from subbyte_widgets._selection import Choice, Selection
from subbyte_widgets.bit_product import BitProduct
from subbyte_widgets.bitmap_stepper import BitmapStepper
from subbyte_widgets.chart_choice import ChartChoice
from subbyte_widgets.charts import plot
from subbyte_widgets.convolution_tiling import ConvolutionTiling, TilingExplorer
from subbyte_widgets.duplicate_map import DuplicateExplorer, DuplicateMap
from subbyte_widgets.fragment_explorer import FragmentExplorer
from subbyte_widgets.kernel_lab import KernelLab
from subbyte_widgets.kernel_reader import KernelEditor, KernelExplorer, KernelReader
from subbyte_widgets.layer_bars import LayerBars
from subbyte_widgets.layer_origin import LayerOrigin, LayerTuner
from subbyte_widgets.layout_view import LayoutExplorer, LayoutOrder, LayoutView
from subbyte_widgets.live_curve import LiveCurve
from subbyte_widgets.load_stepper import LoadStepper
from subbyte_widgets.network_timeline import NetworkTimeline
from subbyte_widgets.packing_stepper import PackingStepper
from subbyte_widgets.plane_composition import PlaneComposition
from subbyte_widgets.space_explorer import SpaceExplorer
from subbyte_widgets.sparse_im2col import SparseIm2col
from subbyte_widgets.speed_of_light import SpeedOfLight
from subbyte_widgets.speed_surface import SpeedSurface
from subbyte_widgets.store_path import StorePath
from subbyte_widgets.tap_windows import TapWindows
from subbyte_widgets.threshold_folding import ThresholdFolding
from subbyte_widgets.tile_strides import TileStrides
from subbyte_widgets.tuning_monitor import TuningMonitor
from subbyte_widgets.workbench_view import Workbench, workbench

__all__ = [
    "BitProduct",
    "BitmapStepper",
    "ChartChoice",
    "Choice",
    "ConvolutionTiling",
    "DuplicateExplorer",
    "DuplicateMap",
    "FragmentExplorer",
    "KernelEditor",
    "KernelExplorer",
    "KernelLab",
    "KernelReader",
    "LayerBars",
    "LayerOrigin",
    "LayerTuner",
    "LayoutExplorer",
    "LayoutOrder",
    "LayoutView",
    "LiveCurve",
    "LoadStepper",
    "NetworkTimeline",
    "PackingStepper",
    "PlaneComposition",
    "Selection",
    "SpaceExplorer",
    "SparseIm2col",
    "SpeedOfLight",
    "SpeedSurface",
    "StorePath",
    "TapWindows",
    "ThresholdFolding",
    "TileStrides",
    "TilingExplorer",
    "TuningMonitor",
    "Workbench",
    "plot",
    "workbench",
]
