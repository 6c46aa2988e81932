"""Callers' arrays to the words that a kernel reads, and its output words back to arrays: numpy only, no TVM, no GPU."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.device.launch import Argument
from subbyte.errors import InvalidInput, shown
from subbyte.families.registry import families
from subbyte.numerics import (
    Requantization,
    Thresholds,
    accumulator_bound,
    begun_words,
    check_values,
    float_words,
    from_nhwc_words,
    from_nhwcnc,
    storages,
    threshold_words,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.numerics.arrays import Words, check_array
from subbyte.numerics.float_requant import LARGEST_PRODUCT, LINE_SCALE_LOG2
from subbyte.numerics.fusion import ADDED, Fusion
from subbyte.numerics.layout import BLOCK_WORDS
from subbyte.numerics.pixel_blocks import BlockForm
from subbyte.numerics.pixel_strips import StripForm
from subbyte.numerics.planes import NB8R, PlaneWords, pack_planes, words_shape
from subbyte.numerics.residual import GROUP_CHANNELS, LARGEST, WIDE, from_residual, to_residual
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import Operand

NHWCNC = "nhwcnc"
FLOAT = "float"
"""Prefix of parameter layouts in floating point."""
BESIDE, PLACE = "&", 64
"""Separator between word layouts that are concatenated in one argument, for kernels that compute a batch together; each
part is zero-padded to a multiple of this many words."""
_BEGUN = re.compile(r"begun(\d+)most(\d+)$")
"""The layout for sums that start from a small number: the scale, and the largest starting value."""


def as_values(given: Any, operand: Operand, name: str) -> Any:
    """Callers' values, unpacked if they are bit planes in any layout. Raises InvalidInput for planes of
    another type."""
    if not isinstance(given, PlaneWords):
        return given
    if given.operand.dense != operand.dense:
        raise InvalidInput(f"{name} has bit planes of {given.operand.name}: this layer takes {operand.name}")
    return given.values()


def layout_words(form: str, values: NDArray[Any], operand: Operand) -> NDArray[np.uint32]:
    """Values [N,H,W,C] of a type in the layout and storage that ``form`` names: ``nhwcnc`` or ``nhwc``, followed after
    a dot by the storage if it is not the type's own (``nhwcnc.planes``). Raises InvalidInput."""
    if form == NB8R:
        return pack_planes(values, operand, NB8R).words
    if blocks := BlockForm.of(form):
        return to_nhwcnc(blocks.apply(values), operand)
    if strips := StripForm.of(form):
        return strips.apply(values)
    layout, storage = _parts(form)
    return (to_nhwcnc if layout == NHWCNC else to_nhwc_words)(values, operand, storage)


def _parts(form: str) -> tuple[str, str | None]:
    """The layout, and the storage if ``form`` names one."""
    layout, _, stored = form.partition(".")
    return layout, stored if stored in storages() else None


