"""Speed-ups of the techniques on recorded schedules: the tables behind the paper's Figures 15 and 16.

    python benchmarks/ablation.py [benchmarks/results/ablation]

The folder holds one landscape for each workload and combination of switches, each schedule verified on the GPU.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from subbyte.analysis.ablation import ablation
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.records.landscape import Landscape

FOLDER = Path(__file__).resolve().parent / "results" / "ablation"


def main() -> int:
    """Print one table for each workload of the folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    groups = defaultdict(list)
    try:
        for path in sorted(folder.glob("*.json.gz")):
            one = Landscape.load(path)
            groups[one.workload.spec].append(one)
        if not groups:
            raise InvalidInput(f"{folder} holds no landscapes (*.json.gz)")
        for landscapes in groups.values():
            print(ablation(landscapes).text(), end="\n\n")
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
