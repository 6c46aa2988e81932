"""The live tuning curve."""

from subbyte_widgets.live_curve.view import LiveCurve

__all__ = ["LiveCurve"]
