"""Instructions of a warp: mma.sync, shuffles, ldmatrix, stmatrix, movmatrix, elect, redux."""

from __future__ import annotations

import re

from subbyte.emulator.ptx.operands import Emitters, Number, array, call, flag, members, shared_offset, value
from subbyte.errors import Unsupported

_MATRIX = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n8k(\d+)\.row\.col\.s32\.([su][48]|b1)\.([su][48]|b1)\.s32(?:\.(xor|and)\.popc)?$"
)
_SHAPES = {(8, 16, 8), (16, 16, 8), (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4)} | {
    (8, 128, 1), (16, 128, 1), (16, 256, 1)
}  # fmt: skip
_SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"
"""The 2:4 instruction with the most products; its metadata must be in ascending order."""
_SHUFFLE_MODES = {"bfly": "shuffle_bfly", "idx": "shuffle_idx", "down": "shuffle_down", "up": "shuffle_up"}


def _matrix(opcode: str, operands: list[str], number: Number) -> str:
    if opcode == _SPARSE:
        return _sparse_matrix(opcode, operands, number)
    match = _MATRIX.match(opcode)
    if match is None:
        raise Unsupported(f"the emulator does not know the matrix instruction {opcode!r}; it covers integer ones")
    m, k, a_type, b_type, operation = int(match[1]), int(match[2]), match[3], match[4], match[5]
    bits = int(a_type[1])
    if (m, k, bits) not in _SHAPES or int(b_type[1]) != bits or (bits == 1) != (operation is not None):
        raise Unsupported(f"the matrix instruction {opcode!r} does not exist in the PTX ISA")
    flags = ", ".join(map(flag, (a_type[0] == "s", b_type[0] == "s", operation == "and", False)))
    return _issued(opcode, f"{m}, {k}, {bits}, {flags}", [members(text) for text in operands], number)


def _sparse_matrix(opcode: str, operands: list[str], number: Number) -> str:
    d, a, b, c, metadata, selector = operands
    if int(selector, 0) != 0:
        raise Unsupported(f"{opcode} supports only the sparsity selector 0, not {selector}")
    lists = [members(d), [*members(a), value(metadata)], members(b), members(c)]
    return _issued(opcode, "16, 64, 8, true, true, false, true", lists, number)


def _issued(opcode: str, shape: str, operands: list[list[str]], number: Number) -> str:
    d, a, b, c = operands
    stores = " ".join(f"{target} = d_[{i}];" for i, target in enumerate(d))
    return (
        f"{{ uint32_t d_[{len(d)}]; {array('a_', a)} {array('b_', b)} {array('c_', c)} "
        f"emulator::matrix_multiply({number(opcode)}, {{{shape}}}, d_, a_, b_, c_); {stores} }}"
    )


def _shuffle(opcode: str, operands: list[str], number: Number) -> str:
    mode = _SHUFFLE_MODES[opcode.split(".")[2]]
    target, _, predicate = operands[0].partition("|")
    word, by, control, mask = (value(text) for text in operands[1:])
    in_range = f"&{value(predicate.strip())}" if predicate else "nullptr"
    return (
        f"{value(target.strip())} = emulator::shuffle({number(opcode)}, emulator::{mode}, {word}, {by}, {control}, "
        f"{mask}, {in_range});"
    )


def _load_matrix(opcode: str, operands: list[str], number: Number) -> str:
    targets = members(operands[0])
    stores = " ".join(f"{target} = d_[{i}];" for i, target in enumerate(targets))
    return (
        f"{{ uint32_t d_[4]; emulator::load_matrix({number(opcode)}, {len(targets)}, {flag('.trans' in opcode)}, d_, "
        f"{shared_offset(operands[1])}); {stores} }}"
    )


def _store_matrix(opcode: str, operands: list[str], number: Number) -> str:
    words = members(operands[1])
    return (
        f"{{ {array('d_', words)} emulator::store_matrix({number(opcode)}, {len(words)}, {flag('.trans' in opcode)}, "
        f"d_, {shared_offset(operands[0])}); }}"
    )


def _elect(opcode: str, operands: list[str], number: Number) -> str:
    target, _, predicate = (text.strip() for text in operands[0].partition("|"))
    leader = "" if target == "_" else f"{value(target)} = leader_; "
    return (
        f"{{ const uint32_t leader_ = emulator::elect({number(opcode)}, {value(operands[1])}); {leader}"
        f"{value(predicate)} = emulator::special_register(2) == leader_; }}"
    )


EMITTERS: Emitters = (
    (r"mma\.(sync|sp)", _matrix),
    (r"shfl\.sync\.(bfly|idx|down|up)\.b32$", _shuffle),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x[124](\.trans)?\.shared(::cta)?\.b16$", _load_matrix),
    (r"stmatrix\.sync\.aligned\.m8n8\.x[124](\.trans)?\.shared(::cta)?\.b16$", _store_matrix),
    (r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16$", call("{0} = emulator::move_matrix({n}, {1});")),
    (r"elect\.sync$", _elect),
    (r"redux\.sync\.max\.u32$", call("{0} = emulator::largest_of_warp({n}, {1}, {2});")),
)
