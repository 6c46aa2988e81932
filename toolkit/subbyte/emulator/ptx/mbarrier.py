"""mbarrier: initialise, arrive, expect bytes, test and wait for a phase."""

from __future__ import annotations

from subbyte.emulator.ptx.operands import Emitters, Number, address, flag, value


def _one_operand(function: str) -> Emitters:
    def emit(opcode: str, operands: list[str], number: Number) -> str:
        rest = "".join(f", {value(text)}" for text in operands[1:])
        return f"emulator::{function}({number(opcode)}, {address(opcode, operands[0])}{rest});"

    name = {"mbarrier_init": "init", "mbarrier_invalidate": "inval", "mbarrier_expect": "expect_tx"}[function]
    return ((rf"mbarrier\.{name}(\.[\w:]+)*\.?b64$", emit),)


def _arrive(opcode: str, operands: list[str], number: Number) -> str:
    has_state = not operands[0].startswith("[")
    barrier, *amounts = operands[1:] if has_state else operands
    amount = value(amounts[0]) if amounts else "1"
    count, expected = ("1", amount) if ".expect_tx" in opcode else (amount, "0")
    target = f"{value(operands[0])} = " if has_state and operands[0] != "_" else ""
    releases = flag(".relaxed" not in opcode)
    arguments = f"{number(opcode)}, {address(opcode, barrier)}, {count}, {expected}, {releases}"
    return f"{target}emulator::mbarrier_arrive({arguments});"


def _test(opcode: str, operands: list[str], number: Number) -> str:
    over, barrier, phase = operands[0], operands[1], operands[2]
    flags = ", ".join(
        flag(condition) for condition in (".parity" in opcode, "try_wait" in opcode, ".relaxed" not in opcode)
    )
    arguments = f"{number(opcode)}, {address(opcode, barrier)}, {value(phase)}, {flags}"
    return f"{value(over)} = emulator::mbarrier_test({arguments});"


EMITTERS: Emitters = (
    *_one_operand("mbarrier_init"),
    *_one_operand("mbarrier_invalidate"),
    *_one_operand("mbarrier_expect"),
    (
        r"mbarrier\.arrive(\.expect_tx)?(\.(release|relaxed)(\.(cta|cluster))?)?(\.shared(::cta|::cluster)?)?\.b64$",
        _arrive,
    ),
    (
        r"mbarrier\.(test|try)_wait(\.parity)?(\.(acquire|relaxed)(\.(cta|cluster))?)?(\.shared(::cta)?)?\.b64$",
        _test,
    ),
)
