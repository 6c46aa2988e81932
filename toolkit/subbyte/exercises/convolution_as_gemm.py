"""Exercises of the notebook on the convolution as a matrix product: counting tiles, locating a datum, wasting less."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, short
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import shows
from subbyte.technique import Tiling, tiling
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

COUNTED = ("rows", "columns", "depth", "blocks", "steps", "instructions")


@checked
def check_tiling(answer: Any, workload: ConvWorkload | str, config: MmaConfig, arch: str = "sm_80") -> Feedback:
    """Check the sizes of a tiled product: its ``rows``, ``columns`` and ``depth`` (M, N, K), ``blocks`` of the grid,
    ``steps`` of a warp along K, matrix ``instructions`` of one warp per step. Raises InvalidInput for other names."""
    if not isinstance(answer, Mapping):
        return Feedback(False, f"Give a dict with a number for each of {', '.join(COUNTED)}, not {short(answer)}.")
    for name in answer:
        if name not in COUNTED:
            raise InvalidInput(f"nothing here is called {name!r}: {did_you_mean(name, COUNTED)}")
    given = {name: answer.get(name) for name in COUNTED}
    open_ = [name for name, value in given.items() if unanswered(value)]
    right, mistakes = _counts(parse(workload), config, arch)
    wrong = [name for name in COUNTED if name not in open_ and not same(given[name], right[name])]
    lines = [f"{name} = {given[name]}: {recognise(given[name], mistakes[name], _HINTS[name])}" for name in wrong]
    if wrong:
        return Feedback(False, " ".join(lines))
    if open_:
        done = [name for name in COUNTED if name not in open_]
        so_far = f" So far right: {', '.join(done)}." if done else ""
        return Feedback(False, f"Replace the ... of {', '.join(open_)}.{so_far}")
    blocks, steps, each = (right[name] for name in ("blocks", "steps", "instructions"))
    return Feedback(True, f"{blocks} blocks; each of their warps issues {each} instructions in each of {steps} steps.")


_HINTS = {
    "rows": "the product has a row for every output pixel of every image.",
    "columns": "the product has a column for every filter.",
    "depth": "one output is a sum over every kernel offset and every input channel.",
    "blocks": "tiles along the height times tiles along the width, times groups of 8 images, times blocks of channels; "
    "each of them rounded up.",
    "steps": "one step takes one kernel offset and as many channels as the instruction is deep.",
    "instructions": "a warp owns warp_row_tiles pixels (8 rows each) and warp_col_tiles tiles of 8 channels; divide by "
    "what one instruction covers.",
}


def _counts(w: ConvWorkload, config: MmaConfig, arch: str) -> tuple[dict[str, int], dict[str, list[tuple[Any, str]]]]:
    """The right numbers, and for each the numbers that typical mistakes lead to."""
    record = tiling(w, config, arch=arch)
    m, n, k = record.gemm
    down, across, groups, columns = len(record.rows), len(record.columns), record.groups, record.column_blocks
    steps = len(record.steps) // config.split_channels
    pairs = config.warp_row_tiles * config.warp_col_tiles
    right = {"rows": m, "columns": n, "depth": k, "blocks": record.blocks, "steps": steps,
             "instructions": len(record.multiplies)}  # fmt: skip
    floor = (w.p // record.tile[0]) * (w.q // record.tile[1]) * groups * columns
    mistakes: dict[str, list[tuple[Any, str]]] = {
        "rows": [
            (w.p * w.q, "these are the pixels of one image; the batch has its rows too."),
            (w.n * w.h * w.w, "rows are output pixels, not input pixels: mind stride and padding."),
            (k, "that is the depth K."),
        ],
        "columns": [(w.c, "that is the number of input channels."), (w.k // 8, "those are tiles of 8 filters.")],
        "depth": [
            (w.c, "that is one kernel offset only; there are R x S of them."),
            (w.r * w.s, "those are the kernel offsets; each brings all input channels."),
            (w.r * w.c, "the kernel has two axes: R x S offsets."),
            (m, "that is the number of rows M."),
        ],
        "blocks": [
            (down * across * groups, "right along the pixels; the output channels are cut into blocks as well."),
            (floor, "tiles that hang over the edge are launched too: round up."),
            (record.blocks * 8, "the 8 images of a group share one block."),
            (m // (len(record.pixels) or 1) * columns, "the 8 images of a group share one block."),
            (down * across, "these are only the pixel tiles; groups of images and blocks of channels multiply them."),
        ],
        "steps": [
            (k, "a step takes many channels at once, not one."),
            (w.r * w.s, "those are the kernel offsets; every block of channels goes through all of them."),
            (record.iterations, "those are the stages; each brings the data of several steps."),
            (w.channel_blocks, "those are the channel blocks; each goes through all kernel offsets."),
        ],
        "instructions": [
            (pairs, f"an instruction has {record.shape[0]} rows: it takes {record.shape[0] // 8} pixels at a time."),
            (pairs * 8, "a pixel's 8 rows (its 8 images) go through one instruction together."),
            (len(record.multiplies) * steps, "that is the whole main loop; the question is about one step."),
            (len(record.multiplies) * len(record.warps), "that is the whole block; the question is about one warp."),
        ],
    }  # fmt: skip
    return right, mistakes


@checked
def check_datum(answer: Any, workload: ConvWorkload | str, row: int, column: int) -> Feedback:
    """Check which input value is at (row, column) of the lowered matrix: ``(image, y, x, channel)``.

    Rows and columns are in the order of :class:`subbyte.technique.tiling.Tiling`. A zero padding value has coordinates
    outside the input. Raises InvalidInput for a position outside the matrix.
    """
    w = parse(workload)
    rows, columns = w.batch_groups * 8 * w.p * w.q, w.channel_blocks * w.r * w.s * 32
    if not (0 <= row < rows and 0 <= column < columns):
        raise InvalidInput(f"row {row}, column {column}: the lowered matrix of {w.label} is {rows} x {columns}")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with (image, y, x, channel).")
    if not (isinstance(answer, (tuple, list)) and len(answer) == 4):
        return Feedback(False, f"{short(answer)}: give four numbers, (image, y, x, channel).")
    right = _datum(w, row, column)
    if same(answer, right):
        return Feedback(
            True, f"Row {row}, column {column} is image {right[0]}, pixel ({right[1]}, {right[2]}), channel {right[3]}."
        )
    image, y, x, channel = right
    per_image = w.p * w.q
    late = (row // per_image, *_pixel(w, row % per_image // w.q, row % w.q, *_offset(w, column)), channel)
    r, s = _offset(w, column)
    p, q = row // 8 % per_image // w.q, row // 8 % w.q
    plain = (image, *_pixel(w, p, q, *divmod(column // w.c % (w.r * w.s), w.s)), column % w.c)
    mistakes = [
        ((image, p * w.stride + r * w.dilation, q * w.stride + s * w.dilation, channel),
         "the input is padded: output pixel 0 begins at input pixel -pad."),
        ((image, p, q, channel), "that is the output pixel; add the kernel offset and take the padding off."),
        ((image, *_pixel(w, p, q, s, r), channel), "r and s are swapped: the kernel column s varies faster."),
        (late, "that is the order (image, row, column); here the 8 images of a group vary fastest."),
        (plain, "that is the order (r, s, all channels); here blocks of 32 channels come first, and vary slowest."),
        ((image, x, y, channel), "y and x are swapped."),
        (lambda a: same(a[1:], right[1:]), "the image is wrong: row % 8 within its group."),
        (lambda a: same((a[0], a[3]), (image, channel)), "image and channel are right; look at the pixel again."),
        (lambda a: same(a[:3], right[:3]), "the channel is wrong: 32 times the channel block, plus column % 32."),
    ]  # fmt: skip
    hint = "split the row into (group, p, q, image of 8) and the column into (channel block, r, s, channel of 32)."
    return Feedback(False, recognise(answer, mistakes, hint))


def _offset(w: ConvWorkload, column: int) -> tuple[int, int]:
    return column // 32 // w.s % w.r, column // 32 % w.s


def _pixel(w: ConvWorkload, p: int, q: int, r: int, s: int) -> tuple[int, int]:
    return p * w.stride + r * w.dilation - w.pad, q * w.stride + s * w.dilation - w.pad


def _datum(w: ConvWorkload, row: int, column: int) -> tuple[int, int, int, int]:
    group, pixel = divmod(row // 8, w.p * w.q)
    block = column // 32 // (w.r * w.s)
    y, x = _pixel(w, pixel // w.q, pixel % w.q, *_offset(w, column))
    return group * 8 + row % 8, y, x, block * 32 + column % 32


@checked
def check_waste(answer: Any, workload: ConvWorkload | str, arch: str = "sm_80") -> Feedback:
    """Check that a configuration of the paper's space wastes as few multiplications as possible and, among those, needs
    the fewest blocks."""
    if unanswered(answer):
        return Feedback(False, "Replace the ... with an MmaConfig.")
    if not shows(answer, Tiling):
        return Feedback(False, f"{short(answer)}: give an MmaConfig, such as MmaConfig(1, 2, 4, 4).")
    w = parse(workload)
    found = space(w, arch)
    try:
        found.index(answer)
    except InvalidInput as reason:
        return Feedback(False, f"That one is not in the space. {reason}")
    try:
        mine = tiling(w, answer, arch=arch)
    except InvalidInput as reason:
        return Feedback(False, f"That one cannot be built. {reason}")
    best, fewest = _least(w, arch)
    share = f"{mine.useful:.1%} of the multiplications are needed"
    if mine.useful >= best - 1e-9 and mine.blocks == fewest:
        return Feedback(True, f"{share}, in {fewest} blocks; no configuration of this space wastes less with fewer.")
    if mine.useful >= best - 1e-9:
        why = f"no configuration wastes less, but this one needs {mine.blocks} blocks, and {fewest} are enough."
        return Feedback(False, f"{share}: {why} What else can grow?")
    if answer.warp_row_tiles % (mine.shape[0] // 8):
        why = f"an instruction takes {mine.shape[0] // 8} pixels; a warp with one pixel computes it twice."
    elif any(
        band.outputs < size for bands, size in zip((mine.rows, mine.columns), mine.tile, strict=True) for band in bands
    ):
        why = f"tiles of {mine.tile[0]} x {mine.tile[1]} hang over the edge of the {w.p} x {w.q} map."
    else:
        why = "images, channels or filters are padded."
    return Feedback(False, f"{share}, {best:.1%} is possible: {why}")


@cache
def _least(w: ConvWorkload, arch: str) -> tuple[float, int]:
    """The largest useful share in the space, and the fewest blocks that reach it."""
    found = space(w, arch)
    cuts = [tiling(w, cast(MmaConfig, found.config(index)), arch=arch) for index in found.valid]
    best = max(cut.useful for cut in cuts)
    return best, min(cut.blocks for cut in cuts if cut.useful >= best - 1e-9)
