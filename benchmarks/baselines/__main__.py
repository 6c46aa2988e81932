"""Our kernels against cuDNN and CUTLASS: search their plans, measure, write the tables."""

import sys
from pathlib import Path

PARTS = ["search", "pack", "compare", "rounds", "rounds-table", "further", "table", "peaks"]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("baselines", __doc__, PARTS))
