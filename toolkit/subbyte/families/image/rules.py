"""Which of these kernels can be built, and why the others cannot: one reason per rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from subbyte.device.arch import Arch
from subbyte.device.atoms import UNPACKED_LOG2
from subbyte.families.image.plan import CORE, ImagePlan
from subbyte.families.shared.reasons import first_reason
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.coverage import four_bits_alone, largest_tensor, sum_limit, too_large

WIDTHS = (8, 16, 24, *range(32, 257, 16))
"""Column counts of an instruction (PTX ISA, wgmma with .s8)."""
MOST_TAPS, MOST_STRIDE = 7, 2
MOST_FRAGMENTS = 36
"""Most weight fragments of a thread, 16 bytes each, all of them in registers from the start."""
MOST_LOADS = 8
"""Most 16-byte loads of a thread; they are unrolled."""
OVERHEAD = 12
"""Registers per thread besides sums, weights, operands and pixels in flight."""
GRID_LIMIT = 65535
"""Most blocks of a launch along y (CUDA)."""
DESCRIBED = 1 << 14
"""Limit on the distance between the halves of K, in places, that a descriptor can express."""


@cache
def hopeless(workload: ConvWorkload, arch: Arch) -> str | None:
    """Why no configuration at all can be built; None when some may."""
    w = workload
    if not arch.warpgroups:
        return f"atom: wgmma exists only on sm_90a, not on {arch.name}"
    if max(w.r, w.s) > MOST_TAPS:
        return f"not covered: {w.r}x{w.s}: kernels of one image have at most {MOST_TAPS} rows and columns"
    if w.stride > MOST_STRIDE or w.dilation > 1:
        return f"not covered: stride {w.stride}, dilation {w.dilation}: kernels of one image have stride 1 or 2"
    if w.precision.weights.group is not None:
        return f"operands: {w.precision.weights} have zeros to skip, kernels of one image multiply them"
    return four_bits_alone(w) or sum_limit(w, UNPACKED_LOG2) or too_large(largest_tensor(w))


def _layer(plan: ImagePlan) -> str | None:
    return hopeless(plan.workload, plan.arch)


def _tile(plan: ImagePlan) -> str | None:
    width = plan.config.pixels
    if width not in WIDTHS:
        return f"tile: {width} pixels are no width of an instruction: {', '.join(map(str, WIDTHS))}"
    last = (plan.workload.p - 1) * plan.pitch + plan.workload.q
    if width > max(CORE, last + 2 * CORE - 1):
        return f"tile: {width} pixels are too many for the {last} of an image"
    return None


def _division(plan: ImagePlan) -> str | None:
    config, blocks = plan.config, plan.workload.channel_blocks
    if config.cluster_split_k not in (1, 2, 4, 8):
        return f"cluster: cluster_split_k {config.cluster_split_k}: allowed: 1, 2, 4, 8"
    if blocks % config.ways:
        return f"divisibility: {config.ways} warpgroups do not divide {blocks} blocks of 32 input channels"
    if plan.halves == 1 and blocks % 2 == 0:
        return "divisibility: a part of an odd number of channel blocks would use half of each weight word"
    if config.filter_warpgroups > max(1, -(-plan.workload.k // 64)):
        return f"divisibility: {config.filter_warpgroups} warpgroups for {plan.workload.k} output channels"
    if config.warpgroups > 8:
        return f"threads: {config.threads} of a block exceed 1024"
    return None


def _in_flight(plan: ImagePlan) -> str | None:
    if plan.config.in_flight > plan.fragments:
        return f"same program: in_flight {plan.config.in_flight} of {plan.fragments} instruction groups"
    return None


def registers_needed(plan: ImagePlan) -> int:
    """Approximate registers per thread."""
    operands = 4 * plan.halves * (plan.config.in_flight + 1)
    return plan.config.pixels // 2 + 4 * plan.fragments + max(operands, 4 * plan.loads) + OVERHEAD


def _registers(plan: ImagePlan) -> str | None:
    if plan.fragments > MOST_FRAGMENTS:
        return f"registers: {plan.fragments} fragments of weights in registers exceed {MOST_FRAGMENTS}; share channels"
    if plan.loads > MOST_LOADS:
        return f"registers: {plan.loads} loads of a thread exceed {MOST_LOADS}; take fewer pixels or more warpgroups"
    allowed = min(plan.arch.registers_per_thread, plan.arch.registers_per_sm // plan.config.threads // 8 * 8)
    needed = registers_needed(plan)
    return f"registers: about {needed} of a thread needed, {allowed} allowed" if needed > allowed else None


def _shared(plan: ImagePlan) -> str | None:
    most = plan.arch.shared_per_block
    if plan.shared_bytes > most:
        return f"shared memory: {plan.shared_bytes} bytes exceed the {most} of a block on {plan.arch.name}"
    return f"tile: {plan.staged} staged places are more than a descriptor says" if plan.staged >= DESCRIBED else None


def _index(plan: ImagePlan) -> str | None:
    if plan.grid[1] > GRID_LIMIT:
        return f"index: {plan.grid[1]} blocks along y exceed {GRID_LIMIT}; split the batch"
    return too_large(max(argument.nbytes // 4 for argument in plan.launch.arguments))


RULES: tuple[Callable[[ImagePlan], str | None], ...] = (
    _layer, _tile, _division, _in_flight, _registers, _shared, _index,
)  # fmt: skip


def why_not(plan: ImagePlan) -> str | None:
    """Why this plan cannot be built ("kind: details"); None when it can."""
    return first_reason(RULES, plan)
