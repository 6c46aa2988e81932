"""The layout view."""

from subbyte_widgets.layout_view.explorer import LayoutExplorer
from subbyte_widgets.layout_view.ordered import LayoutOrder
from subbyte_widgets.layout_view.view import LayoutView

__all__ = ["LayoutExplorer", "LayoutOrder", "LayoutView"]
