"""Draw the schedules of the ablation and build them with every combination of the switches.

    python benchmarks/paper sample FOLDER --schedules 100 --seed 2022
    python benchmarks/paper measure RESULTS FOLDER/*          on the GPU

Only schedules that are valid with all twelve combinations are drawn: half of them from the fastest quarter of the
stage's landscape, so that the sample holds schedules people would use, half from the rest. ``FOLDER`` gets one bundle
for each stage and combination. Schedules that ``results/ablation`` holds already are left out.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.families import Space, space
from subbyte.records.landscape import landscape
from subbyte.records.result import Measured
from subbyte.tune import Landscape
from subbyte.tune.bundle import build_bundle

RECORDED = RESULTS / "ablation"
SWITCHES: dict[str, dict[str, Any]] = {
    f"{sharing}-{'rp' if packing else 'sp'}-{layout}": {
        "duplicate_aware": sharing,
        "register_packing": packing,
        "layout": layout,
    }
    for sharing, packing, layout in itertools.product(("none", "shared", "full"), (False, True), ("nhwc", "nhwcnc"))
}


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper sample", __doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--schedules", type=int, default=100, help="in all, those recorded already included")
    parser.add_argument("--seed", type=int, default=2022)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(arguments)
    for stage in args.stages:
        spaces = {name: space(f"resnet50.stage{stage}@8", **switches) for name, switches in SWITCHES.items()}
        drawn = draw(stage, spaces, recorded(stage), args.schedules, args.seed)
        for name, here in spaces.items():
            report = build_bundle(here, args.folder / f"stage{stage}-{name}", args.workers, drawn)
            print(f"stage {stage}, {name}: {report.built} built, {report.failed} failed", flush=True)
    return 0


def recorded(stage: int) -> set[int]:
    """Schedules measured with every combination."""
    found: dict[str, set[int]] = {name: set() for name in SWITCHES}
    for path in RECORDED.glob(f"stage{stage}-*.json.gz"):
        name = path.name.removeprefix(f"stage{stage}-").partition(".")[0]
        found[name] |= set(Landscape.load(path).results)
    return set.intersection(*found.values())


def draw(stage: int, spaces: dict[str, Space], have: set[int], count: int, seed: int) -> list[int]:
    """Indices to build so that there are ``count`` schedules, half of them from the fastest quarter."""
    common = set.intersection(*(set(one.valid) for one in spaces.values()))
    results = landscape(f"resnet50.stage{stage}@8").results
    timed = {index: result.microseconds for index, result in results.items() if isinstance(result, Measured)}
    ranked = sorted(common & set(timed), key=lambda index: timed[index])
    quarter = set(ranked[: len(ranked) // 4])
    rng = random.Random(seed + stage)
    missing = max(0, count - len(have))
    fast_missing = min(missing, max(0, count // 2 - len(have & quarter)))
    fast = rng.sample(sorted(quarter - have), fast_missing)
    rest = sorted(set(ranked) - have - set(fast) - quarter)
    return sorted(fast + rng.sample(rest, min(len(rest), missing - len(fast))))
