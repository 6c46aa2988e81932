"""The path of a byte from the sums to packed words."""

from subbyte_widgets.store_path.view import StorePath

__all__ = ["StorePath"]
