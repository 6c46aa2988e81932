"""Cycles of a kernel's parts, and a rough sum of them: good enough to rank configurations of one layer."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from subbyte.families.shared.smooth import longest
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.workload import ConvWorkload, ceil_div

MULTIPROCESSORS = 132
CLUSTER_MULTIPROCESSORS = 112
"""Multiprocessors on which clusters of more than two blocks fit."""
SINGLE_BLOCK = 240
"""With at least this many registers per thread available, a block is launched with as many as its code needs
(``registers`` of its plan)."""
USED_REGISTERS = 64
"""Registers of such a thread besides its accumulators."""


@dataclass(frozen=True)
class Constants:
    """The constants of the estimate, in cycles and bytes of a multiprocessor, except ``memory``. Fitted to the measured
    times of 81 layers on an H200 (``benchmarks/network estimate``)."""

    setup: float = 3230.0
    """From the launch to the first multiplication, and from the last one to the next launch."""
    fragment: float = 97.0
    """Between weight fragments of a warpgroup that runs alone: unpacking, addresses, fences."""
    epilogue: float = 6.6
    """Per accumulator register of a thread."""
    shared_epilogue: float = 1.77
    """How much longer it takes during another warpgroup's multiplications."""
    load: float = 101.0
    """Per 16-byte load of a producer thread: issuing, unpacking, storing."""
    copied: float = 25.0
    """The same if it goes straight into its stage: only issuing. Set by hand, not measured yet."""
    stage: float = 351.0
    """Per stage of the pipeline: the part of the memory latency that remains."""
    cache: float = 28.5
    """Bytes per cycle from the L2 while all multiprocessors load."""
    cluster: float = 708.0
    """Per exchange of partial sums."""
    exchange: float = 39.3
    """Bytes per cycle of that exchange."""
    memory: float = 1828.0
    """Bytes per cycle from and to memory, for the whole GPU."""
    sharpness: float = 3.29
    """Exponent of the norm that approximates the longest of several concurrent activities."""
    unroll: float = 1.030
    """Factor per halving of a loop body."""
    sparse_fragment: float = 25.0
    """For 2:4 weights, per fetched fragment: their instructions use all shared-memory bandwidth, and other traffic
    there delays them. Fitted, like the next, to the kernels of ``benchmarks/results/sparse``."""
    sparse_pixel: float = 6.5
    """The same per staged pixel of 32 channels and 8 images."""
    listed_fragment: float = 40.0
    """For a list of live blocks, per pair and fragment row: locating its input. Fitted, like the next, to the
    kernels of ``benchmarks/results/sparse/blocks-*.json``."""
    listed_iteration: float = 800.0
    """The same per tile iteration: finding where its list begins and ends."""


@dataclass(frozen=True)
class Terms:
    """The components of a plan's cycles; the five concurrent ones are those of a wave."""

    own: float
    """A warpgroup's own work, iteration after iteration."""
    together: float
    """Multiplications and epilogues of all warpgroups of a multiprocessor."""
    producer: float
    """A producer's loads."""
    fetched: float
    """Data from the L2."""
    setup: float
    """Start and end of a block."""
    memory: float
    """Data from and to memory, for the whole GPU."""
    waves: int
    resident: int
    """Resident blocks of a multiprocessor."""
    multiprocessors: int
    iterations: int
    """Tile iterations of a consumer warpgroup."""
    stages: int
    """Stages that a block's producer loads."""
    weights: float
    """Bytes of weights that a block reads."""
    pixels: float
    """Staged pixels of a block, of 32 channels and 8 images."""
    tensor: float
    """Cycles of a warpgroup's multiplications per tile iteration."""
    cycles: float
    """The total."""


def estimated_cycles(plan: WgmmaPlan, k: Constants | None = None) -> float:
    """A rough count of cycles from launch to launch, good enough to rank configurations of one workload."""
    return terms(plan, k).cycles


