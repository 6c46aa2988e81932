"""Writes the recommended configurations, with their CUDA text, from a side-by-side record.

    python tools/recommend.py benchmarks/results/RECORD.json

Of every workload the record's own measured row names the configuration; needs TVM for the text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from subbyte.families.mma.config import MmaConfig
from subbyte.kernel import build
from subbyte.kernel.recommended import Recommendation, save
from subbyte.workload import workload


def main() -> int:
    """Write the files; 0 when done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("record", type=Path)
    args = parser.parse_args()
    record = json.loads(args.record.read_text(encoding="utf-8"))
    for row in record["rows"]:
        if row["config"] is None:
            continue
        layer, config, arch = workload(row["spec"]), MmaConfig.from_dict(row["config"]), record["gpu"]["arch"]
        kernel = build(layer, config, arch)
        found = Recommendation(
            layer.spec, arch, config, row["microseconds"], record["gpu"]["name"], args.record.name, kernel.cuda
        )
        print(f"{save(layer, found).name}: {config.key}, {row['microseconds']:.2f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
