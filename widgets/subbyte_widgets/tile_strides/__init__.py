"""What loading a tile costs by the distance of its rows."""

from subbyte_widgets.tile_strides.view import TileStrides

__all__ = ["TileStrides"]
