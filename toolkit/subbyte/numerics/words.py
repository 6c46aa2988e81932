"""Codes of a few bits in 32-bit words: packed elements, or bit planes.

Two storage formats, by name:

``packed``  element i of a word at bits b*i, for b = 1, 2, 4 and 8, which divide a word evenly
``planes``  one plane of one-bit elements for each bit of the code, least bit first, for any b: of 128 channels, plane
            t is words 4t to 4t + 3, channel c at bit c % 32 of word c // 32 of its plane

The default is packed, unless the type's bits do not divide a word evenly (3, 5, 6 and 7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import one_of
from subbyte.errors import InvalidInput
from subbyte.numerics.arrays import Words, check_array, describe
from subbyte.numerics.values import Codes, check_values, decode, encode
from subbyte.workload.operand import BLOCK_BITS, WORD_BITS, Operand

PACKED, PLANES = "packed", "planes"
BYTE = 8


@dataclass(frozen=True)
class Storage:
    """A storage format for codes. ``pack(codes, bits)`` converts uint8 [..., unit * m] to uint32 [..., words * m].

    ``unit`` and ``words`` are functions of the bits: how many elements are stored together, and how many words they
    take. ``unpack`` is the inverse; ``fits`` says which bits it supports.
    """

    name: str
    unit: Callable[[int], int]
    words: Callable[[int], int]
    pack: Callable[[Codes, int], Words]
    unpack: Callable[[Words, int], Codes]
    fits: Callable[[int], bool] = lambda bits: True


def _pack_elements(codes: Codes, bits: int) -> Words:
    together = BYTE // bits
    bytes_ = codes[..., 0::together].copy()
    for place in range(1, together):
        bytes_ |= codes[..., place::together] << np.uint8(place * bits)
    return np.ascontiguousarray(bytes_).view("<u4").astype(np.uint32, copy=False)


def _unpack_elements(words: Words, bits: int) -> Codes:
    bytes_ = np.ascontiguousarray(words).astype("<u4", copy=False).view(np.uint8)
    together = BYTE // bits
    codes = np.empty((*bytes_.shape[:-1], together * bytes_.shape[-1]), dtype=np.uint8)
    for place in range(together):
        codes[..., place::together] = bytes_ >> np.uint8(place * bits) & np.uint8((1 << bits) - 1)
    return codes


def _pack_planes(codes: Codes, bits: int) -> Words:
    blocks = codes.reshape(*codes.shape[:-1], -1, 1, BLOCK_BITS)
    planes = blocks >> np.arange(bits, dtype=np.uint8)[:, None] & np.uint8(1)  # [..., blocks, bits, 128]
    words = _pack_elements(planes, 1)
    return words.reshape(*codes.shape[:-1], -1)


def _unpack_planes(words: Words, bits: int) -> Codes:
    planes = _unpack_elements(words.reshape(*words.shape[:-1], -1, bits, BLOCK_BITS // WORD_BITS), 1)
    codes = (planes << np.arange(bits, dtype=np.uint8)[:, None]).sum(axis=-2, dtype=np.uint8)
    return codes.reshape(*words.shape[:-1], -1)


_STORAGES: dict[str, Storage] = {
    PACKED: Storage(
        PACKED, lambda bits: WORD_BITS // bits, lambda bits: 1, _pack_elements, _unpack_elements,
        lambda bits: BYTE % bits == 0,
    ),
    PLANES: Storage(
        PLANES, lambda bits: BLOCK_BITS, lambda bits: bits * BLOCK_BITS // WORD_BITS, _pack_planes, _unpack_planes
    ),
}  # fmt: skip


def register_storage(storage: Storage) -> None:
    """Register a storage format under its name. Raises InvalidInput if the name is taken by another format."""
    if _STORAGES.get(storage.name, storage) != storage:
        raise InvalidInput(f"storage {storage.name!r} exists; choose another name")
    _STORAGES[storage.name] = storage


def unregister_storage(name: str) -> None:
    """Remove a storage format, for tests."""
    _STORAGES.pop(name, None)


def storages() -> tuple[str, ...]:
    """The names of all storage formats."""
    return tuple(_STORAGES)


def storage_of(operand: Operand, name: str | None = None) -> Storage:
    """The storage format with this name; without a name, that of the type. Raises InvalidInput if it does not fit the
    type."""
    found = _STORAGES[one_of(name or (PACKED if operand.packed else PLANES), "storage", _STORAGES)]
    if not found.fits(operand.bits):
        raise InvalidInput(f"storage={found.name!r}: {operand.bits} bits fill no word; {PLANES!r} takes any type")
    return found


def channel_unit(operand: Operand, storage: str | None = None) -> int:
    """Channels of one image that are stored together in a block of an activation layout: whole runs of 128 bits (of
    each plane), 32 for int4, 128 for one bit and for bit planes."""
    how = storage_of(operand, storage)
    least = how.unit(operand.bits)
    return least * max(1, BLOCK_BITS // WORD_BITS // how.words(operand.bits))


def pack(values: NDArray[Any], operand: Operand, storage: str | None = None) -> Words:
    """Values of the type [..., unit * m] in its dtype -> uint32 [..., words * m].

    Raises InvalidInput for another dtype, a number that is not a value of the type, or a last axis that is not a
    multiple of the unit (8 for int4, 128 for bit planes).
    """
    checked = check_values(values, "values", operand)
    unit = storage_of(operand, storage).unit(operand.bits)
    if checked.ndim == 0 or checked.shape[-1] % unit:
        raise InvalidInput(f"values is {describe(values)}: expected a last axis that is a multiple of {unit}")
    return pack_codes(encode(checked, operand), operand, storage)


def pack_codes(codes: Codes, operand: Operand, storage: str | None = None) -> Words:
    """Codes uint8 [..., unit * m] -> uint32 [..., words * m]; they are not checked."""
    return storage_of(operand, storage).pack(codes, operand.bits)


def unpack(words: Words, operand: Operand, storage: str | None = None) -> NDArray[Any]:
    """uint32 [..., words * m] -> values of the type [..., unit * m] in its dtype; the inverse of :func:`pack`.

    Raises InvalidInput for another dtype, or a last axis that is not a multiple of the words stored together.
    """
    how = storage_of(operand, storage)
    together = how.words(operand.bits)
    checked = check_array(words, "words", np.uint32)
    if checked.ndim == 0 or checked.shape[-1] % together:
        raise InvalidInput(f"words is {describe(words)}: expected a last axis that is a multiple of {together}")
    return decode(how.unpack(checked, operand.bits), operand)
