"""Compute the techniques' speed-ups on recorded schedules: the tables behind the paper's Figures 15 and 16.

    python benchmarks/paper ablation [benchmarks/results/ablation]

The folder holds one landscape for each workload and combination of switches, each schedule verified on the GPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.analysis.ablation import ablation
from subbyte.errors import InvalidInput
from subbyte.records.landscape import Landscape

FOLDER = RESULTS / "ablation"


@answering
def main(arguments: Sequence[str]) -> int:
    """Print one table for each workload of the folder."""
    parser = parser_of("paper ablation", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="of landscapes")
    folder = parser.parse_args(arguments).folder
    groups = defaultdict(list)
    for path in sorted(folder.glob("*.json.gz")):
        one = Landscape.load(path)
        groups[one.workload.spec].append(one)
    if not groups:
        raise InvalidInput(f"{folder} holds no landscapes (*.json.gz)")
    for landscapes in groups.values():
        print(ablation(landscapes).text(), end="\n\n")
    return 0
