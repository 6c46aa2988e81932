"""Runs generated CUDA text on the CPU, thread by thread, and reports hazards and every memory access.

Needs a C++ compiler but no GPU. ``run_cuda`` is the entry point; ``require_clean`` raises if a run has findings.

Asynchronous operations (asynchronous copies, wgmma, bulk copies) take effect at a random time between their start and
the wait for them, threads run in a random order, and every access carries a vector clock: an access that no barrier,
mbarrier or wait orders after an earlier conflicting one is reported, whatever order this run took.
"""

from __future__ import annotations

from subbyte.emulator.findings import Finding
from subbyte.emulator.run import EmulatorRun, require_clean, run_cuda

__all__ = ["EmulatorRun", "Finding", "require_clean", "run_cuda"]
