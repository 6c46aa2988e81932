"""Callers' arrays to the words a kernel reads, and its words back to arrays: numpy only, no TVM, no GPU."""

from __future__ import annotations

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
    check_int4,
    float_words,
    from_nhwc_words,
    from_nhwcnc,
    to_nhwc_words,
    to_nhwcnc,
)
from subbyte.numerics.int4 import check_array
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload

FLOAT = "float"
"""How the form of parameters in floating point begins."""


def activation_words(argument: Argument, workload: ConvWorkload, x: NDArray[np.int8]) -> NDArray[np.uint32]:
    """int4 values int8 [N,H,W,C] as the words of argument ``A``: packed, or ready for the unpacked atom.

    Raises InvalidInput.
    """
    w = workload
    check_int4(x, "x", (w.n, w.h, w.w, w.c))
    layout, _, stored = argument.form.partition(".")
    words = to_nhwcnc(x) if layout == "nhwcnc" else to_nhwc_words(x)
    if stored:
        # As the atom splits a word: even channels, then odd ones, each times 16.
        words = np.stack([words << np.uint32(4), words], axis=-1) & np.uint32(LOW_NIBBLES)
    return _sized(argument, words)


def weight_words(argument: Argument, workload: ConvWorkload, w: NDArray[np.int8]) -> NDArray[np.uint32]:
    """int4 values int8 [K,R,S,C] as the prepared words of argument ``Wt``. Raises InvalidInput."""
    wl = workload
    check_int4(w, "w", (wl.k, wl.r, wl.s, wl.c))
    for family in families().values():
        words = family.weight_words(argument.form, w)
        if words is not None:
            return _sized(argument, words)
    raise InvalidInput(f"weights in the form {argument.form!r}: no kind of kernel reads it; build the kernel again")


def parameter_words(argument: Argument, workload: ConvWorkload, requant: Requantization) -> NDArray[np.int32]:
    """The words of argument ``Prm``. Raises InvalidInput when the kernel's form cannot express ``requant``."""
    check_channels(requant, workload)
    if argument.form == "general":
        return _sized(argument, requant.words(workload.filter_blocks * CHANNEL_BLOCK))
    words = fast_words(argument.form, workload, requant)
    if words is None:
        raise InvalidInput('this requantization is not exact in the kernel\'s fixed form; build with requant="general"')
    return _sized(argument, words)


def check_channels(requant: Requantization, workload: ConvWorkload) -> None:
    """Raise InvalidInput unless ``requant`` is a requantization of the workload's output channels."""
    if not isinstance(requant, Requantization):
        raise InvalidInput(f"requant is {shown(requant)}: expected a Requantization, such as Requantization.from_scale")
    if requant.channels != workload.k:
        raise InvalidInput(f"requantization of {requant.channels} channels: the layer has {workload.k}")


def fast_words(form: str, workload: ConvWorkload, requant: Requantization) -> NDArray[np.int32] | None:
    """The parameter words of a form with one multiplication (``fixed8``, ``fixed0``, ``float8``); None where the form
    is not exact for ``requant``."""
    padded = workload.filter_blocks * CHANNEL_BLOCK
    if form.startswith(FLOAT):
        return float_words(requant, padded, int(form.removeprefix(FLOAT)), workload.r * workload.s * workload.c)
    return requant.fixed_words(padded, int(form.removeprefix("fixed")))


def output_values(argument: Argument, workload: ConvWorkload, words: NDArray[Any]) -> NDArray[Any]:
    """The words of argument ``Out`` as int8 (int4 values) or int32 [N,P,Q,K], padding cropped."""
    w = workload
    packed = argument.form == "nhwcnc"
    check_array(words, "words", np.dtype(argument.dtype).type)
    if words.size != prod(argument.shape):
        raise InvalidInput(f"words hold {words.size} elements, the kernel gives {prod(argument.shape)}")
    if argument.dtype == "int32":
        blocked = (w.batch_groups, w.p, w.q, w.filter_blocks, BATCH_GROUP, CHANNEL_BLOCK)
        flat = (w.batch_groups * BATCH_GROUP, w.p, w.q, w.filter_blocks * CHANNEL_BLOCK)
        raw = words.reshape(blocked).transpose(0, 4, 1, 2, 3, 5) if packed else words
        return np.ascontiguousarray(raw.reshape(flat)[: w.n, ..., : w.k])
    if packed:
        return from_nhwcnc(words.reshape(w.batch_groups, w.p, w.q, w.filter_blocks, BATCH_GROUP, 4), w.n, w.k)
    shape = (w.batch_groups * BATCH_GROUP, w.p, w.q, w.filter_blocks * 4)
    return from_nhwc_words(words.reshape(shape), w.n, w.k)


def _sized(argument: Argument, words: NDArray[Any]) -> NDArray[Any]:
    if words.size != prod(argument.shape):
        raise InvalidInput(f"{argument.name} has {words.size} words, the kernel takes {prod(argument.shape)}")
    return np.ascontiguousarray(words.reshape(argument.shape))
