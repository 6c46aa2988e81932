"""The layout view."""

from subbyte_widgets.layout_view.view import LayoutExplorer, LayoutView

__all__ = ["LayoutExplorer", "LayoutView"]
