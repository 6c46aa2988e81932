"""Bulk copies and asynchronous stores between global memory and the shared memory of a cluster's blocks."""

from __future__ import annotations

from subbyte.emulator.ptx.operands import Emitters, Number, address, array, call, members, value
from subbyte.errors import Unsupported

_CLUSTER = "shared::cluster"


def _load(opcode: str, operands: list[str], number: Number) -> str:
    target, source, size, barrier, *rest = operands
    ranks = value(rest.pop(0)) if ".multicast::cluster" in opcode else "0"
    if len(rest) != ("L2::cache_hint" in opcode):
        raise Unsupported(f"the emulator cannot read the operands {', '.join(operands)} of {opcode!r}")
    return (
        f"emulator::bulk_load({number(opcode)}, {address(_CLUSTER, target)}, {address('', source)}, {value(size)}, "
        f"{address(_CLUSTER, barrier)}, {ranks});"
    )


def _store(opcode: str, operands: list[str], number: Number) -> str:
    target, source, size = (*operands[:2], operands[2])
    return f"emulator::bulk_store({number(opcode)}, {address('', target)}, {address('', source)}, {value(size)});"


def _store_async(opcode: str, operands: list[str], number: Number) -> str:
    words = members(operands[1])
    return (
        f"{{ {array('d_', words)} emulator::store_async({number(opcode)}, {address(_CLUSTER, operands[0])}, d_, "
        f"{len(words)}, {address(_CLUSTER, operands[2])}); }}"
    )


_HINT = r"(\.L2::cache_hint)?$"
EMITTERS: Emitters = (
    (
        r"cp\.async\.bulk\.shared::(cluster|cta)\.global\.mbarrier::complete_tx::bytes(\.multicast::cluster)?" + _HINT,
        _load,
    ),
    (r"cp\.async\.bulk\.shared::cluster\.shared::cta\.mbarrier::complete_tx::bytes$", _load),
    (r"cp\.async\.bulk\.global\.shared::cta\.bulk_group" + _HINT, _store),
    (r"cp\.async\.bulk\.commit_group$", call("emulator::bulk_commit();")),
    (r"cp\.async\.bulk\.wait_group(\.read)?$", call("emulator::bulk_wait({0});")),
    (r"cp\.async\.bulk\.prefetch\.L2\.global" + _HINT, lambda *_: "emulator::step();"),
    (r"st\.async(\.weak)?\.shared::cluster\.mbarrier::complete_tx::bytes(\.v[24])?\.[bus]32$", _store_async),
)
