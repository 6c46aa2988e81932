"""The convolution and its tiling."""

from subbyte_widgets.convolution_tiling.view import ConvolutionTiling, TilingExplorer

__all__ = ["ConvolutionTiling", "TilingExplorer"]
