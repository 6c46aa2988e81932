"""Exercises of the notebook on the data layout: predicting sectors, computing an address, fixing an access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from subbyte.arguments import checked
from subbyte.device.memory import SectorUse
from subbyte.errors import InvalidInput, did_you_mean
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, short
from subbyte.families.mma.config import MmaConfig
from subbyte.technique import accesses
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse

LAYOUTS = ("nhwc", "hwnc", "nhwcnc")


@checked
def check_sectors(answer: Any, workload: ConvWorkload | str) -> Feedback:
    """Check the sectors that 8 lanes transfer to load 8 images x 32 channels of one pixel, for each layout by name.

    Raises InvalidInput for an unknown layout.
    """
    if not isinstance(answer, Mapping):
        return Feedback(False, f"Give a dict with the sectors of {', '.join(LAYOUTS)}, not {short(answer)}.")
    for name in answer:
        if name not in LAYOUTS:
            raise InvalidInput(f"unknown layout {name!r}: {did_you_mean(name, LAYOUTS)}")
    w = parse(workload)
    right = {name: _tile(w, name) for name in LAYOUTS}
    given = {name: answer.get(name) for name in LAYOUTS}
    open_ = [name for name, value in given.items() if unanswered(value)]
    wrong = [n for n in LAYOUTS if n not in open_ and not same(given[n], len(right[n].sectors))]
    if wrong:
        lines = [f"{name} = {given[name]}: {_why(given[name], right[name])}" for name in wrong]
        return Feedback(False, " ".join(lines))
    if open_:
        return Feedback(False, f"Replace the ... of {', '.join(open_)} with a number of sectors.")
    return Feedback(
        True,
        "; ".join(f"{name}: {len(use.sectors)} sectors, {use.efficiency:.0%} useful" for name, use in right.items()),
    )


def _tile(w: ConvWorkload, layout: str) -> SectorUse:
    use = accesses(w, _any_config(w), layout).tile.sectors
    assert use is not None
    return use


def _any_config(w: ConvWorkload) -> MmaConfig:
    """A configuration with one stage buffer and the smallest block: the tile access does not depend on it."""
    return MmaConfig(1, 1, 1, min(4, 4 * w.filter_blocks))


def _why(answer: Any, use: SectorUse) -> str:
    mistakes: list[tuple[Any, str]] = [
        (use.useful_bytes, "those are bytes; a sector has 32 of them."),
        (use.moved_bytes, "those are the bytes moved; a sector has 32 of them."),
        (16, "32 int4 channels are 16 bytes, half a sector: an image never needs two."),
        (use.lines, "that is the number of 128-byte lines; memory moves 32-byte sectors."),
        (4, "128 bytes would fit 4 sectors if they lay together; here they do not."),
        (1, "a sector has 32 bytes, the tile has 128."),
        (8, "8 pieces, yes, but here two neighbouring pieces share a sector."),
    ]
    hint = "8 pieces of 16 bytes: how far is one image's piece from the next, and which pieces share 32 bytes?"
    return recognise(answer, mistakes, hint)


@checked
def check_byte(answer: Any, workload: ConvWorkload | str, place: tuple[int, int, int, int]) -> Feedback:
    """Check the byte in NHWCnc that holds input element ``place`` = (n, h, w, c). Raises InvalidInput outside it."""
    w = parse(workload)
    n, h, x, c = place
    if not all(0 <= at < size for at, size in zip(place, (w.n, w.h, w.w, w.c), strict=True)):
        raise InvalidInput(f"place {place}: the input is [{w.n}, {w.h}, {w.w}, {w.c}]")
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of bytes from the start of the tensor.")
    blocks = w.channel_blocks
    block = ((n // 8 * w.h + h) * w.w + x) * blocks + c // 32
    right = block * 128 + n % 8 * 16 + c % 32 // 2
    if same(answer, right):
        return Feedback(
            True, f"Block {block} of 128 bytes, image {n % 8} of it, byte {c % 32 // 2} of that image's 16."
        )
    plain = (((n * w.h + h) * w.w + x) * blocks * 32 + c) // 2
    mistakes: list[tuple[Any, str]] = [
        (block * 256 + n % 8 * 32 + c % 32, "that counts elements: two int4 values share a byte."),
        (plain, "that is NHWC: in NHWCnc the image within its group of 8 comes after the channel block."),
        ((plain * 2), "that is NHWC, counted in elements."),
        (block * 128 + c % 32 // 2, "the image within its group of 8 is missing: 16 bytes each."),
        (block * 128 + n * 16 + c % 32 // 2, "groups of 8 images are outermost: within a block only n % 8 counts."),
        (block * 128 + c % 32 * 4 + n % 8 // 2, "n and c are swapped: an image's 32 channels are neighbours."),
        (block * 128 + n % 8 * 16 + c % 32, "within the image two channels share a byte: c % 32 // 2."),
        (block * 128 + n % 8 * 4 + c % 32 // 8, "those are 32-bit words in the last terms; a word has 4 bytes."),
        (right // 4, "that is the 32-bit word; a word has 4 bytes."),
        (block, "that is the number of the block; it has 128 bytes."),
        (block * 128, "that is where the block begins; the image and the channel have a place within it."),
        (block * 128 + n % 8 * 16, "that is where the image's 16 bytes begin; two channels share each of them."),
        (((n // 8 * w.h + h) * w.w + x) * 128 + n % 8 * 16 + c % 32 // 2,
         f"each pixel has {blocks} blocks of 32 channels."),
        (((n // 8 * w.w + x) * w.h + h) * blocks * 128 + c // 32 * 128 + n % 8 * 16 + c % 32 // 2,
         "row and column are swapped."),
    ]  # fmt: skip
    hint = "number the blocks by (n // 8, h, w, c // 32), last one fastest; a block has 128 bytes, 16 for each image."
    return Feedback(False, recognise(answer, mistakes, hint))


@checked
def check_chunk(answer: Any, workload: ConvWorkload | str, config: MmaConfig) -> Feedback:
    """Check the smallest ``chunk`` for which the activation loads of ``config`` in NHWC waste nothing."""
    if unanswered(answer):
        return Feedback(False, "Replace the ... with 1, 2, 4 or 8.")
    if not any(same(answer, chunk) for chunk in (1, 2, 4, 8)):
        return Feedback(False, f"{short(answer)}: chunk may be 1, 2, 4 or 8.")
    found = {}
    for chunk in (1, 2, 4, 8):
        try:
            found[chunk] = _efficiency(workload, replace(config, chunk=chunk))
        except InvalidInput as reason:
            if chunk == answer:
                return Feedback(False, f"That one cannot be built. {reason}")
    right = min((chunk for chunk, efficiency in found.items() if efficiency == 1), default=None)
    if answer == right:
        return Feedback(True, "Two neighbouring channel blocks of a pixel are 32 bytes: one whole sector. The output "
                              "stores stay as they are: they depend on the output's layout, not on chunk.")  # fmt: skip
    if found[answer] < 1:
        return Feedback(False, f"With chunk {answer} a lane's 16 bytes are still the only ones used in their sector: "
                               f"{found[answer]:.0%} useful. Which bytes are their neighbours in NHWC?")  # fmt: skip
    return Feedback(False, f"With chunk {answer} nothing is wasted, but a smaller one does it too.")


def _efficiency(workload: ConvWorkload | str, config: MmaConfig) -> float:
    """Useful share of the bytes transferred by the activation loads of one warp of the first block, in NHWC."""
    uses = [access.sectors for access in accesses(workload, config, "nhwc").of("activation load")]
    moved = sum(use.moved_bytes for use in uses if use is not None)
    return sum(use.useful_bytes for use in uses if use is not None) / moved if moved else 1.0
