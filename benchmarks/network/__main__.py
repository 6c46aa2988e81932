"""The layers of whole networks: tune them, chain them, and test the estimate and the model that choose kernels."""

import sys
from pathlib import Path

PARTS = [
    "tune",
    "collect",
    "estimate",
    "chains",
    "first",
    "heldout",
    "parts",
    "sample",
    "times",
    "taken",
    "train",
    "tries",
]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("network", __doc__, PARTS))
