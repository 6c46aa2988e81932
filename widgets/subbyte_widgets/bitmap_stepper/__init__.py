"""One warp tile of the dual-side sparse Tensor Core, from the matrices to the scattered sums."""

from subbyte_widgets.bitmap_stepper.view import BitmapStepper

__all__ = ["BitmapStepper"]
