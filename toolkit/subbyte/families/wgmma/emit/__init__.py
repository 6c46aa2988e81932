"""The kernel of the warpgroup family (wgmma, sm_90a)."""

from subbyte.families.wgmma.emit.conv import warpgroup_kernel

__all__ = ["warpgroup_kernel"]
