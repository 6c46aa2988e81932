"""Which configuration to take when none was measured: the best of a small list, by estimate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import log2
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.pipeline.config import FLAT, FLAT_BATCH, ROW_REUSE, ROWS, PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.families.wgmma.rules import sizes
from subbyte.families.wgmma.skipping import skipping
from subbyte.families.wgmma.values import value_lists
from subbyte.workload import ConvWorkload, ceil_div

MULTIPROCESSORS = 132
CLUSTER_MULTIPROCESSORS = 112
"""Multiprocessors that clusters of more than two blocks find room on."""
SINGLE_BLOCK = 240
"""Registers for each thread from which on a block is launched with what its code takes (``registers`` of its plan)."""
USED_REGISTERS = 64
"""Registers of such a thread beside its accumulators."""

SPARSE_GAIN = 0.92
"""Of a dense kernel's estimated time: a 2:4 kernel estimated to take longer is not expected to be faster. Their ratios
are estimated with an error of 12 % (root mean square, the kernels of ``benchmarks/results/sparse``; batch 256: 6 %)."""

DIVIDING = ("tile_width", "tile_rows", "consumers_m", "consumers_n", "consumers_rows", "segments", "cluster_split_k",
            "channel_groups", "row_reuse", "m_iterations", "pixels", "tiles_m", "resident")  # fmt: skip
"""Knobs that decide how the work is divided."""
FEW = {"tile_width": 4, "segments": 6, "tiles_m": 1, "pixels": 3}
"""Values of a knob that are combined with all others; 2 of those not named."""
TURNS, BRED = 4, 24
"""How often, and around how many of the best, single knobs are changed."""
CONDITION_REGISTERS = 16
"""More registers of a producer thread whose loads have a condition each, or a row to be found."""


@dataclass(frozen=True)
class Constants:
    """What the estimate counts, in cycles and bytes of a multiprocessor, but for ``memory``. Fitted to the measured
    times of 81 layers on an H200 (``benchmarks/network estimate``)."""

    setup: float = 3230.0
    """From the launch to the first multiplication, and from the last one to the next launch."""
    fragment: float = 97.0
    """From one weight fragment to the next in a warpgroup alone: unpacking, addresses, fences."""
    epilogue: float = 6.6
    """For each accumulator register of a thread."""
    shared_epilogue: float = 1.77
    """How much longer it takes beside another warpgroup's multiplications."""
    load: float = 101.0
    """For each 16-byte load of a producer thread: issuing, unpacking, storing."""
    stage: float = 351.0
    """For each stage of the pipeline: what is left of the wait for memory."""
    cache: float = 28.5
    """Bytes per cycle from the L2 while all multiprocessors load."""
    cluster: float = 708.0
    """For an exchange of partial sums."""
    exchange: float = 39.3
    """Bytes per cycle of that exchange."""
    memory: float = 1828.0
    """Bytes per cycle from and to memory, of the whole GPU."""
    sharpness: float = 3.29
    """Exponent of the norm that stands for the longest of several things going on at once."""
    unroll: float = 1.030
    """Factor for each halving of a loop body."""
    sparse_fragment: float = 25.0
    """Of 2:4 weights, for each fetched fragment: their instructions take all that shared memory gives, and what else
    moves there delays them. Fitted with the next to the kernels of ``benchmarks/results/sparse``."""
    sparse_pixel: float = 6.5
    """The same for each staged pixel of 32 channels and 8 images."""
    listed_fragment: float = 40.0
    """Of a list of live blocks, for each pair and fragment row: where it multiplies. Fitted with the next to the
    kernels of ``benchmarks/results/sparse/blocks-*.json``."""
    listed_iteration: float = 800.0
    """The same for each tile iteration: finding where its list begins and ends."""


def candidates(workload: ConvWorkload, arch: Arch) -> list[PipelineConfig]:
    """Configurations that can be built, the one with the fewest :func:`estimated_cycles` first; of weights with a
    pattern of zeros those of both kernels, and first those of the one that is expected to be faster.

    Looked at are all combinations of a few values of the knobs that divide the work, then whatever differs in one of
    these knobs from the best found so far, several times. The other knobs follow from them (:func:`_completed`).
    """
    found = _estimated(workload, arch, PipelineConfig, value_lists(workload))
    own = skipping(workload)
    if own is not None:
        sparse = _estimated(workload, arch, own.kind, own.values(workload))
        gain = expected_gain(found, sparse)
        first, second = (sparse, found) if gain is not None and gain < SPARSE_GAIN else (found, sparse)
        return [*sorted(first, key=first.__getitem__), *sorted(second, key=second.__getitem__)]
    return sorted(found, key=found.__getitem__)


def expected_gain(dense: Mapping[PipelineConfig, float], sparse: Mapping[PipelineConfig, float]) -> float | None:
    """Estimated time of the best kernel that skips zeros over that of the best dense one; None where one is missing."""
    return min(sparse.values()) / min(dense.values()) if sparse and dense else None


