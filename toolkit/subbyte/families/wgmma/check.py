"""Whether a plan of either kernel can be built, and why not: its rules, checked in order."""

from __future__ import annotations

from subbyte.device.arch import Arch
from subbyte.families.shared.reasons import first_reason
from subbyte.families.wgmma.pipeline import rules as pipeline
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import WIDTHS, accumulator, architecture, rows_listed
from subbyte.families.wgmma.single import rules as single
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.families.wgmma.skipping import BY_KIND
from subbyte.workload import ConvWorkload, ceil_div
from subbyte.workload.coverage import largest_tensor, too_large, whole_codes


def why_not(plan: WgmmaPlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    if isinstance(plan.config, SingleTileConfig):
        return first_reason((*single.RULES, single.order_of_loads), plan)
    own = BY_KIND.get(type(plan.config))  # type: ignore[arg-type]  # of another kernel there is none
    return first_reason(own.rules if own else pipeline.RULES, plan)


def hopeless(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration of the family at all can be built; None when some may. Cheap."""
    w = workload
    flat = ceil_div(w.p * w.q, 2 * max(WIDTHS)) if w.r == w.s == 1 and w.pad == 0 else w.p
    rows = flat if w.stride == 1 else min(flat, w.p)
    plan = WgmmaPlan(w, PipelineConfig(), arch)
    reason = whole_codes(w) or architecture(plan) or too_large(largest_tensor(w))
    return reason or accumulator(plan) or rows_listed(rows)
