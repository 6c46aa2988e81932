"""Weights as bytes in the order of the matrix instruction's shared-memory operand, for every phase of a window."""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked
from subbyte.families.stem.plan import FORM, STEP_BYTES
from subbyte.families.stem.strips import LANES, strips
from subbyte.numerics.int4 import Int8Array, Words, check_int4
from subbyte.numerics.layout import pad_axis
from subbyte.numerics.pixel_strips import WORD_VALUES
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload


def weight_words(form: str, w: Int8Array) -> Words | None:
    """Weights in a plan's ``weight_form``; None for a form of another family. Raises InvalidInput."""
    kind, *parts = form.split(" ")
    if kind != FORM:
        return None
    spec, filters = parts
    return prepare_weights(w, workload_named(spec), int(filters))


@checked
def prepare_weights(w: Int8Array, workload: ConvWorkload, filters: int) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 [K'/filters][phases][steps][filters/8][2][8][4 words], K' = K up to 32s.

    The values are bytes, times 16. Column ``8 j + 2 q + e`` of an instruction is output channel ``q filters/4 + 2 j +
    e`` of the block: the sums of a thread, which has columns 2 q and 2 q + 1 of each 8, are neighbouring channels. Of
    lane q's word of a step, even values are bytes 4 q to 4 q + 3 of K, odd ones the same from 16 on. Zeros where a word
    holds what the window does not. Raises InvalidInput.
    """
    one, lay = workload, strips(workload)
    given = pad_axis(check_int4(w, "w", (one.k, one.r, one.s, one.c)), 0, CHANNEL_BLOCK)
    count = len(given)
    taps = np.zeros((count, one.r, one.s, lay.channels), np.int8)
    taps[..., : one.c] = given
    lines = np.zeros((lay.phases, count, lay.window_rows, lay.row_words * WORD_VALUES), np.int8)
    for phase in range(lay.phases):
        first = lay.phase_values(phase)
        lines[phase, :, : one.r, first : first + one.s * lay.channels] = taps.reshape(count, one.r, -1)
    words = lines.reshape(lay.phases, count, -1, WORD_VALUES)[:, :, : lay.steps * LANES]
    # axes: phase 0, slice 1, q 2, j 3, e 4, step 5, lane 6, value / 2 7, value % 2 8
    split = words.reshape(lay.phases, count // filters, 4, filters // 8, 2, lay.steps, LANES, WORD_VALUES // 2, 2)
    ordered = split.transpose(1, 0, 5, 3, 8, 2, 4, 6, 7)  # slice, phase, step, j, odd, q, e, lane, value / 2
    found = np.ascontiguousarray(ordered.astype(np.uint8) << np.uint8(4))
    return found.reshape(count // filters, lay.phases, lay.steps, filters * STEP_BYTES).view("<u4").astype(np.uint32)
