"""Kernels on bit planes: the stages of ResNet-50 in four precisions, binary networks, what bits cost in accuracy."""

import sys
from pathlib import Path

PARTS = [
    "texts",
    "measure",
    "table",
    "collect",
    "issue",
    "parts",
    "exact",
    "accuracy",
    "networks",
    "papers",
    "papers-table",
    "ensembles",
    "products",
    "floating",
]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("bits", __doc__, PARTS))
