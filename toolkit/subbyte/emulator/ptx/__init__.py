"""PTX instructions as C++ calls of the emulator's runtime.

Meaning of each instruction: PTX ISA, section "Instruction Set". An instruction that is not listed here is rejected by
name, never skipped. There is one module per kind of instruction, each with its ``EMITTERS``.
"""

from __future__ import annotations

from subbyte.emulator.ptx.translator import FIXED_INSTRUCTIONS, PtxTranslator

__all__ = ["FIXED_INSTRUCTIONS", "PtxTranslator"]
