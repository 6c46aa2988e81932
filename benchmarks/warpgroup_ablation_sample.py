"""Draws schedules of the warpgroup family and builds them with every combination of the switches.

    python benchmarks/warpgroup_ablation_sample.py FOLDER --batches 8 256 --schedules 8 --seed 2026
    python benchmarks/measure_together.py RESULTS FOLDER/*          on the GPU

The schedules of a layer are those near its fastest known one (a few values around that of every knob, those that are
not varied as they are there, or, where sharing cannot be switched off with them, at their defaults): the nearest that
is valid with all eight combinations, then half from the best quarter by estimate, half from the rest. ``FOLDER`` gets
one bundle for each layer and combination.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.analysis.contributions import EIGHT
from subbyte.device.arch import arch
from subbyte.errors import BuildFailed
from subbyte.kernel import build
from subbyte.kernel.choose import recorded_best
from subbyte.kernel.warpgroup_default import estimated_cycles
from subbyte.schedule import WarpgroupConfig
from subbyte.schedule.warpgroup import SWITCH_VALUES, WARPGROUP_KNOBS
from subbyte.space.warpgroup import WarpgroupSpace, warpgroup_values
from subbyte.tune.bundle import build_bundle
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

TARGET = arch("sm_90a")
AROUND = {"tile_width": 1, "tile_rows": 1, "segments": 1, "ring": 1, "unroll": 1}
"""Knobs whose listed values next to the best one's are tried, that many on either side."""
MORE = {"groups_m": (1, 2), "groups_x": (1, 2), "load_ahead": (1, 2), "weight_ring": (0, 2, 8), "in_flight": (1, 2)}
"""Values tried for other knobs, beside the best one's."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 256])
    parser.add_argument("--schedules", type=int, default=8)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--best", type=Path, help="JSON: configurations by workload, in place of the recorded ones")
    args = parser.parse_args()
    given = json.loads(args.best.read_text(encoding="utf-8")) if args.best else {}
    for batch, stage in itertools.product(args.batches, args.stages):
        workload = workload_named(f"resnet50.stage{stage}@{batch}")
        best = WarpgroupConfig.from_dict(given.get(workload.spec) or recorded_best()[workload.spec]["config"])
        for plain in (False, True):
            spaces = spaces_near(workload, best, plain)
            drawn = draw(spaces, best, args.schedules, args.seed + 10 * batch + stage)
            if len(drawn) == args.schedules:
                break
        for name, here in spaces.items():
            report = build_bundle(here, args.folder / f"stage{stage}-b{batch}-{name}", args.workers, drawn)
            print(f"stage {stage}, batch {batch}, {name}: {report.built} built, {report.failed} failed", flush=True)
    return 0


def spaces_near(workload: ConvWorkload, best: WarpgroupConfig, plain: bool = False) -> dict[str, WarpgroupSpace]:
    """The space around a configuration, once for each combination of the switches. What is not varied is as in the
    configuration, or (``plain``) at its default, but for the split over a cluster."""
    listed = warpgroup_values(workload)
    knobs: dict[str, tuple[int, ...]] = {}
    for name, reach in AROUND.items():
        value = getattr(best, name)
        values = sorted({*listed[name], value})
        place = values.index(value)
        knobs[name] = tuple(values[max(0, place - reach) : place + reach + 1])
    for name, extra in MORE.items():
        knobs[name] = tuple(sorted({*extra, getattr(best, name)}))
    source = WarpgroupConfig(split=best.split) if plain else best
    others = {name: (getattr(source, name),) for name in WARPGROUP_KNOBS if name not in knobs}
    knobs = {name: ({**others, **knobs})[name] for name in WARPGROUP_KNOBS}
    return {
        f"{sharing}-{'rp' if packing else 'sp'}-{layout}": WarpgroupSpace(
            workload,
            TARGET,
            {**knobs, "stagger": _turns(best, sharing)},
            fixed=dict(zip(SWITCH_VALUES, (sharing, packing, layout), strict=True)),
        )
        for sharing, packing, layout in EIGHT
    }


def _turns(best: WarpgroupConfig, sharing: str) -> tuple[int]:
    """Warpgroups that load every tap anew cannot take turns: they read the same parts at the same time."""
    return (best.stagger if sharing == "full" and best.consumers == 2 else 0,)


def draw(spaces: Mapping[str, WarpgroupSpace], best: WarpgroupConfig, count: int, seed: int) -> list[int]:
    """Indices to build: the one nearest to the best known, and ``count - 1`` others, half of them likely fast ones."""
    common = set.intersection(*(set(one.valid) for one in spaces.values()))
    here = spaces["full-rp-nhwcnc"]

    @cache
    def cycles(index: int) -> float:
        return estimated_cycles(here.plan(index))

    def differences(index: int) -> tuple[int, float]:
        values: Mapping[str, Any] = here.config(index).to_dict()
        return sum(values[name] != value for name, value in best.to_dict().items()), cycles(index)

    rng = random.Random(seed)
    ranked = sorted(common, key=cycles)
    quarter, rest = ranked[: len(ranked) // 4], ranked[len(ranked) // 4 :]
    rng.shuffle(quarter)
    rng.shuffle(rest)
    drawn: list[int] = []
    for pool, wanted in ((sorted(common, key=differences), 1), (quarter, 1 + count // 2), (rest, count)):
        for index in pool:
            if len(drawn) < wanted and index not in drawn and _compiles(spaces, index):
                drawn.append(index)
    return sorted(drawn)


def _compiles(spaces: Mapping[str, WarpgroupSpace], index: int) -> bool:
    """Both ways of loading can be compiled without serialized instructions."""
    try:
        for name in ("full-rp-nhwcnc", "none-rp-nhwcnc"):
            here = spaces[name]
            build(here.workload, here.config(index), TARGET)
    except BuildFailed:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