def _estimated(
    workload: ConvWorkload, arch: Arch, kind: type[PipelineConfig], values: Mapping[str, Sequence[int]]
) -> dict[PipelineConfig, float]:
    """Configurations of a kernel that can be built, with their estimates."""
    lists = {name: tuple(listed) for name, listed in values.items() if name in DIVIDING}
    lists["row_reuse"] = tuple(value for value in lists.get("row_reuse", (1,)) if value in (0, 1))
    lists["pixels"] = tuple(value for value in lists.get("pixels", (ROWS,)) if value in (ROWS, FLAT, FLAT_BATCH))
    usual = {name: getattr(kind(stagger=0), name) for name in DIVIDING if name in kind.rows}
    found: dict[PipelineConfig, float] = {}
    seen: set[tuple[int, ...]] = set()
    _look_at(workload, arch, kind, ({**usual, **one} for one in _combinations(lists)), found, seen)
    for _ in range(TURNS):
        best = [{name: getattr(one, name) for name in usual} for one in sorted(found, key=found.__getitem__)[:BRED]]
        near = ({**one, name: value} for one in best for name, values in lists.items() for value in values)
        _look_at(workload, arch, kind, near, found, seen)
    return found


def _look_at(
    workload: ConvWorkload,
    arch: Arch,
    kind: type[PipelineConfig],
    divided: Iterable[dict[str, int]],
    found: dict[PipelineConfig, float],
    seen: set[tuple[int, ...]],
) -> None:
    """Put what can be built of these ways to divide the work, a value for each of DIVIDING, into ``found``, with its
    estimate. Most come again in each turn, so a configuration is made of what is new alone."""
    for values in divided:
        values["row_reuse"] = ROW_REUSE[values["row_reuse"]][0]
        if (way := tuple(values.values())) in seen:
            continue
        seen.add(way)
        for one in _completed(WgmmaPlan(workload, kind(**cast(Any, values), stagger=0), arch)):
            plan = WgmmaPlan(workload, one, arch)
            if why_not(plan) is None:
                found[one] = estimated_cycles(plan)


