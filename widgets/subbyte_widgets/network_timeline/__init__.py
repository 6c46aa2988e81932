"""The layers of a network in the order in which they run."""

from subbyte_widgets.network_timeline.view import NetworkTimeline

__all__ = ["NetworkTimeline"]
