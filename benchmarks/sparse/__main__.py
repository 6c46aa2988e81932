"""Kernels on weights with zeros: the stages of ResNet-50 against their dense twins; tables of the cycle model."""

import sys
from pathlib import Path

PARTS = [
    "texts",
    "measure",
    "table",
    "blocks",
    "collect",
    "model",
    "seconds",
    "densities",
    "steps",
    "limits",
    "pruning",
    "opponents",
    "im2col",
    "compact",
    "opponents-table",
]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("sparse", __doc__, PARTS))
