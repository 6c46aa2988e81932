"""The kernel laboratory."""

from subbyte_widgets.kernel_lab.view import Attempt, KernelLab

__all__ = ["Attempt", "KernelLab"]
