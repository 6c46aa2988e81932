"""The fragment explorer."""

from subbyte_widgets.fragment_explorer.view import FragmentExplorer

__all__ = ["FragmentExplorer"]
