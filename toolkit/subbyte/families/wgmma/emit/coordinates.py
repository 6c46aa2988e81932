"""Coordinates of a block and a thread, with which both kernels begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.script import tirx as T
from tvm.script.ir_builder import IRBuilder

from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.tirx import instructions as op
from subbyte.tirx.emit import bind, registers


def coordinates(plan: WgmmaPlan, buffers: Mapping[str, Any]) -> Block:
    """The block of a thread, from its indices in the grid."""
    config = plan.knobs
    tile, place = T.cta_id(list(plan.grid))
    thread = T.thread_id([config.threads])
    for name, value in (("tile", tile), ("place", place), ("thread", thread)):
        IRBuilder.name(name, value)
    shared = T.alloc_buffer((plan.shared_bytes // 4,), "uint32", scope="shared.dyn", align=1024)
    IRBuilder.name("shared", shared)
    warpgroup = registers("warpgroup", 1)
    op.first_lane(warpgroup[0], T.cast(thread // 128, "uint32"))
    filter_block, place, multicast_rank, unpaired = _neighbours(plan, tile, place)
    per_group = plan.x_tiles * config.segments
    alone = plan.image_groups == 1
    segment = bind("segment", place // plan.x_tiles if alone else place // plan.x_tiles % config.segments)
    first_row = bind("first_row", plan.segment_start(segment))
    end_row = bind("end_row", plan.segment_end(segment))
    first_staged, stages = _stages(plan, first_row, end_row)
    return Block(
        plan=plan,
        activations=buffers["A"],
        weights=buffers["Wt"],
        parameters=buffers.get("Prm"),
        output=buffers["Out"],
        residual=buffers.get("Res"),
        shared=shared,
        base=bind("base", T.cuda.cvta_generic_to_shared(shared.ptr_to([0]))),
        thread=thread,
        warpgroup=bind("wg", T.cast(warpgroup[0], "int32")),
        member=bind("member", thread % 128),
        lane=bind("lane", thread % 32),
        group=0 if alone else bind("group", _first_group(plan, place // per_group)),
        group_done=_groups_done(plan, place // per_group),
        first_row=first_row,
        end_row=end_row,
        cut=plan.cut(segment) if config.half_rows else 0,
        tile_x=bind("tile_x", place % plan.x_tiles),
        filter_block=bind("filter_block", filter_block),
        rank=bind("rank", tile % config.cluster_split_k),
        multicast_rank=multicast_rank,
        unpaired=unpaired,
        first_staged=first_staged,
        stage_count=stages,
    )


def _neighbours(plan: WgmmaPlan, tile: Any, place: Any) -> tuple[Any, Any, Any, Any]:
    """A block's block of output channels and place, its multicast rank, and whether it is unpaired: no neighbour shares
    its weights."""
    split, blocks = plan.knobs.cluster_split_k, plan.multicast_blocks
    if blocks == 1:
        return tile // split, place, 0, False
    rank = bind("peer", tile // split % blocks)
    if not plan.odd_places:
        return tile // (split * blocks), bind("my_place", place * blocks + rank), rank, False
    pairs = plan.places // 2
    beyond = bind("beyond", place - plan.filter_blocks * pairs)
    unpaired = bind("lonely", beyond >= 0)
    filter_block = T.Select(unpaired, beyond * 2 + rank, place // pairs)
    return (
        filter_block,
        bind("my_place", T.Select(unpaired, T.int32(plan.places - 1), place % pairs * 2 + rank)),
        rank,
        unpaired,
    )


def _first_group(plan: WgmmaPlan, place: Any) -> Any:
    """The first group of 8 images of a place: the last place begins earlier if it would have groups beyond the
    batch."""
    first, last = _times(place, plan.knobs.image_groups), plan.workload.batch_groups - plan.knobs.image_groups
    return T.min(first, last) if plan.groups_overlap else first


def _groups_done(plan: WgmmaPlan, place: Any) -> Any:
    """How many of its groups another place stores."""
    if not plan.groups_overlap:
        return 0
    return bind("group_done", _times(place, plan.knobs.image_groups) - _first_group(plan, place))


def _times(value: Any, factor: int) -> Any:
    return value if factor == 1 else value * factor


def _stages(plan: WgmmaPlan, first_row: Any, end_row: Any) -> tuple[Any, Any]:
    """First staged row of the block's segment that exists in the image, and the total number of stages."""
    config = plan.knobs
    low, high = plan.row_range
    step, taps = plan.rows.pixel_step, (plan.tap_rows - 1) * plan.rows.tap_step
    first = bind("first_staged", T.max(first_row * step, low))
    if plan.keep_rows:
        last = T.min((end_row - 1) * step + taps, high)
        return first, bind("parts", (last - first + 1) * config.channel_groups)
    iterations = (end_row - first_row + plan.rows_together - 1) // plan.rows_together * config.m_iterations
    stages = bind("parts", iterations * plan.groups * plan.group_stages)
    if any(n & (n - 1) for n in (plan.group_stages, plan.groups, config.m_iterations)):
        # If the range is known, NVVM 13.0 computes an index such as ``(turn + 2) % 3 * 16`` in 8 bits, as
        # ``16 * turn - 48 * ((turn + 2) / 3)``, and adds the 32 factored out of it to the address: it wrapped around.
        stages = op.hidden("parts_hidden", stages)
    return first, stages
