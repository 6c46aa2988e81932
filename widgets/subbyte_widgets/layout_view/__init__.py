"""The layout view."""

from subbyte_widgets.layout_view.view import LayoutView

__all__ = ["LayoutView"]
