"""Batch normalization and rounding as integer thresholds."""

from subbyte_widgets.threshold_folding.view import ThresholdFolding

__all__ = ["ThresholdFolding"]
