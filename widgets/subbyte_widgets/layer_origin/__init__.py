"""Where a layer's kernel comes from, and a search that improves what is known about it."""

from subbyte_widgets.layer_origin.tuner import LayerTuner
from subbyte_widgets.layer_origin.view import LayerOrigin

__all__ = ["LayerOrigin", "LayerTuner"]
