"""Runs generated CUDA text on the CPU, thread by thread, and reports hazards and every memory access.

Needs a C++ compiler and no GPU. ``run_cuda`` is the entry point, ``require_clean`` refuses a run with findings.

What runs by itself on a GPU (asynchronous copies, wgmma, bulk copies) happens here at a random time between its start
and the wait for it, threads run in a random order, and every access carries a vector clock: an access that no barrier,
mbarrier or wait puts after an earlier one is a finding whatever order this run took.
"""

from __future__ import annotations

from subbyte.emulator.findings import Finding
from subbyte.emulator.run import EmulatorRun, require_clean, run_cuda

__all__ = ["EmulatorRun", "Finding", "require_clean", "run_cuda"]