def _combinations(lists: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """All combinations of at most FEW values of each knob, evenly out of its list."""
    few = {name: tuple(values[:: ceil_div(len(values), FEW.get(name, 2))]) for name, values in lists.items()}
    for values in product(*few.values()):
        yield dict(zip(few, values, strict=True))


def estimated_cycles(plan: WgmmaPlan, k: Constants | None = None) -> float:
    """A rough count of cycles from launch to launch, good enough to rank configurations of one workload.

    Blocks run in waves of as many as fit. In a wave go on at once: a warpgroup's own work, iteration after iteration;
    the multiplications and epilogues of all warpgroups of a multiprocessor; the producer's loads; what comes
    from the L2.
    """
    k = k or Constants()
    config, w = plan.knobs, plan.workload
    iterations = _iterations(plan)
    fragments = plan.tile_fragments
    tensor = fragments * plan.operands * plan.accumulators
    stages = _stages(plan, iterations)
    epilogue = k.epilogue * plan.accumulators
    multiprocessors = MULTIPROCESSORS if config.cluster_split_k <= 2 else CLUSTER_MULTIPROCESSORS
    resident = min(_resident(plan), ceil_div(plan.grid_blocks, multiprocessors))
    warpgroups = config.consumers * resident
    own = iterations * (max(fragments * config.tiles_m * k.fragment, tensor) + epilogue)
    multiplied = warpgroups * tensor * _busiest(plan)
    pixels = stages * plan.stage_rows * plan.columns_loaded * plan.channels * config.image_groups
    together = iterations * (multiplied + epilogue * (1.0 if warpgroups == 1 else k.shared_epilogue))
    if config.sparse:
        fetches = fragments * config.consumers * (1 if config.resident else iterations)
        together += resident * (fetches * k.sparse_fragment + pixels * k.sparse_pixel)
    if config.listed:
        turns = iterations * config.consumers * resident
        together += turns * (fragments * config.tile_rows * k.listed_fragment + k.listed_iteration)
    producer = stages * (plan.copies * k.load + k.stage) / config.producers
    once = config.consumers_m / max(config.multicast, 1)
    times = 1 if config.resident else iterations
    read = once if config.multicast else config.consumers * times
    weights = 4 * plan.fragment_words * fragments * config.tiles_m * read
    fetched = (weights + 128 * pixels) * resident / k.cache
    setup = k.setup + (
        k.cluster + config.consumers * plan.exchanged_bytes / k.exchange if config.cluster_split_k > 1 else 0.0
    )
    waves = ceil_div(plan.grid_blocks, multiprocessors * resident)
    busy = waves * (setup + _longest(k.sharpness, own, together, producer, fetched))
    factor = k.unroll ** -log2(config.unroll)
    return factor * _longest(k.sharpness, busy, w.bytes_moved / k.memory)


def _longest(sharpness: float, *cycles: float) -> float:
    """A smooth maximum: a little more than the longest where others come close."""
    longest = max(cycles)
    return float(longest * sum((one / longest) ** sharpness for one in cycles) ** (1 / sharpness))


def _iterations(plan: WgmmaPlan) -> int:
    """Tile iterations of a consumer warpgroup."""
    config = plan.knobs
    rows = ceil_div(plan.output_size[0], config.segments)
    return ceil_div(rows, config.tile_rows * config.consumers_rows) * config.m_iterations


def _stages(plan: WgmmaPlan, iterations: int) -> int:
    """Stages that a block's producer loads."""
    config = plan.knobs
    if not plan.keep_rows:
        return iterations * plan.group_stages * config.channel_groups
    return plan.most_staged * config.channel_groups


def _busiest(plan: WgmmaPlan) -> float:
    """What the block with the most multiplications has of those of whole rows inside the image: less with half rows,
    whose narrower instructions and whose segments at the edge of the image are what the division is made for."""
    if not plan.knobs.half_rows:
        return 1.0
    whole = 2 * plan.knobs.tile_rows * plan.tap_rows * plan.row_pixels
    return max(_columns(plan, segment) for segment in range(plan.knobs.segments)) / whole


def _columns(plan: WgmmaPlan, segment: int) -> int:
    """Columns that a segment's kernel rows multiply, of a block with half rows."""
    rows = range(plan.segment_start(segment), plan.segment_end(segment))
    met = [plan.tap_rows_at(row, 1, tap) == (0, 1) for row in rows for tap in range(plan.tap_rows)]
    less = plan.row_pixels - plan.narrow_pixels if plan.cut(segment) in (0, 1) else 0
    return sum(met) * plan.row_pixels - plan.tap_rows * less


def _resident(plan: WgmmaPlan) -> int:
    """Blocks of a multiprocessor at a time, with registers as estimated."""
    config, arch = plan.knobs, plan.arch
    granted = arch.registers_per_sm // config.threads // 8 * 8
    registers = (
        min(arch.registers_per_thread, plan.accumulators + USED_REGISTERS) if granted >= SINGLE_BLOCK else granted
    )
    fitting = min(
        arch.registers_per_sm // (registers * config.threads), arch.shared_per_sm // (plan.shared_bytes + 1024)
    )
    return max(1, fitting)


def _completed(plan: WgmmaPlan) -> Iterator[PipelineConfig]:
    """The configuration with a pipeline as deep as fits, and as many weights ahead as registers allow."""
    config, base = plan.knobs, cast(PipelineConfig, plan.config)
    if plan.workload.channel_blocks % (config.cluster_split_k * config.channel_groups) or sizes(plan) is not None:
        return
    changes: dict[str, int] = {"load_ahead": 1 if plan.accumulators > 112 else 2}
    spare = plan.arch.shared_per_block - 12 * plan.parameter_channels - 4096
    whole = plan.most_staged
    fitting = spare // max(plan.buffer_bytes, 1)
    least = (plan.window + (config.consumers_rows - 1) * plan.next_iteration) * config.channel_groups
    if plan.keep_rows and plan.tap_rows > 1 and least > fitting:  # an iteration's rows find no room at once
        changes["row_reuse"] = 2
        least = replace(plan, config=base.with_values(changes)).held_stages
    changes["stages"] = max(1, min(fitting, whole * config.channel_groups, least + 3 * config.channel_groups))
    if not config.keep_rows:
        changes["stages"] = max(1, min(fitting, 6))
    room = 200 - plan.accumulators - 44
    words = plan.fragment_words // 128 * plan.workload.s
    if config.listed:
        words = plan.fragment_registers
    steps = [n for n in (4, 2, 1) if plan.steps % n == 0 and words * n <= min(room, 48)]
    changes["unroll"] = steps[0] if steps and not config.resident and not config.listed else 1
    if config.consumers == 1 and plan.workload.s > 1:  # a lone warpgroup has nobody else to fill its pauses
        fragments = plan.unroll if config.listed else changes["unroll"] * plan.workload.s
        changes["in_flight"] = max(1, min(3, fragments - 1))
    completed = WgmmaPlan(plan.workload, base.with_values(changes), plan.arch)
    ragged = plan.flat and not config.flat_batch and plan.flat_pixels % plan.width_covered > 0
    conditional = plan.x_tiles > 1 or ragged or plan.flat_strided
    if conditional and completed.registers[0] != completed.registers[1]:  # conditions take registers of their own
        changes["producer_registers"] = completed.producer_least + CONDITION_REGISTERS
    yield base.with_values(changes)
