"""The space of a workload, of any family and kind."""

from __future__ import annotations

from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, shown
from subbyte.families.base import Space
from subbyte.families.registry import kind_named
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


def space(workload: ConvWorkload | str, arch: Arch | str = "sm_90a", kind: str = "paper", **fixed: Any) -> Space:
    """The space of a workload: ``paper`` or ``extended`` (mma family), ``wgmma`` or its part ``wgmma-small``.
    ``fixed`` sets switches (``layout="nhwc"``), or the atom of the mma family; default: all techniques on.

    Raises InvalidInput for an unknown workload, architecture, kind or switch.
    """
    today, family = kind_named(kind)
    held = family.held(fixed)
    target = arch_named(arch) if isinstance(arch, str) else arch
    found = workload_named(workload) if isinstance(workload, str) else workload
    if not isinstance(target, Arch):
        raise InvalidInput(f"architecture {shown(arch)}: expected a name such as 'sm_90a', or an Arch")
    if not isinstance(found, ConvWorkload):
        raise InvalidInput(
            f"workload {shown(workload)}: expected a name such as 'resnet50.stage2@8', or a ConvWorkload"
        )
    return family.space(found, target, today, held)
