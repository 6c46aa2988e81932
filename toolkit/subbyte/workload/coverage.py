"""Limits that follow from a convolution's sizes alone: those of every kernel, and those of the mma family.

Whether any kernel computes a workload is answered by :func:`subbyte.kernel.coverage.covered`.
"""

from __future__ import annotations

from dataclasses import replace

from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload, ceil_div
from subbyte.workload.operand import OFFSET, SIGNED, UNSIGNED, Operand
from subbyte.workload.precision import INT4, ZERO, Precision

FOUR_BITS = (INT4.activations, Operand(4, UNSIGNED))
"""Activation types that a matrix instruction takes as nibbles or, unpacked, as bytes times 16."""
BYTE_WEIGHTS = tuple(Operand(bits, encoding) for bits in (4, 8) for encoding in (SIGNED, OFFSET))
"""Weight types that go with 8-bit activations: both encodings have the values of int4 or int8."""
TAKE_BYTES = "those on mma.sync, and dense ones on wgmma,"
WHOLE = (SIGNED, UNSIGNED, OFFSET)
"""Encodings whose codes an instruction multiplies as whole integers, with or without a zero point."""
LARGEST_KERNEL = 7
STRIDES = (1, 2)
DILATIONS = (1, 2)
WORD_LIMIT = 1 << 31
"""Word indices of the kernels are 32-bit."""


def too_large(words: int) -> str | None:
    """Why no kernel takes a tensor of this many 32-bit words; None when kernels do."""
    return f"index: a tensor of {words} words exceeds 32-bit indices; split the batch" if words >= WORD_LIMIT else None


def largest_tensor(workload: ConvWorkload) -> int:
    """32-bit words of the largest of x, w and y, packed in their types, with the least padding that any kernel
    needs."""
    w, types = workload, workload.precision
    images, filters = w.batch_groups * BATCH_GROUP, ceil_div(w.k, CHANNEL_BLOCK) * CHANNEL_BLOCK
    return max(
        images * w.h * w.w * w.channel_blocks * types.activations.block_words,
        images * w.p * w.q * w.filter_blocks * types.output.block_words,
        filters * w.r * w.s * ceil_div(w.c, types.weights.block) * types.weights.block_words,
    )


def dense_types(types: Precision) -> Precision:
    """The same types with dense weights and activations."""
    return replace(types, weights=types.weights.dense, activations=types.activations.dense)


def int4_alone(workload: ConvWorkload) -> str | None:
    """Why kernels for int4 times int4 cannot take the workload's operands; None when they can. Sparse int4 weights are
    accepted: their zeros are multiplied like any other value."""
    types = workload.precision
    return None if dense_types(types) == INT4 else f"operands: these kernels compute {INT4}, not {types.text} ({types})"


def four_bits_alone(workload: ConvWorkload) -> str | None:
    """Why kernels for int4 weights and four-bit activations, signed or unsigned, cannot take the workload's operands;
    None when they can. The output may be of either type, too."""
    types = dense_types(workload.precision)
    fits = types.weights == INT4.weights and types.padding == ZERO
    if fits and types.activations in FOUR_BITS and types.output in FOUR_BITS:
        return None
    whole = "" if _not_whole(types) else f"; {TAKE_BYTES} take 8-bit activations and outputs, and zero points"
    said = f"{INT4}, or with uint4 activations or outputs, not {types.text} ({types})"
    return f"operands: these kernels compute {said}{whole}"


def whole_codes(workload: ConvWorkload) -> str | None:
    """Why kernels that multiply whole codes of 4 or 8 bits cannot take the workload's operands; None when they can.

    4-bit activations go with int4 weights, 8-bit activations with weights of 4 or 8 bits. Weights, activations and
    outputs may be signed or unsigned, with or without a zero point.
    """
    reason, types = four_bits_alone(workload), dense_types(workload.precision)
    if reason is None or not _not_whole(types):
        return None
    if types.activations.bits != 8:
        return reason
    return f"{reason}; with 8-bit activations they take int8 or int4 weights, outputs of 4 or 8 bits, padding zero"


def _not_whole(types: Precision) -> bool:
    a, w, o = types.activations, types.weights, types.output
    weights = (INT4.weights,) if a.bits == 4 else BYTE_WEIGHTS
    sides = all(one.bits in (4, 8) and one.encoding in WHOLE for one in (a, o))
    return not (sides and w in weights and types.padding == ZERO)


def int4_twin(workload: ConvWorkload) -> ConvWorkload | None:
    """The same layer with int4 activations and outputs, whose kernels differ only in the type that the instructions
    name; None if the workload is int4 already, or has operands of other bits."""
    types = workload.precision
    if four_bits_alone(workload) or (types.activations.dense, types.output) == (INT4.activations, INT4.output):
        return None
    signed = replace(types.activations, encoding=SIGNED)
    return replace(workload, precision=replace(types, activations=signed, output=INT4.output))


def sum_limit(workload: ConvWorkload, scale_log2: int) -> str | None:
    """Why the workload's sums, which the matrix instruction leaves multiplied by 2^``scale_log2``, may overflow an
    int32 accumulator; None when they cannot."""
    depth, largest = workload.r * workload.s * workload.c, workload.precision.largest_product
    limit = ceil_div(1 << (31 - scale_log2), largest)
    if depth < limit:
        return None
    return f"accumulator: R*S*C = {depth} reaches {limit}, where 32 bits could overflow"


def warp_limit(workload: ConvWorkload) -> str | None:
    """Why no kernel of the mma family covers the workload (kernel size, stride or dilation); None when some do.

    Channels and images are never a reason: zeros pad them to multiples of 32 and 8.
    """
    wl = workload
    if max(wl.r, wl.s) > LARGEST_KERNEL:
        return f"kernel size {wl.r}x{wl.s}: kernels cover 1 to {LARGEST_KERNEL} in each direction"
    if wl.stride not in STRIDES:
        return f"stride {wl.stride}: kernels cover stride {' and '.join(map(str, STRIDES))}"
    if wl.dilation not in DILATIONS:
        return f"dilation {wl.dilation}: kernels cover dilation {' and '.join(map(str, DILATIONS))}"
    return None
