"""The cost of loading a tile, by row stride."""

from subbyte_widgets.tile_strides.view import TileStrides

__all__ = ["TileStrides"]