def activation_words(argument: Argument, workload: ConvWorkload, x: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Values [N,H,W,C] of the workload's type (int4: int8) as the words of argument ``A``.

    Its layout is one of :func:`layout_words`, or int4 prepared for the unpacked atom. Raises InvalidInput.
    """
    w, operand = workload, workload.precision.activations
    check_values(x, "x", operand, (w.n, w.h, w.w, w.c))
    words = layout_words(argument.form, x, operand)
    if "." in argument.form and _parts(argument.form)[1] is None:
        # In the order in which the atom splits a word: even channels, then odd ones, each times 16.
        words = np.stack([words << np.uint32(4), words], axis=-1) & np.uint32(LOW_NIBBLES)
    return _sized(argument, words)


def weight_words(argument: Argument, workload: ConvWorkload, w: NDArray[np.int8]) -> NDArray[np.uint32]:
    """Values [K,R,S,C] of the workload's type (int4: int8) as the prepared words of argument ``Wt``.

    Raises InvalidInput.
    """
    wl = workload
    check_values(w, "w", wl.precision.weights, (wl.k, wl.r, wl.s, wl.c))
    return _sized(argument, _beside([_weights(form, w) for form in argument.form.split(BESIDE)]))


def _weights(form: str, w: NDArray[np.int8]) -> NDArray[np.uint32]:
    found = (family.weight_words(form, w) for family in families().values())
    words = next((words for words in found if words is not None), None)
    if words is None:
        raise InvalidInput(f"weights in the form {form!r}: no kind of kernel reads it; build the kernel again")
    return words


def _beside(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Words concatenated, each part padded to its place; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([np.pad(words.reshape(-1), (0, -words.size % PLACE)) for words in parts])


def parameter_words(
    argument: Argument, workload: ConvWorkload, requant: Requantization | Thresholds, w: NDArray[np.int8]
) -> NDArray[np.int32]:
    """The words of argument ``Prm``, given the weights ``w`` [K,R,S,C]. Raises InvalidInput when the kernel's layout
    cannot express ``requant``."""
    check_channels(requant, workload)
    forms = argument.form.split(BESIDE)
    return _sized(argument, _beside([_parameters(form, workload, requant, w) for form in forms]))


def _parameters(
    form: str, workload: ConvWorkload, requant: Requantization | Thresholds, w: NDArray[np.int8]
) -> NDArray[np.int32]:
    thresholds = Thresholds.of(requant)
    for family in families().values():
        found = family.threshold_words(form, w, thresholds)
        if found is not None:
            return found
    if not isinstance(requant, Requantization):
        raise InvalidInput("this kernel multiplies and rounds sums: expected a Requantization, not Thresholds")
    if form.removesuffix(ADDED) == "general":
        return requant.words(workload.padded_filters)
    words = fast_words(form, workload, requant)
    if words is None:
        raise InvalidInput('this requantization is not exact in the kernel\'s fixed form; build with requant="general"')
    return words


def check_channels(requant: Requantization | Thresholds | None, workload: ConvWorkload) -> None:
    """Raise InvalidInput unless ``requant`` is a requantization, or thresholds, for the workload's output channels."""
    if not isinstance(requant, Requantization | Thresholds):
        raise InvalidInput(f"requant is {shown(requant)}: expected a Requantization, such as Requantization.from_scale")
    if requant.channels != workload.k:
        raise InvalidInput(f"requantization of {requant.channels} channels: the layer has {workload.k}")
    if requant.output != workload.precision.output.dense:
        raise InvalidInput(f"requantization to {requant.output}: the layer gives {workload.precision.output}")


def begun_most(form: str) -> int | None:
    """The largest value that sums can start from, for layouts in which they start from a small number; None for
    others."""
    begun = _BEGUN.match(form)
    return int(begun[2]) if begun else None


def on_line(workload: ConvWorkload, thresholds: Thresholds) -> bool:
    """Whether a single multiplication gives the codes of these thresholds, for every possible sum of the layer."""
    return threshold_words(thresholds, thresholds.channels, LINE_SCALE_LOG2, accumulator_bound(workload)) is not None


def fast_words(form: str, workload: ConvWorkload, requant: Requantization) -> NDArray[np.int32] | None:
    """The parameter words of a layout with one multiplication (``fixed8``, ``fixed0``, ``float8``,
    ``begun4most193548``); None if the layout is not exact for ``requant``."""
    padded = workload.padded_filters
    # Counted in products of int4 values: a sum of other types is as large as that of more or fewer such products.
    terms = ceil_div(accumulator_bound(workload), LARGEST_PRODUCT)
    if begun := _BEGUN.match(form):
        return begun_words(requant, padded, int(begun[1]), terms, int(begun[2]))
    if form.startswith(FLOAT):
        return float_words(requant, padded, int(form.removeprefix(FLOAT)), terms)
    return requant.fixed_words(padded, int(form.removesuffix(ADDED).removeprefix("fixed")))


def output_values(argument: Argument, workload: ConvWorkload, words: NDArray[Any], pool: int = 1) -> NDArray[Any]:
    """The words of argument ``Out`` as values of the output type (int4: int8) or int32 [N,P,Q,K], without padding;
    rows and columns divided by ``pool``."""
    w, operand = workload, workload.precision.output
    rows, columns = w.p // pool, w.q // pool
    layout, storage = _parts(argument.form)
    packed = layout == NHWCNC
    check_array(words, "words", np.dtype(argument.dtype).type)
    if words.size != prod(argument.shape):
        raise InvalidInput(f"words hold {words.size} elements, the kernel gives {prod(argument.shape)}")
    if argument.dtype == "int32":
        blocked = (w.batch_groups, rows, columns, w.filter_blocks, BATCH_GROUP, operand.block)
        flat = (w.batch_groups * BATCH_GROUP, rows, columns, w.padded_filters)
        raw = words.reshape(blocked).transpose(0, 4, 1, 2, 3, 5) if packed else words
        return np.ascontiguousarray(raw.reshape(flat)[: w.n, ..., : w.k])
    if argument.form == NB8R:
        shape = (w.n, rows, columns, w.k)
        return PlaneWords(words.reshape(words_shape(NB8R, operand, shape)), NB8R, operand, shape).values()
    if packed:
        blocks = words.reshape(w.batch_groups, rows, columns, -1, BATCH_GROUP, BLOCK_WORDS)
        return from_nhwcnc(blocks, w.n, w.k, operand, storage)
    return from_nhwc_words(words.reshape(w.batch_groups * BATCH_GROUP, rows, columns, -1), w.n, w.k, operand, storage)


def residual_words(argument: Argument, workload: ConvWorkload, fusion: Fusion, sums: NDArray[Any]) -> Words:
    """Sums int32 [N,P*by,Q*by,channels] of an earlier layer as the words of argument ``Res``. Raises InvalidInput, also
    if adding them to this layer's sums may exceed the bits in which the result is kept."""
    w, by = workload, fusion.residual_pool
    given = check_array(sums, "residual", np.int32, (w.n, w.p * by, w.q * by, fusion.residual))
    most = int(np.abs(given.astype(np.int64)).max(initial=0)) + accumulator_bound(w)
    if fusion.keep and most > LARGEST[fusion.keep_bits]:
        held = f"{fusion.keep_bits} bits, up to {LARGEST[fusion.keep_bits]}"
        raise InvalidInput(f"residual: with this layer's sums up to {most}; kept sums have {held}")
    return _sized(argument, to_residual(given, fusion.residual_bits).reshape(-1).view(np.uint32))


def added_words(argument: Argument, workload: ConvWorkload, operand: Operand, values: NDArray[Any]) -> Words:
    """Values [N,P,Q,K] of a type to be added, as the words of argument ``Res``. Raises InvalidInput."""
    w = workload
    check_values(values, "residual", operand, (w.n, w.p, w.q, w.k))
    return _sized(argument, layout_words(argument.form, values, operand))


def kept_sums(words: NDArray[Any], workload: ConvWorkload, fusion: Fusion) -> NDArray[np.int32]:
    """The words of argument ``Sum`` as int32 [N,P/by,Q/by,K], by = ``fusion.keep_pool``."""
    w, by = workload, fusion.keep_pool
    place = (ceil_div(w.n, BATCH_GROUP), w.p // by, w.q // by, ceil_div(w.k, GROUP_CHANNELS))
    flat = words.reshape(-1)
    if fusion.keep_bits == WIDE:
        return from_residual(flat.view(np.int32).reshape(*place, 2, BATCH_GROUP, 4, 4), w.n, w.k)
    return from_residual(flat.view(np.int16).reshape(*place, BATCH_GROUP, GROUP_CHANNELS), w.n, w.k)


def _sized(argument: Argument, words: NDArray[Any]) -> NDArray[Any]:
    if words.size != prod(argument.shape):
        raise InvalidInput(f"{argument.name} has {words.size} words, the kernel takes {prod(argument.shape)}")
    return np.ascontiguousarray(words.reshape(argument.shape))
