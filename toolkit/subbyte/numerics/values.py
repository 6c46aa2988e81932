"""Values of an operand type as numpy arrays: checked, drawn at random, converted to codes and back.

Arrays hold values (what is multiplied), in the type's own dtype; codes (what is stored) are uint8. The type's table of
values maps one to the other, so that an encoding registered elsewhere needs nothing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import whole
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import check_array
from subbyte.numerics.weight_blocks import block_sums, check_blocks, spread_out, strongest
from subbyte.workload.operand import Operand

Codes = NDArray[np.uint8]
_NONE = -1
"""Stands for a code where a number between least and largest is not a value of the type."""


def check_values(array: Any, name: str, operand: Operand, shape: Sequence[int | None] | None = None) -> NDArray[Any]:
    """``array`` unchanged if it has the operand's dtype, ``shape`` (None = any size) and only values of the type.

    For N:M sparse operands, channels are the last axis. Raises InvalidInput naming the array, what it is and what is
    expected.
    """
    checked = check_array(array, name, np.dtype(operand.dtype).type, shape)
    if not checked.size:
        return checked
    least, largest = checked.min(), checked.max()
    if least < operand.least or largest > operand.largest:
        raise InvalidInput(
            f"{name} holds values from {least} to {largest}: expected {operand.name} values {operand.least} to "
            f"{operand.largest}; subbyte.numerics.quantize scales and clips real numbers"
        )
    if not operand.contiguous:
        wrong = checked[_codes(operand)[checked.astype(np.int64) - operand.least] == _NONE]
        if wrong.size:
            known = ", ".join(map(str, sorted(set(operand.values))[:16]))
            raise InvalidInput(f"{name} holds the value {wrong[0]}: expected {operand.name} values {known}")
    _check_sparsity(checked, name, operand)
    return checked


def encode(values: NDArray[Any], operand: Operand) -> Codes:
    """Values of the type (any shape, in its dtype) as its codes, uint8. They are not checked."""
    codes: Codes
    if _low_bits(operand):
        bytes_ = values.view(np.uint8) if values.dtype.itemsize == 1 else values.astype(np.uint8)
        codes = bytes_ & np.uint8((1 << operand.bits) - 1)
    else:
        codes = _codes(operand)[values.astype(np.int32) - operand.least].astype(np.uint8)
    return codes


def decode(codes: Codes, operand: Operand) -> NDArray[Any]:
    """Codes uint8 (any shape) as values in the type's dtype."""
    found: NDArray[Any]
    if _low_bits(operand) and operand.dtype == "int8":
        unused = 8 - operand.bits  # the sign bit, if there is one, is shifted to the top and back
        found = (codes << np.uint8(unused)).view(np.int8 if operand.least < 0 else np.uint8)
        found >>= found.dtype.type(unused)
        return found.view(np.int8)
    found = np.array(operand.values, dtype=operand.dtype)[codes]
    return found


@cache
def _low_bits(operand: Operand) -> bool:
    """Whether each code is the low bits of its value, as in signed and unsigned types."""
    mask = (1 << operand.bits) - 1
    return operand.contiguous and all(value & mask == code for code, value in enumerate(operand.values))


@cache
def _codes(operand: Operand) -> NDArray[np.int16]:
    """The code of each number from least to largest, -1 if it has none."""
    table = np.full(operand.largest - operand.least + 1, _NONE, dtype=np.int16)
    for code, value in reversed(tuple(enumerate(operand.values))):  # of codes with the same value, the lowest stays
        table[value - operand.least] = code
    return table


def random_values(operand: Operand, shape: Sequence[int], rng: np.random.Generator) -> NDArray[Any]:
    """Values drawn uniformly from the type's whole range, in its dtype.

    For an N:M sparse type the last axis is channels, and of M neighbours M - N at random positions are 0. For weights
    with blocks of zeros the first axis is filters, the last one channels, and random blocks are live.
    """
    sizes = tuple(whole(size, "size", 1) for size in shape)
    if operand.contiguous:
        drawn = rng.integers(operand.least, operand.largest + 1, sizes, np.dtype(operand.dtype))
    else:
        drawn = np.array(sorted(set(operand.values)), operand.dtype)[rng.integers(0, len(set(operand.values)), sizes)]
    if operand.live_percent is not None:
        counts = block_sums(np.ones(sizes, np.int32))
        mask = strongest(rng.random(counts.shape), operand.live_percent)
        return np.where(spread_out(mask, sizes), drawn, np.zeros_like(drawn))
    if operand.group is None:
        return drawn
    kept, among = operand.group
    groups = _groups(drawn, among)
    order = rng.random(groups.shape).argsort(axis=-1)
    groups = np.where(order < kept, groups, np.zeros_like(groups))
    return np.ascontiguousarray(groups.reshape(*sizes[:-1], -1)[..., : sizes[-1]])


def _groups(values: NDArray[Any], among: int) -> NDArray[Any]:
    """[..., C] as [..., ceil(C / M), M], with zeros at the end."""
    widths = [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % among)]
    padded = np.pad(values, widths)
    return padded.reshape(*values.shape[:-1], -1, among)


def _check_sparsity(values: NDArray[Any], name: str, operand: Operand) -> None:
    if operand.live_percent is not None:
        check_blocks(values, name, operand)
    if operand.group is None:
        return
    kept, among = operand.group
    if values.ndim == 0:
        raise InvalidInput(f"{name} is a single value: expected channels as its last axis")
    counts = np.count_nonzero(_groups(values, among), axis=-1)
    if (counts > kept).any():
        place = [int(axis[0]) for axis in np.nonzero(counts > kept)]
        where = [*place[:-1], f"{place[-1] * among}:{min((place[-1] + 1) * among, values.shape[-1])}"]
        raise InvalidInput(
            f"{name}[{', '.join(map(str, where))}] has {counts[tuple(place)]} values other "
            f"than 0: expected at most {kept} of {among} neighbouring channels ({operand.name})"
        )
