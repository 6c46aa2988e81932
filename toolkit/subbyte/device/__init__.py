"""What GPUs can do."""

from subbyte.device.arch import ARCHS, Arch, arch

__all__ = ["ARCHS", "Arch", "arch"]
