"""Exercises of the notebook on a binary network: the class of an image from integers, the largest possible sum, the
bytes of a residual."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.exercises.answers import recognise, same, unanswered
from subbyte.exercises.feedback import Feedback, call, short
from subbyte.networks import Network, network
from subbyte.networks.parameters import Logits
from subbyte.networks.steps import RESIDUAL_LIMIT
from subbyte.networks.timeline import residual_bytes
from subbyte.networks.trained import test_images

CLASSIFIER = "digits.w1a1@64"
"""The trained network whose test images are classified."""
Integers = NDArray[np.int64]


@checked
def check_class(function: Any) -> Feedback:
    """Check ``function(sums, multiplier, bias)``: the class of an image from the last layer's sums int64 [10] and the
    integers int64 [10] into which its batch normalization was folded, for every test image of digits."""
    sums, logits = _last_sums()
    right = logits.apply(sums[:, None, None].astype(np.int32)).argmax(axis=1).tolist()
    found = []
    for number, one in enumerate(sums):
        given, problem = call(function, one.copy(), logits.multiplier, logits.bias, case=f"test image {number}")
        if problem is not None:
            return problem
        found.append(given)
    differing = [number for number, pair in enumerate(zip(found, right, strict=True)) if not same(*pair)]
    if not differing:
        return Feedback(
            True, f"All {len(right)} classes are the same, computed only from integers: one product, one sum, argmax."
        )
    wrong = {
        "That is the largest sum. Each class has a batch normalization of its own: a multiplier and a bias.": sums,
        "The bias is missing: a class that the network rarely predicts has a smaller one.": sums * logits.multiplier,
        "The multiplier is missing: sums and bias have different units.": sums + logits.bias,
    }
    named = next((words for words, given in wrong.items() if same(found, given.argmax(axis=1).tolist())), "")
    first = differing[0]
    shown = f"For test image {first} you return {short(found[first])}; the right answer is {right[first]}."
    return Feedback(False, f"{len(differing)} of {len(right)} classes differ. {named or shown}")


@cache
def _last_sums() -> tuple[Integers, Logits]:
    """Sums int64 [N, 10] of the test images, and their logits' scale."""
    trained = network(CLASSIFIER)
    images, _ = test_images(trained)
    sums = trained.reference(images).layers[-1].sums
    assert sums is not None
    return sums[:, 0, 0].astype(np.int64), trained.parameters.logits


@checked
def check_largest_sum(answer: Any, name: str, layer: str) -> Feedback:
    """Check the largest possible sum of a layer that adds a residual, for any operands."""
    made, one = _adding(name, layer)
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number: the largest sum there can be.")
    first, source = made.layers[0], made.layer(one.residual)
    right, before = made.largest_sums()[layer], made.largest_sums()[one.residual]
    if same(answer, right):
        held = "16 bits hold that." if right <= RESIDUAL_LIMIT else "16 bits do not hold that for certain."
        return Feedback(True, f"{one.largest_sum:,} of its own, {before:,} of what it adds: {held}")
    mistakes: list[tuple[Any, str]] = [
        (one.largest_sum, f"that is what {layer} sums itself; the sums of {one.residual} are added."),
        (before, f"that is what {one.residual} gives; {layer} adds its own."),
        (2 * one.largest_sum, f"{one.residual} is another layer, with sums of another size."),
    ]
    if source is first:
        products = first.workload.r * first.workload.s * first.workload.c
        mistakes += [
            (one.largest_sum + products, "the first layer reads pixels of 8 bits, from -128 to 127."),
            (one.largest_sum + 127 * products, "a pixel can be -128, and the weight -1."),
            (one.largest_sum + 255 * products, "a pixel is its 8 bits less 128: -128 to 127."),
        ]
    hint = "products of a window times the largest of one, of the layer itself and of all whose sums came before."
    return Feedback(False, recognise(answer, mistakes, hint))


@checked
def check_residual(answer: Any, name: str, layer: str) -> Feedback:
    """Check how many bytes of sums a layer that adds a residual and keeps its own sums moves, for the whole batch."""
    made, one = _adding(name, layer)
    read, written, bits = residual_bytes(made, one)
    if unanswered(answer):
        return Feedback(False, "Replace the ... with a number of bytes: sums that are read, and sums that are written.")
    total = read + written
    if same(answer, total):
        own = made.batch * int(np.prod(one.output)) * one.workload.precision.output.bits // 8
        return Feedback(True, f"{read:,} read and {written:,} written; the bits of its output are {own:,} bytes.")
    mistakes: list[tuple[Any, str]] = [
        (read, f"those are read; {layer} keeps its own sums for a later layer, too."),
        (written, f"those are written; the sums of {one.residual} are read first."),
        (2 * read, f"{layer} has not as many sums as {one.residual}: look at its rows, columns and channels."),
        (total // bits, f"a residual is sums, not bits: {bits // 8} bytes each."),
        (8 * total // bits, f"a sum takes {bits // 8} bytes, not one."),
        (32 * total // bits, f"{bits} bits hold these sums."),
        (total // made.batch, f"that is for one image of {made.batch}."),
    ]
    hint = "images x rows x columns x channels of both layers, times the bytes of a sum."
    # a layer of the sizes of the one before has read == written: then the sum of both comes first
    return Feedback(False, recognise(answer, [one for one in mistakes if one[0] and one[0] != total], hint))


def _adding(name: str, layer: str) -> tuple[Network, Any]:
    """A network, and its layer that adds a residual. Raises InvalidInput."""
    made = network(name)
    one = made.layer(layer)
    if not one.residual:
        adding = ", ".join(each.name for each in made.layers if each.residual)
        raise InvalidInput(f"layer {layer} of {made.name} adds no residual; these do: {adding or 'none'}")
    return made, one
