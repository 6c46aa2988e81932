"""The space of a workload, for any family and kind."""

from __future__ import annotations

from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, shown
from subbyte.families.base import Space
from subbyte.families.registry import families, kind_named, space_of_zeros, usual
from subbyte.families.shared.reasons import OTHER_OPERANDS
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


def space(workload: ConvWorkload | str, arch: Arch | str = "sm_90a", kind: str | None = None, **fixed: Any) -> Space:
    """The space of a workload: ``paper`` or ``extended`` (mma family), ``wgmma`` or its part ``wgmma-small``, ``bits``
    and others; default: :func:`usual_kind`. ``fixed`` sets switches (``layout="nhwc"``), or the atom of the mma family;
    by default all techniques are on.

    Raises InvalidInput for an unknown workload, architecture, kind or switch.
    """
    target = arch_named(arch) if isinstance(arch, str) else arch
    found = workload_named(workload) if isinstance(workload, str) else workload
    if not isinstance(target, Arch):
        raise InvalidInput(f"architecture {shown(arch)}: expected a name such as 'sm_90a', or an Arch")
    if not isinstance(found, ConvWorkload):
        raise InvalidInput(
            f"workload {shown(workload)}: expected a name such as 'resnet50.stage2@8', or a ConvWorkload"
        )
    today, family = kind_named(usual_kind(found, target) if kind is None else kind)
    return family.space(found, target, today, family.held(fixed))


def usual_kind(workload: ConvWorkload, arch: Arch) -> str:
    """The kind of space to search if none is named: ``paper`` or, for operands that its kernels do not
    multiply (bit planes, zeros to skip), one of the first family whose kernels compute the layer."""
    zeros = space_of_zeros(workload.precision.weights.sparsity)
    if zeros is not None:
        return zeros
    if not (usual().hopeless(workload, arch) or "").startswith(OTHER_OPERANDS):
        return usual().kind_of(workload, arch)
    able = (one for one in families().values() if not one.special and one.covers(workload, arch) is None)
    return next(able, usual()).kind_of(workload, arch)
