"""An mma instruction executed on register words, and the check that a fragment map agrees with it.

The executor is written register by register from the text of the PTX ISA, not from the maps in
:mod:`subbyte.device.fragments`, so the check compares two independent definitions.
"""

from __future__ import annotations

import numpy as np

from subbyte.arguments import checked, whole
from subbyte.device.fragments import LANES, Fragments, Map, fragments
from subbyte.device.shared_operand import PIECE_BYTES
from subbyte.errors import InvalidInput, WrongResult

_GROUP = np.arange(LANES) // 4
_THREAD = np.arange(LANES) % 4

_ROWS_OF_A = {
    "m8n8k32.s4": (0,),
    "m8n8k128.b1": (0,),
    "m16n8k32.s4": (0, 8),
    "m16n8k64.s4": (0, 8, 0, 8),
    "m16n8k32.s8": (0, 8, 0, 8),
    "m16n8k256.b1": (0, 8, 0, 8),
}
"""Row offset of each A register."""

_FIRST_OF_A = {
    "m8n8k32.s4": (0,),
    "m8n8k128.b1": (0,),
    "m16n8k32.s4": (0, 0),
    "m16n8k64.s4": (0, 0, 32, 32),
    "m16n8k32.s8": (0, 0, 16, 16),
    "m16n8k256.b1": (0, 0, 128, 128),
}
"""Column offset of each A register."""

