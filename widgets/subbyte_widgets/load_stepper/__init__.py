"""The load stepper."""

from subbyte_widgets.load_stepper.view import LoadStepper

__all__ = ["LoadStepper"]
