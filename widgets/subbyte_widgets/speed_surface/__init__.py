"""Speed-ups over the densities of both operands."""

from subbyte_widgets.speed_surface.view import SpeedSurface

__all__ = ["SpeedSurface"]
