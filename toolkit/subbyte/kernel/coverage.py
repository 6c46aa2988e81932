"""Which convolutions kernels cover: the one answer that ``workloads``, ``build``, ``compile`` and ``tune`` give."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.registry import asked_families
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


@checked
def covered(workload: ConvWorkload | str, arch: Arch | str = "sm_90a", family: str = "auto") -> str | None:
    """Why no kernel of a family (``auto``: of any) covers the workload on an architecture; None when one does.

    Sizes beyond reason, and what a family lacks, are answered at once. Raises InvalidInput for an unknown workload,
    architecture or family.
    """
    found, target = workload_named(workload), arch_named(arch) if isinstance(arch, str) else arch
    reasons = []
    asked = asked_families(family)
    for one in asked:
        reason = one.covers(found, target)
        if reason is None:
            return None
        reasons.append(reason if len(asked) == 1 else f"{reason} (the {one.name} family)")
    return "; ".join(reasons)
