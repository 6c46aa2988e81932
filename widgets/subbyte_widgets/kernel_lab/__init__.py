"""The kernel lab."""

from subbyte_widgets.kernel_lab.attempt import Attempt
from subbyte_widgets.kernel_lab.view import KernelLab

__all__ = ["Attempt", "KernelLab"]