_FIRST_OF_B = {
    "m8n8k32.s4": (0,),
    "m8n8k128.b1": (0,),
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
    """The register words that hold ``matrix`` according to a fragment map: uint32 [lanes, registers]."""
    words = np.zeros((len(map_), len(map_[0])), np.uint32)
    mask = (1 << bits) - 1
    for lane, registers in enumerate(map_):
        for register, elements in enumerate(registers):
            held = sum((int(matrix[place]) & mask) << (bits * i) for i, place in enumerate(elements))
            words[lane, register] = held & 0xFFFFFFFF
    return words


def gather(map_: Map, words: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The int32 matrix whose elements are stored one per register (operands C and D) in ``words`` [lanes,
    registers]."""
    matrix = np.zeros(shape, np.int32)
    for lane, registers in enumerate(map_):
        for register, ((place,)) in enumerate(registers):
            matrix[place] = words[lane, register]
    return matrix


@checked
def check_fragments(record: Fragments, seed: int = 0) -> None:
    """Raise WrongResult unless every map is a bijection and a random product computed with the instruction is right."""
    for operand in "abc":
        _check_bijection(record, operand)
    rng = np.random.default_rng(whole(seed, "seed"))
    low, high = (0, 2) if record.bits == 1 else (-(1 << (record.bits - 1)), 1 << (record.bits - 1))
    a = rng.integers(low, high, (record.m, record.k))
    b = rng.integers(low, high, (record.k, record.n))
    c = rng.integers(-1000, 1000, (record.m, record.n))
    words = scatter(record.a, a, record.bits)
    accumulators = scatter(record.c, c, 32).view(np.int32)
    for operation in {support.operation for support in record.support}:
        if record.shared:
            d = execute_warpgroup(record.dtype, words, b, accumulators)
        else:
            d = execute(record.instruction, words, scatter(record.b, b, record.bits), accumulators, operation)
        if not np.array_equal(gather(record.c, d, c.shape), c + _product(a, b, record.bits, operation)):
            raise WrongResult(f"{record.instruction} {operation}: a product through the fragment map is wrong")
    if record.shared:
        _check_warps(record)
        _check_shared(record)
    else:
        _check_places(record)


def execute_warpgroup(dtype: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D registers of a wgmma of 128 threads whose A is ``s8`` or ``b1`` (and.popc) words, uint32 [128, 4].

    ``b`` is the matrix [k, n] in shared memory, ``c`` int32 [128, n / 2]. For eight columns, each warp's part is
    an mma.sync m16n8 with the same k; the result is composed of these.
    """
    instruction = {"s8": "m16n8k32.s8", "b1": "m16n8k256.b1"}[dtype]
    words = fragments(instruction)
    d = np.empty_like(c)
    for tile in range(b.shape[1] // 8):
        right = scatter(words.b, b[:, 8 * tile : 8 * tile + 8], words.bits)
        for first in range(0, len(a), LANES):
            lanes, registers = slice(first, first + LANES), slice(4 * tile, 4 * tile + 4)
            d[lanes, registers] = execute(instruction, a[lanes], right, c[lanes, registers])
    return d


def _check_warps(record: Fragments) -> None:
    """Raise WrongResult unless each warp holds its sixteen rows as the instruction of a single warp would."""
    base = fragments({"s8": "m16n8k32.s8", "b1": "m16n8k256.b1"}[record.dtype])
    for operand, columns in (("a", 1), ("c", record.n // 8)):
        for thread, registers in enumerate(record.map(operand)):
            warp, lane = divmod(thread, LANES)
            wanted = tuple(
                tuple((row + 16 * warp, column + 8 * tile) for row, column in held)
                for tile in range(columns)
                for held in base.map(operand)[lane]
            )
            if registers != wanted:
                raise WrongResult(f"{record.instruction} operand {operand}: thread {thread} holds other elements")


def _check_shared(record: Fragments) -> None:
    """Raise WrongResult unless each layout holds B once, the descriptor's fields lead to every piece, and the map is
    the first layout's."""
    per = 8 // record.bits
    for piece, (held,) in enumerate(record.b):
        wanted = [record.shared[0].address(n, k // per) for k, n in held]
        if wanted != [PIECE_BYTES * piece + i // per for i in range(len(held))]:
            raise WrongResult(f"{record.instruction} operand b: piece {piece} of shared memory holds other elements")
    for layout in record.shared:
        places = [layout.address(n, k // per) for n in range(record.n) for k in range(0, record.k, per)]
        if len(set(places)) != len(places):
            raise WrongResult(f"{record.instruction} swizzle {layout.swizzle}: two elements of B lie in one byte")
        for n in range(record.n):
            halves = [layout.address(n, half * PIECE_BYTES) for half in range(2)]
            if halves != _pieces_of_row(layout.descriptor(), n):
                raise WrongResult(f"{record.instruction} swizzle {layout.swizzle}: column {n} of B lies elsewhere")


def _pieces_of_row(descriptor: int, row: int) -> list[int]:
    """Byte addresses of a row's two pieces, from the fields of a descriptor as the PTX ISA defines them."""
    leading, stride = ((descriptor >> shift & 0x3FFF) * 16 for shift in (16, 32))
    group, line = divmod(row, 8)
    chunks = {0: 1, 1: 8, 2: 4, 3: 2}[descriptor >> 62]  # pieces per row of the layout
    if chunks == 1:
        return [group * stride + line * 16, group * stride + line * 16 + leading]
    start = group * stride + line * chunks * 16
    exchanged = start // 128 % chunks
    return [start + (half ^ exchanged) * 16 for half in range(2)]


def _check_bijection(record: Fragments, operand: str) -> None:
    rows, columns = record.shape(operand)
    places = [place for registers in record.map(operand) for elements in registers for place in elements]
    wanted = {(row, column) for row in range(rows) for column in range(columns)}
    if len(places) != len(wanted) or set(places) != wanted:
        raise WrongResult(
            f"{record.instruction} operand {operand}: {len(places)} places hold {len(set(places) & wanted)} of "
            f"{len(wanted)} elements; each element must be held exactly once"
        )


def _check_places(record: Fragments) -> None:
    """Check one element at a time: permuting k in both A and B leaves the product right and is only found here."""
    for operand, others in (("a", record.k), ("b", record.k)):
        for k in range(others):
            matrix = np.zeros(record.shape(operand), np.int64)
            matrix[(slice(None), k) if operand == "a" else (k, slice(None))] = 1
            words = scatter(record.map(operand), matrix, record.bits)
            if not np.array_equal(words, _words_of_k(record, operand, k)):
                raise WrongResult(
                    f"{record.instruction} operand {operand}: k = {k} lies in other places than in the PTX ISA"
                )


def _words_of_k(record: Fragments, operand: str, k: int) -> np.ndarray:
    """Register words that are nonzero only at elements with this k, placed as the PTX ISA defines."""
    per = 32 // record.bits
    firsts = (_FIRST_OF_A if operand == "a" else _FIRST_OF_B)[record.instruction]
    words = np.zeros((LANES, len(firsts)), np.uint32)
    for register, first in enumerate(firsts):
        inside = (first + per * _THREAD <= k) & (k < first + per * (_THREAD + 1))
        words[inside, register] = np.uint32(1 << record.bits * ((k - first) % per))
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
