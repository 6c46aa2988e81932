"""What GPUs can do."""

from typing import TYPE_CHECKING

from subbyte.device import peaks
from subbyte.device.arch import ARCHS, Arch, arch
from subbyte.device.peaks import MeasuredPeaks, measured_peaks

__all__ = ["ARCHS", "Arch", "MeasuredPeaks", "arch", "measured_peaks"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Names of earlier versions, for one minor version."""
        return peaks.former(name, __name__)
