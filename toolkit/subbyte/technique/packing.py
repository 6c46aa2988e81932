"""Register-level packing as a program that runs on data: which lane moves which 4-bit value where."""

from subbyte.families.mma.explain.packing import (
    PackingProgram,
    PackingRun,
    PackingTrace,
    RegisterState,
    Step,
    StepState,
    StoredWord,
    packing_program,
)

__all__ = [
    "PackingProgram",
    "PackingRun",
    "PackingTrace",
    "RegisterState",
    "Step",
    "StepState",
    "StoredWord",
    "packing_program",
]
