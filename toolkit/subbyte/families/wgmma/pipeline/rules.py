"""Rules of the kernel with a pipeline of rows; see :mod:`subbyte.families.wgmma.rules`."""

from __future__ import annotations

from subbyte.families.wgmma import halves, rules
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import WIDTHS

LANES = 32
"""Stages that a warp can release at once: one per lane."""


def half_rows(plan: WgmmaPlan) -> str | None:
    """Rules for segments that end in the middle of a row."""
    config, height, tile_rows = plan.knobs, plan.output_size[0], plan.knobs.tile_rows
    if not config.half_rows:
        return None
    if not halves.divided(height, config.segments):
        return f"divisibility: {config.segments} segments of {height} rows do not end in the middle of one (half_rows)"
    if config.consumers_rows != 2 or tile_rows * 2 != plan.segment_end(0):
        rows = plan.segment_end(0)
        return f"divisibility: half_rows needs consumers_rows 2 and tile_rows of half of a block's {rows} rows"
    if plan.row_pixels % 2 or plan.narrow_pixels not in WIDTHS or plan.workload.q % plan.width_covered:
        return f"tile: half_rows needs a tile_width that divides {plan.workload.q} columns, and half of it is a width"
    if plan.flat or plan.lowered or config.cluster_split_k > 1 or config.m_iterations > 1:
        return "stages: half_rows goes neither with 1x1 kernels, cluster_split_k, m_iterations nor duplicate_aware=none"
    if config.early_release or config.producers > 1 or config.tiles_m > 1:
        return "stages: half_rows goes neither with row_reuse=2, tiles_m nor two producers"
    cuts = {segment: plan.cut(segment) for segment in range(config.segments)}
    narrow = [plan.segment_start(i) + (0 if cut else tile_rows) for i, cut in cuts.items() if cut in (0, 1)]
    if any(plan.tap_rows_at(row, tile_rows, tap) != (0, tile_rows) for row in narrow for tap in range(plan.tap_rows)):
        return "padding: half a row too near to the edge of the image"
    return None


def flat_batch(plan: WgmmaPlan) -> str | None:
    """Rules for a flattened batch, in which the pixels of all groups of images are consecutive."""
    if not plan.knobs.flat_batch:
        return None
    if not plan.flat:
        return "tile: pixels=flat_batch needs a 1x1 kernel without padding"
    if plan.workload.h != plan.workload.stride * plan.workload.p:
        return "tile: pixels=flat_batch needs a height that the stride divides"
    if not plan.packed:
        return "tile: groups of images follow one another only in the nhwcnc layout"
    if plan.workload.batch_groups == 1:
        return "same program: one group of images; pixels=rows or flat builds the same"
    return None


def producers(plan: WgmmaPlan) -> str | None:
    """One or two warpgroups must load rows."""
    config = plan.knobs
    if config.producers > 2:
        return f"threads: {config.producers} producer warpgroups: allowed: 1, 2"
    if config.producers == 2 and config.producer_late:
        return "stages: two producers load their first rows at once (start=0 or 2)"
    if config.producer_late and plan.keep_rows and plan.most_staged * config.channel_groups <= config.consumers:
        return "same program: the consumers load every row; leave start at 0 or 2"
    if config.producers == 2 and plan.stages < config.consumers + 2:
        return f"stages: {plan.stages} stages leave one of 2 producers without a row at the start"
    return None


def start(plan: WgmmaPlan) -> str | None:
    """Rules for a lean start."""
    config = plan.knobs
    if config.lean_start and (config.cluster_split_k > 1 or config.producers > 1 or plan.lowered):
        return "stages: a lean start goes neither with cluster_split_k, two producers nor duplicate_aware=none"
    return None


def operands_apart(plan: WgmmaPlan) -> str | None:
    """Rules for unpacking each half of a fragment just before its own multiplications."""
    if plan.knobs.operands_apart and plan.operands == 1:
        return "same program: a weight fragment of one instruction has no halves; leave operands_apart at 0"
    return None


def copies_ahead(plan: WgmmaPlan) -> str | None:
    """Rules for stages that are copied ahead in shared memory."""
    config = plan.knobs
    if not config.copies_ahead:
        return None
    if config.producers > 1 or config.load_ahead > 1 or config.producer_late:
        return "stages: copies_ahead goes with one producer, load_ahead=1 and start=0 or 2"
    if plan.lowered or config.sparse or config.listed:
        return "stages: copies_ahead is for dense weights, and duplicate_aware=full"
    if plan.pads_with_code and not plan.direct:
        return "padding: copies in shared memory fill with zeros, and the zero point is another code; copies_ahead=0"
    return None


def stage_per_iteration(plan: WgmmaPlan) -> str | None:
    """Rules for stages with all rows of a tile iteration."""
    if plan.knobs.stage_per_iteration and (plan.keep_rows or plan.lowered or plan.tap_rows == 1):
        return "stages: row_reuse=3 is for kernels of several rows, and duplicate_aware=full"
    if plan.knobs.stage_per_iteration and plan.pads_with_code:
        return "padding: a zero point is a code that rows beyond the border have, each of its own (row_reuse 0, 1, 2)"
    return None


def pipeline_depth(plan: WgmmaPlan) -> str | None:
    """There must be as many stages as the schedule holds at a time, and no more than there are stages to load."""
    config = plan.knobs
    rows = plan.most_staged
    behind = config.copies_ahead - 1 if plan.direct else 0  # buffers of stages still in flight
    if plan.keep_rows:
        whole = rows * config.channel_groups
        if plan.stages > whole:
            return f"stages: {plan.stages} stages for {whole} rows and channel groups build the same program as fewer"
        least = min(plan.held_stages + behind, whole)
    elif plan.lowered:
        least = plan.window + 1
    else:
        if plan.tap_rows > 1 and plan.group_stages > LANES:  # see OwnRows._release_lane_by_lane
            return f"stages: a tile iteration of {plan.window} rows; with row_reuse=0 a warp releases {LANES}"
        early = plan.tap_rows > 1  # stages are released after the first kernel row of the next channel group
        least = plan.group_stages * (2 if config.channel_groups > 1 else 1) + (0 if early else 1) + behind
    if config.load_ahead > 2:
        return f"stages: load_ahead {config.load_ahead}: allowed: 1, 2"
    least = max(least, config.consumers + (behind + 1 if plan.direct else 0))
    if plan.stages < least:
        return f"stages: {plan.stages} stages; a tile iteration needs {least}"
    return None


RULES: tuple[rules.Rule, ...] = (
    rules.architecture, rules.operands, rules.sizes, flat_batch, producers, start, stage_per_iteration, copies_ahead,
    rules.accumulator, rules.padding, rules.width, rules.images, half_rows, rules.row_division, rules.consumers,
    rules.channel_division, operands_apart, rules.cluster, pipeline_depth, rules.shared_memory, rules.registers,
    rules.code_size, rules.index,
)  # fmt: skip
"""In the order in which they are checked."""
