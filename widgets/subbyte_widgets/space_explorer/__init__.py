"""The space explorer."""

from subbyte_widgets.space_explorer.view import SpaceExplorer

__all__ = ["SpaceExplorer"]
