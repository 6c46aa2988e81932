"""Which convolutions kernels cover: the single answer used by ``workloads``, ``build``, ``compile`` and ``tune``."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.families.registry import asked_families
from subbyte.families.shared.reasons import OTHER_OPERANDS
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named


@checked
def covered(workload: ConvWorkload | str, arch: Arch | str = "sm_90a", family: str = "auto") -> str | None:
    """Why no kernel of a family (``auto``: of any) covers the workload on an architecture; None when one does.

    Oversized workloads and features that a family lacks are rejected at once. Raises InvalidInput for an unknown
    workload, architecture or family.
    """
    found, target = workload_named(workload), arch_named(arch) if isinstance(arch, str) else arch
    reasons: dict[str, list[str]] = {}
    asked = asked_families(family)
    for one in asked:
        reason = one.covers(found, target)
        if reason is None:
            return None
        if not one.special or len(asked) == 1:
            reasons.setdefault(reason, []).append(one.name)
    if len(asked) == 1:
        return next(iter(reasons))
    # families for other operands are not quoted if one for these operands gives a reason
    reasons = {reason: names for reason, names in reasons.items() if not reason.startswith(OTHER_OPERANDS)} or reasons
    return "; ".join(
        f"{reason} (the {' and '.join(names)} famil{'y' if len(names) == 1 else 'ies'})"
        for reason, names in reasons.items()
    )
