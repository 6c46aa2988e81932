"""The speed of light of a layer: floors, measured times, roofline, and what each technique contributed."""

from subbyte_widgets.speed_of_light.view import SpeedOfLight

__all__ = ["SpeedOfLight"]
