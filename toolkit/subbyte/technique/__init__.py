"""The techniques as plain data: duplicate-aware load, register-level packing, memory access, operand fragments."""

from subbyte.technique.accesses import Access, Accesses, accesses
from subbyte.technique.duplicates import Duplicates, duplicates
from subbyte.technique.fragments import Fragments, fragments
from subbyte.technique.memory import bank_conflicts, sectors
from subbyte.technique.mma import check_fragments
from subbyte.technique.packing import PackingProgram, PackingTrace, packing_program
from subbyte.technique.record import InfoRecord

__all__ = [
    "Access",
    "Accesses",
    "Duplicates",
    "Fragments",
    "InfoRecord",
    "PackingProgram",
    "PackingTrace",
    "accesses",
    "bank_conflicts",
    "check_fragments",
    "duplicates",
    "fragments",
    "packing_program",
    "sectors",
]
