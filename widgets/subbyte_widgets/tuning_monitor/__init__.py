"""The tuning monitor."""

from subbyte_widgets.tuning_monitor.view import TuningMonitor

__all__ = ["TuningMonitor"]
