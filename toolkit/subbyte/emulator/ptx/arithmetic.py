"""Arithmetic, comparisons and conversions of one thread."""

from __future__ import annotations

from subbyte.emulator.ptx.operands import Emitters, Number, call, flag, value

_BINARY = {"add": "+", "sub": "-", "mul.lo": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _signed(opcode: str) -> str:
    return "int32_t" if opcode.endswith(".s32") else "uint32_t"


def _pack(opcode: str, operands: list[str], number: Number) -> str:
    kind = opcode.split(".")[3]
    target, a, b, *c = (value(text) for text in operands)
    return f"{target} = emulator::pack_saturated({kind[1:]}, {flag(kind[0] == 's')}, {a}, {b}, {c[0] if c else 0});"


def _binary(opcode: str, operands: list[str], number: Number) -> str:
    target, a, b = (value(text) for text in operands)
    name = opcode.rpartition(".")[0]
    if name in _BINARY:
        return f"{target} = {a} {_BINARY[name]} {b};"
    function = "shift_left" if name == "shl" else "shift_right_signed" if ".s32" in opcode else "shift_right"
    return f"{target} = emulator::{function}({a}, {b});"


def _extreme(opcode: str, operands: list[str], number: Number) -> str:
    target, a, b = (value(text) for text in operands)
    name, ctype = opcode.partition(".")[0], _signed(opcode)
    return f"{target} = {name}({ctype}({a}), {ctype}({b}));"


def _multiply_high(opcode: str, operands: list[str], number: Number) -> str:
    target, a, b, *c = (value(text) for text in operands)
    wide, ctype = ("int64_t" if opcode.endswith(".s32") else "uint64_t"), _signed(opcode)
    return f"{target} = uint32_t({wide}({ctype}({a})) * {wide}({ctype}({b})) >> 32){f' + {c[0]}' if c else ''};"


def _multiply_wide(opcode: str, operands: list[str], number: Number) -> str:
    target, a, b, *c = (value(text) for text in operands)
    wide, ctype = ("int64_t" if opcode.endswith(".s32") else "uint64_t"), _signed(opcode)
    return f"{target} = uint64_t({wide}({ctype}({a})) * {wide}({ctype}({b}))){f' + {c[0]}' if c else ''};"


def _compare(opcode: str, operands: list[str], number: Number) -> str:
    _, operator, _ = opcode.split(".")
    target, a, b = (value(text) for text in operands)
    ctype = _signed(opcode)
    return f"{target} = {ctype}({a}) {_COMPARE[operator]} {ctype}({b});"


EMITTERS: Emitters = (
    (r"prmt\.b32$", call("{0} = emulator::permute_bytes({1}, {2}, {3});")),
    (r"cvt\.pack\.sat\.[su](2|4|8|16)\.s32(\.b32)?$", _pack),
    (r"fma\.rn\.f32$", call("{0} = __builtin_fmaf({1}, {2}, {3});")),
    (r"dp4a\.s32\.s32$", call("{0} = emulator::dot_product_4({1}, {2}, {3});")),
    (r"lop3\.b32$", call("{0} = emulator::three_input_logic({1}, {2}, {3}, {4});")),
    (r"(mov\.[bus](32|64)|cvt\.u32\.u64)$", call("{0} = {1};")),
    (r"(add|sub|mul\.lo|and|or|xor|shl|shr)\.[bus]32$", _binary),
    (r"mad\.lo\.[us]32$", call("{0} = {1} * {2} + {3};")),
    (r"(min|max)\.[us]32$", _extreme),
    (r"max\.s16x2$", call("{0} = emulator::largest_halves({1}, {2});")),
    (r"(mul|mad)\.hi\.[us]32$", _multiply_high),
    (r"(mul|mad)\.wide\.[us]32$", _multiply_wide),
    (r"not\.b32$", call("{0} = ~{1};")),
    (r"neg\.s32$", call("{0} = 0 - {1};")),
    (r"bfind\.u32$", call("{0} = emulator::highest_bit({1});")),
    (r"popc\.b32$", call("{0} = __builtin_popcount({1});")),
    (r"setp\.(eq|ne|lt|le|gt|ge)\.[bus]32$", _compare),
    (r"selp\.[bus]32$", call("{0} = {3} ? {1} : {2};")),
)
