"""PTX instructions as C++ calls of the emulator's runtime.

Meaning of each instruction: PTX ISA, sections "Instruction Set". An instruction that is not listed here is refused
with its name, never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from subbyte.emulator.inline_asm import AsmStatement, split_outside
from subbyte.errors import Unsupported

FIXED_INSTRUCTIONS = ("bar.sync", "bar.warp.sync", "shfl.sync (intrinsic)", "", "", "", "", "")
_REGISTER_TYPES = {"pred": "bool", "16": "uint16_t", "32": "uint32_t", "64": "uint64_t"}
_LETTER_TYPES = {"r": "uint32_t", "h": "uint16_t", "f": "float"}
_MATRIX = re.compile(
    r"mma\.sync\.aligned\.m(\d+)n8k(\d+)\.row\.col\.s32\.([su][48]|b1)\.([su][48]|b1)\.s32(?:\.(xor|and)\.popc)?$"
)
_SHAPES = {(8, 16, 8), (16, 16, 8), (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4)} | {
    (8, 128, 1), (16, 128, 1), (16, 256, 1)
}  # fmt: skip
_SHUFFLE_MODES = {"bfly": "shuffle_bfly", "idx": "shuffle_idx", "down": "shuffle_down", "up": "shuffle_up"}
_BINARY = {"add": "+", "sub": "-", "mul.lo": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class PtxTranslator:
    """Translates asm statements and numbers the distinct instructions it met (``instructions``)."""

    def __init__(self) -> None:
        """Start with the instructions that CUDA intrinsics stand for."""
        self.instructions: list[str] = list(FIXED_INSTRUCTIONS)

    def statement(self, asm: AsmStatement) -> str:
        """C++ block with the effect of ``asm``; inputs are read first and outputs written last, as in hardware."""
        before, after = [], []
        for number, operand in enumerate(asm.operands):
            name = f"operand_{number}"
            ctype = _LETTER_TYPES.get(operand.letter, "auto")
            if operand.direction == "=":
                ctype = {"l": "uint64_t"}.get(operand.letter, ctype)
                before.append(f"{ctype} {name};")
            elif ctype == "auto":
                before.append(f"auto {name} = {operand.expression};")
            else:
                before.append(f"{ctype} {name} = ({ctype})({operand.expression});")
            if operand.direction:
                after.append(f"{operand.expression} = {name};")
        middle = [self._instruction(text) for text in _instructions(asm.ptx)]
        return "{ " + " ".join(before + middle + after) + " }"

    def _number(self, opcode: str) -> int:
        if opcode not in self.instructions:
            self.instructions.append(opcode)
        return self.instructions.index(opcode)

    def _instruction(self, text: str) -> str:
        if text.startswith(".reg"):
            return _registers(text)
        guard = re.match(r"@(!?)\s*(%?\w+)\s+", text)
        if guard:
            condition = guard.group(1) + _value(guard.group(2))
            return f"if ({condition}) {{ {self._instruction(text[guard.end() :])} }}"
        match = re.match(r"[^\s{\[]+", text)
        if match is None:
            raise Unsupported(f"the emulator cannot read the PTX text {text!r}")
        opcode, rest = match[0], text[match.end() :]
        operands = [part.strip() for part in split_outside(rest, ",") if part.strip()]
        for pattern, emit in _EMITTERS:
            if re.match(pattern, opcode):
                return emit(opcode, operands, self._number)
        raise Unsupported(
            f"the emulator does not know the PTX instruction {opcode!r}; it covers integer mma.sync, shfl.sync, prmt, "
            "cvt.pack, cp.async, ldmatrix, movmatrix, ld, st and simple integer arithmetic. Run this kernel on a GPU"
        )


def _instructions(ptx: str) -> list[str]:
    """The instructions of a PTX text, without comments and scoping braces."""
    ptx = re.sub(r"//[^\n]*|/\*.*?\*/", " ", ptx, flags=re.DOTALL)
    ptx = re.sub(r"\s+", " ", ptx).strip()
    found = []
    for text in ptx.split(";"):
        text = text.strip()
        while text.startswith(("{", "}")):
            text = text[1:].strip()
        if text:
            found.append(text)
    return found


def _registers(text: str) -> str:
    match = re.match(r"\.reg\s+\.(pred|[busf]?(16|32|64))\s+(.*)$", text)
    if match is None:
        raise Unsupported(f"the emulator cannot read the PTX declaration {text!r}")
    ctype = _REGISTER_TYPES[match.group(2) or "pred"]
    return " ".join(f"{ctype} {_value(name.strip())};" for name in match.group(3).split(","))


def _value(text: str) -> str:
    """A PTX operand as a C++ expression: %0, a register name or an immediate."""
    if re.fullmatch(r"%\d+", text):
        return f"operand_{text[1:]}"
    if re.fullmatch(r"[%A-Za-z_$][\w$]*", text):
        return "register_" + re.sub(r"\W", "_", text)
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return text
    raise Unsupported(f"the emulator cannot read the PTX operand {text!r}")


def _list(text: str) -> list[str]:
    """The members of a vector operand ``{a, b}``, or the single operand."""
    inner = text[1:-1] if text.startswith("{") else text
    return [_value(part.strip()) for part in inner.split(",")]


def _address(text: str) -> str:
    base, _, offset = text.strip("[] ").partition("+")
    pointer = f"emulator::generic({_value(base.strip())})"
    return f"emulator::offset_by({pointer}, {offset.strip()})" if offset else pointer


def _shared_address(text: str) -> str:
    base, _, offset = text.strip("[] ").partition("+")
    return f"uint32_t({_value(base.strip())}){'+' + offset.strip() if offset else ''}"


def _array(name: str, values: list[str]) -> str:
    return f"const uint32_t {name}[] = {{{', '.join(f'uint32_t({value})' for value in values)}}};"


def _matrix(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    match = _MATRIX.match(opcode)
    if match is None:
        raise Unsupported(f"the emulator does not know the matrix instruction {opcode!r}; it covers integer ones")
    m, k, a_type, b_type, operation = int(match[1]), int(match[2]), match[3], match[4], match[5]
    bits = int(a_type[1])
    if (m, k, bits) not in _SHAPES or int(b_type[1]) != bits or (bits == 1) != (operation is not None):
        raise Unsupported(f"the matrix instruction {opcode!r} does not exist in the PTX ISA")
    flags = ", ".join(str(flag).lower() for flag in (a_type[0] == "s", b_type[0] == "s", operation == "and"))
    d, a, b, c = (_list(text) for text in operands)
    stores = " ".join(f"{target} = d_[{i}];" for i, target in enumerate(d))
    return (
        f"{{ uint32_t d_[{len(d)}]; {_array('a_', a)} {_array('b_', b)} {_array('c_', c)} "
        f"emulator::matrix_multiply({number(opcode)}, {{{m}, {k}, {bits}, {flags}}}, d_, a_, b_, c_); {stores} }}"
    )


def _shuffle(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    mode = _SHUFFLE_MODES[opcode.split(".")[2]]
    target, _, predicate = operands[0].partition("|")
    value, by, control, mask = (_value(text) for text in operands[1:])
    flag = f"&{_value(predicate.strip())}" if predicate else "nullptr"
    return (
        f"{_value(target.strip())} = emulator::shuffle({number(opcode)}, emulator::{mode}, {value}, {by}, {control}, "
        f"{mask}, {flag});"
    )


def _copy_async(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    words = opcode.split(".")
    if "L2::cache_hint" in opcode or len(operands) > 4:
        raise Unsupported(f"the emulator does not know the cache policy operand of {opcode!r}")
    bytes_ = _value(operands[2])
    if bytes_ not in ("4", "8", "16") or (words[2] == "cg" and bytes_ != "16"):
        raise Unsupported(f"{opcode} copies 4, 8 or 16 bytes (cg only 16), not {operands[2]}")
    valid = _value(operands[3]) if len(operands) == 4 else bytes_
    target, source = _shared_address(operands[0]), _address(operands[1])
    return f"emulator::copy_async({number(opcode)}, {target}, {source}, {bytes_}, {valid});"


def _pack(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    kind = opcode.split(".")[3]
    target, a, b, *c = (_value(text) for text in operands)
    signed = str(kind[0] == "s").lower()
    return f"{target} = emulator::pack_saturated({kind[1:]}, {signed}, {a}, {b}, {c[0] if c else 0});"


def _load(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    count, targets = _access_words(opcode), _list(operands[0])
    reads = " ".join(f"{target} = loaded_.w[{i}];" for i, target in enumerate(targets))
    return f"{{ auto loaded_ = emulator::load_as<emulator::Words<{count}>>({_address(operands[1])}); {reads} }}"


def _store(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    count, values = _access_words(opcode), ", ".join(f"uint32_t({value})" for value in _list(operands[1]))
    return f"emulator::store_as({_address(operands[0])}, emulator::Words<{count}>{{{{{values}}}}});"


def _access_words(opcode: str) -> int:
    if not re.search(r"\.[bus]32$", opcode):
        raise Unsupported(f"the emulator knows ld and st of 32-bit words only, not {opcode!r}")
    match = re.search(r"\.v([24])\.", opcode)
    return int(match[1]) if match else 1


def _barrier(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    if operands != ["0"]:
        raise Unsupported(f"the emulator knows {opcode} 0 of the whole block only, not {', '.join(operands)}")
    return "emulator::block_barrier();"


def _load_matrix(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    targets = _list(operands[0])
    transposed = str(".trans" in opcode).lower()
    stores = " ".join(f"{target} = d_[{i}];" for i, target in enumerate(targets))
    return (
        f"{{ uint32_t d_[4]; emulator::load_matrix({number(opcode)}, {len(targets)}, {transposed}, d_, "
        f"{_shared_address(operands[1])}); {stores} }}"
    )


def _call(template: str) -> Callable[[str, list[str], Callable[[str], int]], str]:
    """An emitter that fills ``{0}``, ``{1}``, ... with the operands and ``{n}`` with the instruction's number."""

    def emit(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
        return template.format(*[_value(text) for text in operands], n=number(opcode) if "{n}" in template else 0)

    return emit


def _binary(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    target, a, b = (_value(text) for text in operands)
    name = opcode.rpartition(".")[0]
    if name in _BINARY:
        return f"{target} = {a} {_BINARY[name]} {b};"
    function = "shift_left" if name == "shl" else "shift_right_signed" if ".s32" in opcode else "shift_right"
    return f"{target} = emulator::{function}({a}, {b});"


def _compare(opcode: str, operands: list[str], number: Callable[[str], int]) -> str:
    _, operator, kind = opcode.split(".")
    target, a, b = (_value(text) for text in operands)
    ctype = "int32_t" if kind == "s32" else "uint32_t"
    return f"{target} = {ctype}({a}) {_COMPARE[operator]} {ctype}({b});"


_EMITTERS: tuple[tuple[str, Callable[[str, list[str], Callable[[str], int]], str]], ...] = (
    (r"mma\.sync\.", _matrix),
    (r"shfl\.sync\.(bfly|idx|down|up)\.b32$", _shuffle),
    (r"prmt\.b32$", _call("{0} = emulator::permute_bytes({1}, {2}, {3});")),
    (r"cvt\.pack\.sat\.[su][248]\.s32(\.b32)?$", _pack),
    (r"cp\.async\.c[ag]\.shared(::cta)?\.global(\.|$)", _copy_async),
    (r"cp\.async\.commit_group$", _call("emulator::copy_commit();")),
    (r"cp\.async\.wait_group$", _call("emulator::copy_wait({0});")),
    (r"cp\.async\.wait_all$", _call("emulator::copy_wait_all();")),
    (r"ld(?:\.volatile)?\.(global|shared)(::cta)?[\w.:]*$", _load),
    (r"st(\.volatile)?\.(global|shared)(::cta)?[\w.:]*$", _store),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x[124](\.trans)?\.shared(::cta)?\.b16$", _load_matrix),
    (r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16$", _call("{0} = emulator::move_matrix({n}, {1});")),
    (r"(bar\.sync|barrier\.sync(\.aligned)?)$", _barrier),
    (r"bar\.warp\.sync$", _call("emulator::warp_barrier({0});")),
    (r"dp4a\.s32\.s32$", _call("{0} = emulator::dot_product_4({1}, {2}, {3});")),
    (r"lop3\.b32$", _call("{0} = emulator::three_input_logic({1}, {2}, {3}, {4});")),
    (r"cvta\.to\.shared\.u64$", _call("{0} = emulator::shared_offset({1});")),
    (r"(mov\.[bus](32|64)|cvt\.u32\.u64)$", _call("{0} = {1};")),
    (r"(add|sub|mul\.lo|and|or|xor|shl|shr)\.[bus]32$", _binary),
    (r"setp\.(eq|ne|lt|le|gt|ge)\.[bus]32$", _compare),
    (r"selp\.[bus]32$", _call("{0} = {3} ? {1} : {2};")),
)
