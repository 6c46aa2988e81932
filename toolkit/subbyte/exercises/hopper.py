"""Exercises of the notebook on Hopper: a descriptor's start, the two operands in a word, the blocks of a launch, the
cost of a knob value."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call_each, short
from subbyte.records.describe import knob_values
from subbyte.technique.taps import Tap, TapAddresses, tap_addresses
from subbyte.technique.topics import plan_of
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse
from subbyte.workload.conv import ceil_div

if TYPE_CHECKING:
    from subbyte.families.wgmma.config import WgmmaConfig
    from subbyte.families.wgmma.plan import WgmmaPlan
    from subbyte.tune import Landscape

MASK = 0xF0F0F0F0
WORDS = (0x00000000, 0x12345678, 0xFEDCBA98, 0x80808080, 0x0F0F0F0F, 0xFFFFFFFF, 0x7000000F)
"""Packed words on which every answer is tried."""


@checked
def check_tap_start(
    answer: Any, workload: ConvWorkload | str, config: WgmmaConfig, output_row: int, r: int, s: int
) -> Feedback:
    """Check the byte of shared memory where the operand of tap (r, s) of an output row starts.

    Raises InvalidInput if that tap reads only padding.
    """
    record = tap_addresses(workload, config, output_row)
    tap = next((one for one in record.taps if (one.r, one.s) == (r, s)), None)
    if tap is None:
        raise InvalidInput(f"tap ({r}, {s}) of output row {output_row} reads rows outside the image: choose another")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of bytes from the start of the pipeline.")
    if same(answer, tap.start):
        where = f"Stage buffer {tap.buffer} begins at {tap.buffer * record.buffer_bytes:,}, pixel {tap.column} of it"
        return Feedback(
            True, f"{where} {tap.column * record.pixel_bytes:,} bytes further on. No pixel was moved for this tap."
        )
    hint = (
        f"stage buffer x {record.buffer_bytes:,} bytes + first pixel x {record.pixel_bytes}. Which input row does "
        f"kernel row {r} of output row {output_row} read, and in which stage buffer does it lie?"
    )
    return Feedback(False, recognise(answer, _start_mistakes(record, tap), hint))


def _start_mistakes(record: TapAddresses, tap: Tap) -> list[tuple[Any, str]]:
    size, row, within = record.buffer_bytes, record.pitch * record.pixel_bytes, tap.column * record.pixel_bytes
    reads = f"kernel row {tap.r} reads input row {tap.input_row}"
    bytes_ = "a pixel is 8 images x 32 channels, a byte each in shared memory: 256 bytes, not 128."
    whole = f"a stage buffer holds every block of 32 channels: {size:,} bytes, not {row:,}."
    return [
        (tap.start // 16, "that is what stands in the descriptor, in units of 16 bytes; the question is for bytes."),
        (tap.buffer * size + within // 2, bytes_),
        (tap.buffer * size + tap.column, "that counts pixels within the stage buffer; a pixel has 256 bytes."),
        (tap.buffer * size, f"that is where the stage buffer begins; tap column {tap.s} begins some pixels later."),
        (within, f"the stage buffer is missing: {reads}."),
        (tap.buffer * row + within, whole),
        (tap.input_row * size + within, "rows go round in the pipeline: take the row modulo the number of stages."),
        (tap.r * size + within, f"that is the stage buffer of the kernel row; but {reads} of the image."),
    ]


@checked
def check_operands(function: Any) -> Feedback:
    """Check ``function(word)``: the two words of bytes, (low nibbles, high nibbles), each times 16."""
    found, problem = call_each(function, [(word,) for word in WORDS], lambda word: f"the word {word:#010x}")
    if problem is not None:
        return problem
    for word, given in zip(WORDS, found, strict=True):
        right = (_low(word), _high(word))
        if isinstance(given, (tuple, list)) and same(tuple(given), right):
            continue
        if not (isinstance(given, (tuple, list)) and len(given) == 2):
            return Feedback(False, f"Return two words, (low nibbles, high nibbles), not {short(given)}.")
        if all(isinstance(one, int) for one in given) and given[0] > 0xFFFFFFFF and _masked(given) == right:
            return Feedback(False, "A register has 32 bits: in Python the bits shifted out must be masked away.")
        named = next((words for wrong, words in WRONG_OPERANDS if _agrees(found, wrong)), "")
        shown = ", ".join(f"{one:#010x}" if isinstance(one, int) else short(one) for one in given)
        wanted = f"{right[0]:#010x}, {right[1]:#010x}"
        return Feedback(False, named or f"For {word:#010x} you return {shown}; the right answer is {wanted}.")
    return Feedback(
        True, "One shift and two masks for eight weights; the requantization takes the factor 16 out again."
    )


def _low(word: int) -> int:
    return word << 4 & MASK


def _high(word: int) -> int:
    return word & MASK


def _masked(pair: Any) -> tuple[int, int]:
    return int(pair[0]) & 0xFFFFFFFF, int(pair[1]) & 0xFFFFFFFF


def _agrees(given: Sequence[Any], wrong: Any) -> bool:
    pairs = (tuple(one) if isinstance(one, (tuple, list)) else one for one in given)
    return all(same(one, wrong(word)) for one, word in zip(pairs, WORDS, strict=True))


@checked
def check_grid(answer: Any, workload: ConvWorkload | str, config: WgmmaConfig) -> Feedback:
    """Check the number of blocks that a configuration of the wgmma family launches for a workload."""
    w = parse(workload)
    plan = cast("WgmmaPlan", plan_of(w, config))
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of blocks.")
    if same(answer, plan.grid_blocks):
        parts = f"{plan.knobs.segments} segments of rows x {plan.x_tiles} column tile(s)"
        tiles = f"{plan.filter_blocks} tile(s) of {plan.filters} output channels x {plan.knobs.cluster_split_k}"
        groups = f"{w.batch_groups} group(s) of 8 images"
        return Feedback(True, f"{groups} x {parts} x {tiles}. The H200 has 132 multiprocessors.")
    return Feedback(False, recognise(answer, _grid_mistakes(plan, w), "groups of 8 images x segments of rows x column "
                                     "tiles x tiles of output channels x blocks of a cluster."))  # fmt: skip


def _grid_mistakes(plan: WgmmaPlan, w: ConvWorkload) -> list[tuple[Any, str]]:
    right, config = plan.grid_blocks, plan.knobs
    left_out = [
        (plan.filter_blocks, f"the output channels are missing: {w.k}."),
        (plan.x_tiles, f"the columns are missing: {w.q} of an output row."),
        (
            config.cluster_split_k,
            f"{config.cluster_split_k} blocks of a cluster share the input channels of each tile.",
        ),
        (config.segments, "the segments of rows are missing."),
    ]
    return [
        (right * 8, "images come in groups of 8: one block computes all eight of a group."),
        *((right // parts, words) for parts, words in left_out if parts > 1),
        (right // plan.filter_blocks * ceil_div(w.k, 32), f"a block computes {plan.filters} output channels, not 32."),
        (right * w.p // config.segments, "a block computes a whole segment of rows, not one row."),
        (right * w.channel_blocks, "input channels are added up inside a block, not divided among blocks."),
        (right * config.threads, "those are threads."),
    ]


@checked
def check_price(answer: Any, landscape: Landscape, knob: str, value: int) -> Feedback:
    """Check how many times as long as the optimum the fastest recorded configuration with ``knob`` at ``value`` takes.

    Two decimals are enough. Raises InvalidInput for a knob or a value that the landscape does not have.
    """
    times = {i: r.microseconds for i, r in landscape.results.items() if hasattr(r, "microseconds")}
    knobs = landscape.header["space"]["knobs"]
    values = {i: {**landscape.config(i).to_dict(), **knob_values(knobs, i)} for i in times}
    known = sorted({name for one in values.values() for name in one})
    if knob not in known:
        raise InvalidInput(f"unknown knob {knob!r}: {did_you_mean(knob, known)}")
    held = [times[i] for i in times if values[i].get(knob) == value]
    if not held:
        offered = sorted({str(one[knob]) for one in values.values() if knob in one})
        raise InvalidInput(f"{knob}={value}: no measured configuration has it; allowed: {', '.join(offered)}")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a ratio of two times.")
    best, mine = min(times.values()), min(held)
    if _about(answer, mine / best):
        said = f"{mine:.2f} us instead of {best:.2f} us: {mine / best:.2f} times"
        return Feedback(True, f"{said}, the best of {len(held)} configurations with {knob}={value}.")
    mistakes = [
        (mine, "that is a time in microseconds; divide it by the optimum's."),
        (best / mine, "the other way round: how many times as long does it take?"),
        (mine / best - 1, "that is the part that comes on top; the ratio is 1 more."),
        (median(held) / best, f"that is the middle of all with {knob}={value}; the question is for the fastest."),
        (max(held) / best, f"that is the slowest with {knob}={value}; the question is for the fastest."),
    ]
    found = [(lambda a, wrong=wrong: _about(a, wrong), words) for wrong, words in mistakes]
    return Feedback(False, recognise(answer, found, f"the least time among those with {knob}={value}, divided by the "
                                                    "least time of all."))  # fmt: skip


def _about(answer: Any, right: float) -> bool:
    """The number to two decimals."""
    try:
        return not isinstance(answer, (bool, str)) and abs(float(answer) - right) < 0.006
    except (TypeError, ValueError, OverflowError):
        return False


_MASK_BOTH = "Each byte still holds its neighbour in the lower half: mask both words with 0xF0F0F0F0."
WRONG_OPERANDS: tuple[tuple[Any, str], ...] = (
    (lambda w: (_high(w), _low(w)), "They are swapped: the low nibbles come first."),
    (
        lambda w: (w & 0x0F0F0F0F, w >> 4 & 0x0F0F0F0F),
        "In the lower half of a byte a nibble counts 0 to 15: -1 becomes 15. In the upper half it brings its sign.",
    ),
    (lambda w: (w << 4 & 0xFFFFFFFF, w), _MASK_BOTH),
    (lambda w: (w << 4, w), _MASK_BOTH),
    (lambda w: (w >> 4 & MASK, w & MASK), "The low nibbles must move up: shift to the left."),
)
"""What typical mistakes return, and the explanation."""
