"""Weights as bytes in the order of the matrix instruction's shared-memory operand, for every phase of a window."""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked
from subbyte.families.stem.plan import FORM, HELD, STEP_BYTES
from subbyte.families.stem.strings import strings
from subbyte.numerics.int4 import Int8Array, Words, check_int4
from subbyte.numerics.layout import pad_axis
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import CHANNEL_BLOCK, ConvWorkload


def weight_words(form: str, w: Int8Array) -> Words | None:
    """Weights in a plan's ``weight_form``; None for a form of another family. Raises InvalidInput."""
    kind, *parts = form.split(" ")
    if kind != FORM:
        return None
    spec, filters, *held = parts
    return prepare_weights(w, workload_named(spec), int(filters), held == HELD.split())


@checked
def prepare_weights(w: Int8Array, workload: ConvWorkload, filters: int, held: bool = False) -> Words:
    """int4 values int8 [K,R,S,C] -> uint32 [K'/filters][phases][steps][filters/8][2][8][4 words], K' = K up to 32s.

    The values are bytes. Column ``8 j + 2 q + e`` of an instruction is output channel ``q filters/4 + 2 j + e`` of the
    block, so that the sums of a thread, which holds columns 2 q and 2 q + 1 of each 8, are neighbouring channels. K
    consists of the bytes of a window's strings, in order; weights are zero for bytes outside the window, and for
    constants. With ``held`` row ``16 i + 8 e + g`` of an instruction is channel ``16 i + 2 g + e``: a thread holds
    rows g and g + 8 of 16, and so neighbouring channels. Raises InvalidInput.
    """
    one, lay = workload, strings(workload)
    given = pad_axis(check_int4(w, "w", (one.k, one.r, one.s, one.c)), 0, CHANNEL_BLOCK)
    count = len(given)
    whole = np.zeros((lay.phases, count, lay.steps * STEP_BYTES), np.int8)
    for phase in range(lay.phases):
        for place, (row, column, channel) in lay.taps(phase).items():
            whole[phase, :, place] = given[:, row, column, channel]
    if held:
        axes = whole.reshape(lay.phases, count // filters, filters // 16, 8, 2, lay.steps, 2, STEP_BYTES // 2)
        found = np.ascontiguousarray(axes.transpose(1, 0, 5, 2, 4, 6, 3, 7))  # slice, phase, step, i, e, half, g, byte
        return (
            found.reshape(count // filters, lay.phases, lay.steps, filters * STEP_BYTES).view("<u4").astype(np.uint32)
        )
    # axes: phase 0, slice 1, q 2, j 3, e 4, step 5, half 6, byte 7
    axes = whole.reshape(lay.phases, count // filters, 4, filters // 8, 2, lay.steps, 2, STEP_BYTES // 2)
    found = np.ascontiguousarray(axes.transpose(1, 0, 5, 3, 6, 2, 4, 7))  # slice, phase, step, j, half, q, e, byte
    return found.reshape(count // filters, lay.phases, lay.steps, filters * STEP_BYTES).view("<u4").astype(np.uint32)
