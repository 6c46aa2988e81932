"""Views for notebooks: each draws a record of the toolkit and decides nothing itself."""

from subbyte_widgets.duplicate_map import DuplicateExplorer, DuplicateMap

__all__ = ["DuplicateExplorer", "DuplicateMap"]
