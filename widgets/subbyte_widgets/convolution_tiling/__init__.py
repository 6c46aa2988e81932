"""The convolution and its tiling."""

from subbyte_widgets.convolution_tiling.explorer import TilingExplorer
from subbyte_widgets.convolution_tiling.view import ConvolutionTiling

__all__ = ["ConvolutionTiling", "TilingExplorer"]
