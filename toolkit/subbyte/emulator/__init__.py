"""Runs generated CUDA text on the CPU, thread by thread, and reports hazards and every memory access.

Needs a C++ compiler and no GPU. ``run_cuda`` is the entry point, ``require_clean`` refuses a run with findings.
"""

from __future__ import annotations

from subbyte.emulator.findings import Finding
from subbyte.emulator.run import EmulatorRun, require_clean, run_cuda

__all__ = ["EmulatorRun", "Finding", "require_clean", "run_cuda"]
