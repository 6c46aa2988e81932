"""The duplicate map."""

from subbyte_widgets.duplicate_map.explorer import DuplicateExplorer
from subbyte_widgets.duplicate_map.view import DuplicateMap

__all__ = ["DuplicateExplorer", "DuplicateMap"]
