"""The duplicate map."""

from subbyte_widgets.duplicate_map.view import DuplicateExplorer, DuplicateMap

__all__ = ["DuplicateExplorer", "DuplicateMap"]