def terms(plan: WgmmaPlan, k: Constants | None = None, registers: float | None = None) -> Terms:
    """The components that :func:`estimated_cycles` adds up. ``registers`` is the expected number per thread if the
    compiler chooses it.

    Blocks run in waves of as many as fit. Within a wave several things run concurrently: a warpgroup's own work,
    iteration after iteration; the multiplications and epilogues of all warpgroups of a multiprocessor; the producer's
    loads; and data from the L2.
    """
    k = k or Constants()
    config, w = plan.knobs, plan.workload
    iterations = _iterations(plan)
    fragments = plan.tile_fragments
    tensor = fragments * plan.operands * plan.accumulators
    stages = _stages(plan, iterations)
    epilogue = k.epilogue * plan.accumulators
    multiprocessors = MULTIPROCESSORS if config.cluster_split_k <= 2 else CLUSTER_MULTIPROCESSORS
    resident = min(_resident(plan, registers), ceil_div(plan.grid_blocks, multiprocessors))
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
    producer = stages * (plan.copies * (k.copied if plan.direct else k.load) + k.stage) / config.producers
    once = config.consumers_m / max(config.multicast, 1)
    times = 1 if config.resident else iterations
    read = once if config.multicast else config.consumers * times
    weights = 4 * plan.fragment_words * fragments * config.tiles_m * read
    fetched = (weights + 128 * plan.parts * pixels) * resident / k.cache
    setup = k.setup + (
        k.cluster + config.consumers * plan.exchanged_bytes / k.exchange if config.cluster_split_k > 1 else 0.0
    )
    waves = ceil_div(plan.grid_blocks, multiprocessors * resident)
    busy = waves * (setup + longest(k.sharpness, own, together, producer, fetched))
    factor = k.unroll ** -log2(config.unroll)
    memory = bytes_touched(w) / k.memory
    return Terms(
        own, together, producer, fetched, setup, memory, waves, resident, multiprocessors, iterations, stages,
        float(weights), float(pixels), float(tensor), factor * longest(k.sharpness, busy, memory),
    )  # fmt: skip


def bytes_touched(w: ConvWorkload) -> int:
    """Bytes from and to memory: of the input only the pixels that some tap reads, which are few if the stride exceeds
    the kernel size. The model was fitted to this count, which ignores edges (``bytes_moved`` does not)."""
    rows = w.h if w.r >= w.stride else min(w.h, w.p * w.r)
    columns = w.w if w.s >= w.stride else min(w.w, w.q * w.s)
    types = w.precision
    unmet = types.activations.stored_bits(w.n * (w.h * w.w - rows * columns) * w.c)
    x, y = types.activations.stored_bits(w.n * w.h * w.w * w.c), types.output.stored_bits(w.n * w.p * w.q * w.k)
    return (x + types.weights.stored_bits(w.k * w.r * w.s * w.c) + y) // 8 - unmet // 8


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
    """The work of the block with the most multiplications, relative to whole rows inside the image. It is smaller
    with half rows, because their instructions are narrower and the division is made for segments at the edge of the
    image."""
    if not plan.knobs.half_rows:
        return 1.0
    whole = 2 * plan.knobs.tile_rows * plan.tap_rows * plan.row_pixels
    return max(_columns(plan, segment) for segment in range(plan.knobs.segments)) / whole


def _columns(plan: WgmmaPlan, segment: int) -> int:
    """Columns that a segment's kernel rows multiply, in a block with half rows."""
    rows = range(plan.segment_start(segment), plan.segment_end(segment))
    met = [plan.tap_rows_at(row, 1, tap) == (0, 1) for row in rows for tap in range(plan.tap_rows)]
    less = plan.row_pixels - plan.narrow_pixels if plan.cut(segment) in (0, 1) else 0
    return sum(met) * plan.row_pixels - plan.tap_rows * less


def _resident(plan: WgmmaPlan, expected: float | None = None) -> int:
    """Resident blocks of a multiprocessor, with registers as estimated, or as expected."""
    config, arch = plan.knobs, plan.arch
    registers = arch.registers_per_sm // config.threads // 8 * 8
    if registers >= SINGLE_BLOCK:
        taken = plan.accumulators + USED_REGISTERS if expected is None else ceil_div(round(expected), 8) * 8
        registers = min(arch.registers_per_thread, taken)
    fitting = min(
        arch.registers_per_sm // (registers * config.threads), arch.shared_per_sm // (plan.shared_bytes + 1024)
    )
    return max(1, fitting)
