"""An mma instruction executed from register words, and the check that a fragment map agrees with it.

The executor is written from the text of the PTX ISA register by register, not from the maps of
:mod:`subbyte.technique.fragments`, so that the check compares two independent statements.
"""

from __future__ import annotations

import numpy as np

from subbyte.errors import InvalidInput, WrongResult
from subbyte.technique.fragments import LANES, Fragments, Map

_GROUP = np.arange(LANES) // 4
_THREAD = np.arange(LANES) % 4

_ROWS_OF_A = {
    "m8n8k32.s4": (0,),
    "m16n8k32.s4": (0, 8),
    "m16n8k64.s4": (0, 8, 0, 8),
    "m16n8k32.s8": (0, 8, 0, 8),
    "m16n8k256.b1": (0, 8, 0, 8),
}
"""Row offset of each A register."""

_FIRST_OF_A = {
    "m8n8k32.s4": (0,),
    "m16n8k32.s4": (0, 0),
    "m16n8k64.s4": (0, 0, 32, 32),
    "m16n8k32.s8": (0, 0, 16, 16),
    "m16n8k256.b1": (0, 0, 128, 128),
}
"""Column offset of each A register."""

_FIRST_OF_B = {
    "m8n8k32.s4": (0,),
    "m16n8k32.s4": (0,),
    "m16n8k64.s4": (0, 32),
    "m16n8k32.s8": (0, 16),
    "m16n8k256.b1": (0, 128),
}
"""Row offset of each B register."""


def execute(instruction: str, a: np.ndarray, b: np.ndarray, c: np.ndarray, operation: str = "and.popc") -> np.ndarray:
    """D registers of ``mma.<instruction>``.

    ``a`` uint32 [32 lanes, A registers], ``b`` uint32 [32, B registers], ``c`` int32 [32, C registers]; returns int32
    like ``c``. For b1, ``operation`` is ``and.popc`` or ``xor.popc``. Raises InvalidInput for another operation.
    """
    bits = {"s4": 4, "s8": 8, "b1": 1}[instruction.rpartition(".")[2]]
    rows, first_a, first_b = _ROWS_OF_A[instruction], _FIRST_OF_A[instruction], _FIRST_OF_B[instruction]
    per = 32 // bits
    depth = max(first_b) + 4 * per
    left = np.zeros((8 * len(set(rows)), depth), np.int64)
    right = np.zeros((depth, 8), np.int64)
    for register, (row, first) in enumerate(zip(rows, first_a, strict=True)):
        for element, held in enumerate(_elements(a[:, register], bits)):
            left[_GROUP + row, first + per * _THREAD + element] = held
    for register, first in enumerate(first_b):
        for element, held in enumerate(_elements(b[:, register], bits)):
            right[first + per * _THREAD + element, _GROUP] = held
    product = _product(left, right, bits, operation)
    d = np.empty_like(c)
    for register in range(c.shape[1]):
        rows_of_d = _GROUP + (8 if register >= 2 else 0)
        d[:, register] = c[:, register] + product[rows_of_d, 2 * _THREAD + register % 2]
    return d


def scatter(map_: Map, matrix: np.ndarray, bits: int) -> np.ndarray:
    """The register words that hold ``matrix`` by a fragment map: uint32 [32 lanes, registers]."""
    words = np.zeros((LANES, len(map_[0])), np.uint32)
    mask = (1 << bits) - 1
    for lane, registers in enumerate(map_):
        for register, elements in enumerate(registers):
            held = sum((int(matrix[place]) & mask) << (bits * i) for i, place in enumerate(elements))
            words[lane, register] = held & 0xFFFFFFFF
    return words


def gather(map_: Map, words: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The int32 matrix whose elements lie one per register (operands C and D) in ``words`` [32, registers]."""
    matrix = np.zeros(shape, np.int32)
    for lane, registers in enumerate(map_):
        for register, ((place,)) in enumerate(registers):
            matrix[place] = words[lane, register]
    return matrix


def check_fragments(fragments: Fragments, seed: int = 0) -> None:
    """Raise WrongResult unless every map is a bijection and a random product through the instruction is right."""
    for operand in "abc":
        _check_bijection(fragments, operand)
    rng = np.random.default_rng(seed)
    low, high = (0, 2) if fragments.bits == 1 else (-(1 << (fragments.bits - 1)), 1 << (fragments.bits - 1))
    a = rng.integers(low, high, (fragments.m, fragments.k))
    b = rng.integers(low, high, (fragments.k, fragments.n))
    c = rng.integers(-1000, 1000, (fragments.m, fragments.n))
    words_a, words_b = scatter(fragments.a, a, fragments.bits), scatter(fragments.b, b, fragments.bits)
    accumulators = scatter(fragments.c, c, 32).view(np.int32)
    for operation in {support.operation for support in fragments.support}:
        d = execute(fragments.instruction, words_a, words_b, accumulators, operation)
        if not np.array_equal(gather(fragments.c, d, c.shape), c + _product(a, b, fragments.bits, operation)):
            raise WrongResult(f"{fragments.instruction} {operation}: a product through the fragment map is wrong")
    _check_places(fragments)


def _check_bijection(fragments: Fragments, operand: str) -> None:
    rows, columns = fragments.shape(operand)
    places = [place for registers in fragments.map(operand) for elements in registers for place in elements]
    wanted = {(row, column) for row in range(rows) for column in range(columns)}
    if len(places) != len(wanted) or set(places) != wanted:
        raise WrongResult(
            f"{fragments.instruction} operand {operand}: {len(places)} places hold {len(set(places) & wanted)} of "
            f"{len(wanted)} elements; each element must be held exactly once"
        )


def _check_places(fragments: Fragments) -> None:
    """One element at a time: a permutation of k in both A and B leaves the product right and is found here only."""
    for operand, others in (("a", fragments.k), ("b", fragments.k)):
        for k in range(others):
            matrix = np.zeros(fragments.shape(operand), np.int64)
            matrix[(slice(None), k) if operand == "a" else (k, slice(None))] = 1
            words = scatter(fragments.map(operand), matrix, fragments.bits)
            if not np.array_equal(words, _words_of_k(fragments, operand, k)):
                raise WrongResult(
                    f"{fragments.instruction} operand {operand}: k = {k} lies in other places than in the PTX ISA"
                )


def _words_of_k(fragments: Fragments, operand: str, k: int) -> np.ndarray:
    """Register words that are one where the PTX ISA puts the elements with this k."""
    per = 32 // fragments.bits
    firsts = (_FIRST_OF_A if operand == "a" else _FIRST_OF_B)[fragments.instruction]
    words = np.zeros((LANES, len(firsts)), np.uint32)
    for register, first in enumerate(firsts):
        inside = (first + per * _THREAD <= k) & (k < first + per * (_THREAD + 1))
        words[inside, register] = np.uint32(1 << fragments.bits * ((k - first) % per))
    return words


def _elements(words: np.ndarray, bits: int) -> list[np.ndarray]:
    mask, sign = (1 << bits) - 1, 0 if bits == 1 else 1 << (bits - 1)
    parts = [(words.astype(np.int64) >> (bits * i)) & mask for i in range(32 // bits)]
    return [(part ^ sign) - sign for part in parts]


def _product(a: np.ndarray, b: np.ndarray, bits: int, operation: str) -> np.ndarray:
    if bits > 1 or operation == "and.popc":
        return a @ b
    if operation != "xor.popc":
        raise InvalidInput(f"unknown operation {operation!r}: allowed: and.popc, xor.popc")
    return (a[:, :, None] ^ b[None, :, :]).sum(axis=1)
