"""The paper's Table 1, its Figures 15 and 16, and its claim about the search, measured again."""

import sys
from pathlib import Path

PARTS = [
    "sample",
    "wgmma-sample",
    "measure",
    "ablation",
    "retuned",
    "hwnc-search",
    "collect",
    "unpacking",
    "mechanism",
    "race",
    "kernel-tuner",
    "table",
]

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])  # the folder itself would hide modules of others
    from benchmarks.shared.command import program

    sys.exit(program("paper", __doc__, PARTS))
