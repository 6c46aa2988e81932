"""Loads, stores, the copies of cp.async, and addresses."""

from __future__ import annotations

import re

from subbyte.emulator.ptx.operands import Emitters, Number, address, call, members, shared_offset, value
from subbyte.errors import Unsupported


def _copy_async(opcode: str, operands: list[str], number: Number) -> str:
    words = opcode.split(".")
    if "L2::cache_hint" in opcode or len(operands) > 4:
        raise Unsupported(f"the emulator does not know the cache policy operand of {opcode!r}")
    size = value(operands[2])
    if size not in ("4", "8", "16") or (words[2] == "cg" and size != "16"):
        raise Unsupported(f"{opcode} copies 4, 8 or 16 bytes (cg only 16), not {operands[2]}")
    valid = value(operands[3]) if len(operands) == 4 else size
    target, source = shared_offset(operands[0]), address("", operands[1])
    return f"emulator::copy_async({number(opcode)}, {target}, {source}, {size}, {valid});"


def _load(opcode: str, operands: list[str], number: Number) -> str:
    count, targets = _access_words(opcode), members(operands[0])
    reads = " ".join(f"{target} = loaded_.w[{i}];" for i, target in enumerate(targets))
    pointer = address(opcode, operands[1])
    return f"{{ auto loaded_ = emulator::load_as<emulator::Words<{count}>>({pointer}); {reads} }}"


def _store(opcode: str, operands: list[str], number: Number) -> str:
    count, values = _access_words(opcode), ", ".join(f"uint32_t({text})" for text in members(operands[1]))
    return f"emulator::store_as({address(opcode, operands[0])}, emulator::Words<{count}>{{{{{values}}}}});"


def _access_words(opcode: str) -> int:
    if not re.search(r"\.[bus]32$", opcode):
        raise Unsupported(f"the emulator knows ld and st of 32-bit words only, not {opcode!r}")
    match = re.search(r"\.v([24])\.", opcode)
    return int(match[1]) if match else 1


_SPACE = r"\.(global|shared)(::cta|::cluster)?[\w.:]*$"
EMITTERS: Emitters = (
    (r"cp\.async\.c[ag]\.shared(::cta)?\.global(\.|$)", _copy_async),
    (r"cp\.async\.commit_group$", call("emulator::copy_commit();")),
    (r"cp\.async\.wait_group$", call("emulator::copy_wait({0});")),
    (r"cp\.async\.wait_all$", call("emulator::copy_wait_all();")),
    (r"ld(?:\.volatile|\.weak|\.relaxed\.\w+|\.acquire\.\w+)?" + _SPACE, _load),
    (r"st(?:\.volatile|\.weak|\.relaxed\.\w+|\.release\.\w+)?" + _SPACE, _store),
    (r"cvta\.to\.shared\.u64$", call("{0} = emulator::shared_offset({1});")),
    (r"mapa\.shared::cluster\.u32$", call("{0} = emulator::map_to_rank({1}, {2});")),
    (r"prefetch\.global\.L[12](::\w+)?$", lambda *_: "emulator::step();"),
)
