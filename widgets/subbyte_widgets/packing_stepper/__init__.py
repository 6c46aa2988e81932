"""The packing stepper."""

from subbyte_widgets.packing_stepper.view import PackingStepper

__all__ = ["PackingStepper"]
