"""Exercises of the first notebook and of the one on your GPU: predict a count, choose a block tile, compute a rate,
fill a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from numbers import Integral, Real
from typing import Any

from subbyte.arguments import checked, number
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.duplicates import about_loads
from subbyte.exercises.feedback import Feedback, short
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import shows
from subbyte.technique import Tiling, duplicates
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

SHAPE = ("blk_row_warps", "blk_col_warps", "warp_row_tiles", "warp_col_tiles", "chunk")
"""Knobs of an answer that are integers."""


@checked
def check_pixels(answer: Any, workload: ConvWorkload | str, tile: tuple[int, int]) -> Feedback:
    """Check a number: how many distinct input pixels a tile of outputs, (rows, columns), reads."""
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of pixels.")
    record = duplicates(workload, tile)
    if same(answer, record.loads.full):
        return Feedback(True, f"{record.entries} entries, {record.genuine} of them genuine: {record.ratio_full:.2f} "
                              "times fewer loads.")  # fmt: skip
    if isinstance(answer, (bool, str)) or not isinstance(answer, Real):
        return Feedback(False, f"Give a number of pixels, not {short(answer)}.")
    hint = "Which input rows do the outputs read, and which columns? Draw them with a DuplicateExplorer."
    return Feedback(False, about_loads(answer, record.workload, tile) or hint)


@checked
def check_block(
    answer: Any,
    workload: ConvWorkload | str,
    *,
    pixels: int,
    filters: int,
    warps: int,
    arch: str = "sm_90a",
) -> Feedback:
    """Check a configuration, or its knobs by name: a block of ``warps`` warps has to compute ``pixels`` output pixels
    (each for 8 images) x ``filters`` filters, and must be buildable."""
    if unanswered(answer):
        return Feedback(False, "Replace each ... with a whole number: warps of a block, tiles of a warp.")
    if isinstance(answer, Mapping):
        for name, value in answer.items():
            if name in SHAPE and (isinstance(value, bool) or not isinstance(value, Integral)):
                return Feedback(False, f"{name} = {short(value)}: give a whole number, such as 2, without quotes.")
    try:
        config = answer if shows(answer, Tiling) else MmaConfig.from_dict(dict(answer))
    except (SubbyteError, TypeError, ValueError) as problem:
        return Feedback(False, f"Give an MmaConfig or its knobs by name: {problem}")
    mine = (config.blk_row_warps * config.warp_row_tiles, config.blk_col_warps * config.warp_col_tiles * 8)
    have = config.blk_row_warps * config.blk_col_warps
    shape = f"Your block computes {mine[0]} pixels x {mine[1]} filters with {have} warps."
    mistakes: list[tuple[Any, str]] = [
        ((filters, pixels), "Rows are output pixels and columns are filters: you have them the other way round."),
        ((pixels, filters * 8), "A column tile is 8 filters wide, not one."),
        ((pixels * 8, filters), "A row tile is one pixel of 8 images, not 8 pixels."),
    ]
    if mine != (pixels, filters):
        wanted = f"The block must compute {pixels} x {filters}: multiply warps by tiles, for rows and for columns."
        return Feedback(False, f"{shape} {recognise(mine, mistakes, wanted)}")
    if have != warps:
        return Feedback(
            False, f"{shape} The shape is right, but the block must have {warps} warps: rows times columns."
        )
    if reason := space(parse(workload), arch).check(config):
        return Feedback(False, f"{shape} The shape is right, but the space refuses this configuration: {reason}.")
    return Feedback(True, f"{shape} {config.key}")


@checked
def check_rate(answer: Any, workload: ConvWorkload | str, microseconds: float) -> Feedback:
    """Check tera-operations per second from the time of a layer, to within 1 %."""
    if unanswered(answer):
        return Feedback(False, "Replace the ... with tera-operations per second.")
    w = parse(workload)
    number(microseconds, "microseconds", positive=True)
    right = w.operations / microseconds / 1e6
    try:
        ratio = 0.0 if isinstance(answer, (bool, str)) else float(answer) / right
    except (TypeError, ValueError, OverflowError):
        ratio = 0.0
    if abs(ratio - 1) < 0.01:
        return Feedback(True, f"{right:.0f} TOPS.")
    mistakes: list[tuple[float, str]] = [
        (0.5, "Those are multiply-accumulates; each counts as two operations."),
        (2.0, "A multiply-accumulate is two operations, not four."),
        (1 / w.n, f"That is one image; the layer has a batch of {w.n}."),
        (1 / (w.r * w.s), f"Each output pixel needs all {w.r} x {w.s} offsets of the kernel."),
        (w.bytes_moved / w.operations, "That is bytes per second: a bandwidth, not a rate of operations."),
        *((10.0**power, "The digits are right, the unit is wrong: tera is 10^12, a microsecond is 10^-6 seconds.")
          for power in (-12, -9, -6, -3, 3, 6, 9, 12)),
    ]  # fmt: skip
    near = [words for factor, words in mistakes if abs(ratio / factor - 1) < 0.01]
    return Feedback(False, next(iter(near), "Divide 2 x outputs x (products in each output) by the time."))


@checked
def check_waves(answer: Any, blocks: int, blocks_per_sm: int, multiprocessors: int) -> Feedback:
    """Check how many waves of blocks a launch takes. Raises InvalidInput."""
    if min(blocks, blocks_per_sm, multiprocessors) < 1:
        raise InvalidInput("blocks, blocks_per_sm and multiprocessors must be at least 1: pass what the kernel reports")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of waves.")
    at_once = blocks_per_sm * multiprocessors
    exact = blocks / at_once
    if same(answer, ceil(exact)):
        last = blocks - (ceil(exact) - 1) * at_once
        return Feedback(True, f"{at_once} blocks at a time; the last wave fills {last / at_once:.0%} of the GPU.")
    mistakes = [
        (
            lambda given: exact - 0.05 < given < exact + 0.05,
            "A wave that is not full still takes a whole wave's time: round up.",
        ),
        (int(exact), "The remaining blocks need another wave: round up."),
        (ceil(blocks / multiprocessors), "A multiprocessor holds several of these blocks at a time."),
        (ceil(blocks / blocks_per_sm), "All multiprocessors work at the same time."),
        (at_once, "That is how many blocks run at a time. How many such waves does it take to run them all?"),
    ]
    if not isinstance(answer, Real):
        return Feedback(False, f"Give a number of waves, not {short(answer)}.")
    return Feedback(False, recognise(answer, mistakes, "How many blocks run at a time on the whole GPU? Divide."))
