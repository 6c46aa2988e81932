"""The layers of a network on the dual-side sparse unit, and what was measured of software."""

from subbyte_widgets.layer_bars.view import LayerBars

__all__ = ["LayerBars"]
