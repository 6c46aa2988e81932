"""The windows of the taps in shared memory."""

from subbyte_widgets.tap_windows.picture import TapWindows

__all__ = ["TapWindows"]
