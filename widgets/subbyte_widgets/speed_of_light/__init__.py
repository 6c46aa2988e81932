"""The speed of light of a layer: floors, measured times, roofline, what each technique brought."""

from subbyte_widgets.speed_of_light.view import SpeedOfLight

__all__ = ["SpeedOfLight"]
