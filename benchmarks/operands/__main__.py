"""What other operands and epilogues cost compared with plain int4: uint4, residuals, 8 bits, zero points, pooling."""

import sys
from pathlib import Path

PARTS = ["build", "measure", "pools", "table"]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("operands", __doc__, PARTS))
