"""Planes as rows and columns of one instruction."""

from subbyte_widgets.plane_composition.view import PlaneComposition

__all__ = ["PlaneComposition"]
