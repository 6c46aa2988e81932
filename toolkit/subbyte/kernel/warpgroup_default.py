"""Which configuration of the warpgroup family to take when none was measured: the best of a small list, by estimate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from subbyte.device.arch import Arch
from subbyte.schedule.warpgroup import WarpgroupConfig
from subbyte.schedule.warpgroup_plan import WarpgroupPlan
from subbyte.space.warpgroup import warpgroup_values
from subbyte.space.warpgroup_constraints import why_not_warpgroup
from subbyte.workload import ConvWorkload, ceil_div

MULTIPROCESSORS = 132
BYTES_PER_CYCLE = 2400.0
"""Memory bandwidth of the whole GPU (H200, measured copy rate over clock)."""
FRAGMENT_CYCLES = 140.0
"""Least cycles from one weight fragment to the next in a lone warpgroup: unpacking, addresses, fences."""
CACHE_BYTES = 28.0
"""Bytes per cycle that a multiprocessor gets from the L2 while all of them ask."""
EPILOGUE_CYCLES = 10.0
"""Cycles of an epilogue for each accumulator register of a thread."""
TENSOR_SHARE = 0.92
"""Share of the Tensor Core peak that two warpgroups reach together between epilogues."""
PROLOGUE_CYCLES, CLUSTER_CYCLES, PEER_BYTES = 1900.0, 700.0, 20.0
"""Cycles before the first multiplication; cycles of an exchange of partial sums, and its bytes per cycle."""
CLUSTER_MULTIPROCESSORS = 112
"""Multiprocessors that clusters of more than two blocks find room on."""


def warpgroup_candidates(workload: ConvWorkload, arch: Arch) -> list[WarpgroupConfig]:
    """Configurations that can be built, the one with the fewest :func:`estimated_cycles` first."""
    plans = (WarpgroupPlan(workload, config, arch) for config in _listed(workload, arch))
    found = [plan for plan in plans if why_not_warpgroup(plan) is None]
    return [plan.config for plan in sorted(found, key=estimated_cycles)]


def estimated_cycles(plan: WarpgroupPlan) -> float:
    """A rough count of cycles, with constants measured on stages 2 to 5 of ResNet-50 on an H200."""
    config, w = plan.config, plan.workload
    rows = ceil_div(plan.output_size[0], config.segments)
    passes = ceil_div(rows, config.tile_rows * config.groups_y) * config.filter_passes
    fragments = w.r * w.s * plan.steps * config.channel_groups
    tensor = fragments * plan.halves * config.tile_rows * config.tile_width * 4
    epilogue = EPILOGUE_CYCLES * plan.accumulators
    alone = max(fragments * FRAGMENT_CYCLES, tensor / TENSOR_SHARE) + epilogue
    together = config.consumers * config.blocks
    fetched = config.consumers * fragments * 2048 / CACHE_BYTES
    busy = passes * max(alone, fetched, together * tensor / TENSOR_SHARE + epilogue * (1 if together == 1 else 1.7))
    setup = PROLOGUE_CYCLES
    if config.split > 1:
        setup += CLUSTER_CYCLES + config.consumers * plan.exchanged_bytes / PEER_BYTES
    resident = MULTIPROCESSORS if config.split <= 2 else CLUSTER_MULTIPROCESSORS
    waves = ceil_div(plan.grid_blocks, resident * config.blocks)
    reread = w.bytes_moved + (plan.filter_blocks - 1) * w.n * w.h * w.w * w.c // 2
    return waves * (setup + busy) + max(0.0, reread / BYTES_PER_CYCLE - waves * busy)


def _listed(workload: ConvWorkload, arch: Arch) -> Iterator[WarpgroupConfig]:
    lists = warpgroup_values(workload)
    names = ("tile_width", "tile_rows", "groups_m", "groups_x", "groups_y", "segments", "split", "channel_groups",
             "keep_rows", "filter_passes")  # fmt: skip
    default = WarpgroupConfig().to_dict()
    for values in product(*(lists.get(name, (default[name],)) for name in names)):
        config = WarpgroupConfig(**dict(zip(names, values, strict=True)), stagger=0)
        yield from _completed(WarpgroupPlan(workload, config, arch))


def _completed(plan: WarpgroupPlan) -> Iterator[WarpgroupConfig]:
    """The configuration with a ring as deep as fits, and as many weights ahead as registers allow."""
    config = plan.config
    if plan.workload.channel_blocks % (config.split * config.channel_groups):
        return
    changes: dict[str, int] = {"load_ahead": 1 if plan.accumulators > 112 else 2}
    spare = plan.arch.shared_per_block - 12 * plan.parameter_channels - 4096
    whole = max(plan.staged_rows(segment) for segment in range(min(config.segments, plan.output_size[0])))
    fitting = spare // max(plan.slot_bytes, 1)
    least = (plan.window + (config.groups_y - 1) * config.tile_rows * plan.rows.pixel_step) * config.channel_groups
    changes["ring"] = max(1, min(fitting, whole * config.channel_groups, least + 3 * config.channel_groups))
    if not config.keep_rows:
        changes["ring"] = max(1, min(fitting, 6))
    room = 200 - plan.accumulators - 44
    steps = [n for n in (4, 2, 1) if plan.steps % n == 0 and 4 * n * plan.workload.s <= min(room, 48)]
    changes["unroll"] = steps[0] if steps else 1
    if config.consumers == 1 and plan.workload.s > 1:  # a lone warpgroup has nobody else to fill its pauses
        changes["in_flight"] = min(3, changes["unroll"] * plan.workload.s - 1)
    yield config.with_values(changes)
