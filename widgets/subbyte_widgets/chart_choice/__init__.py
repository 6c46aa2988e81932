"""One of several charts, chosen by name."""

from subbyte_widgets.chart_choice.view import ChartChoice

__all__ = ["ChartChoice"]
