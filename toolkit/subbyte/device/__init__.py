"""What GPUs can do."""

from subbyte.device.arch import ARCHS, Arch, arch
from subbyte.device.ceilings import Ceilings, ceilings

__all__ = ["ARCHS", "Arch", "Ceilings", "arch", "ceilings"]
