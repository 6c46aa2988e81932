"""The windows of the taps in shared memory."""

from subbyte_widgets.tap_windows.view import TapWindows

__all__ = ["TapWindows"]
