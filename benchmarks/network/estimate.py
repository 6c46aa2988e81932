"""Test the estimate that chooses unmeasured configurations, and fit its constants to measurements.

    python benchmarks/network estimate results/warpgroup/tuning-....json.gz [MORE ...] [--fit] [--folds 9]

Takes records of ``collect`` and folders with logs of ``tune``. Of each layer the measured
configurations are put in the order of :func:`subbyte.families.wgmma.cycles.estimated_cycles`; the regret is how much
longer the first one (or the best of the first eight, which ``subbyte.compile`` tries as long as they cannot be built)
takes than the best of all. ``--fit`` prints fitted constants, and the regret on layers that were left out of the fit.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.registry import family_of_kind
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.cycles import Constants, estimated_cycles
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel.choose import TRIES
from subbyte.records.describe import config_at, workload_from_dict
from subbyte.tune import read_log
from subbyte.workload import ConvWorkload

CLOCK_MHZ = 1755.0
"""Cycles of the estimate for each microsecond; another value changes the constants alone."""
LEAST = 10
"""Configurations below which a layer says nothing."""
KEPT = 60
"""Configurations of a layer that a fit looks at: the fastest, and as many of the others, evenly."""
NEAR = 0.3
"""A configuration slower than the best by this share weighs 1/e in a fit."""
FURTHEST = 2.5
"""How far the logarithm of a constant may move in a fit."""
Data = Mapping[ConvWorkload, Mapping[WgmmaConfig, float]]


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network estimate", __doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--fit", action="store_true", help="fit the constants, and judge them on layers left out")
    parser.add_argument("--folds", type=int, default=9)
    args = parser.parse_args(arguments)
    data = load(args.paths)
    print(f"{len(data)} layers, {sum(map(len, data.values()))} configurations")
    print("now   ", summary(regrets(data, Constants())))
    if args.fit:
        print("fitted", summary(left_out(data, args.folds)), "on layers left out")
        for name, value in vars(fit(data)).items():
            print(f"    {name}: float = {value:.4g}")
    return 0


def load(paths: Iterable[Path]) -> dict[ConvWorkload, dict[WgmmaConfig, float]]:
    """Microseconds of every configuration of the wgmma family that was right, by layer; of several times of one the
    last. Raises InvalidInput when there is no layer with enough of them."""
    found: dict[ConvWorkload, dict[WgmmaConfig, float]] = {}
    for path in paths:
        for workload, space, trials in _searches(path):
            if family_of_kind(space["kind"]) is WGMMA:
                found.setdefault(workload, {}).update(_configs(space, trials))
    kept = {workload: times for workload, times in found.items() if len(times) >= LEAST}
    if not kept:
        raise InvalidInput(f"no layer with {LEAST} measured configurations in {', '.join(map(str, paths))}")
    return kept


def _searches(path: Path) -> Iterable[tuple[ConvWorkload, dict[str, Any], list[tuple[int, float]]]]:
    if path.is_dir():
        for log in sorted(path.glob("*.jsonl")):
            record = read_log(log)
            times = [(trial.index, trial.microseconds) for trial in record.trials if trial.microseconds is not None]
            yield workload_from_dict(record.header["workload"]), dict(record.header["space"]), times
        return
    for search in json.loads(gzip.decompress(path.read_bytes()))["searches"].values():
        if "knobs" in search["space"]:  # a record from before they were kept says nothing of configurations
            timed = [(index, statistics.median(found)) for index, found in search["trials"] if isinstance(found, list)]
            yield workload_from_dict(search["workload"]), search["space"], timed


def _configs(space: Mapping[str, Any], trials: Iterable[tuple[int, float]]) -> dict[WgmmaConfig, float]:
    found: dict[Any, float] = {}
    for index, microseconds in trials:
        with suppress(Unsupported):  # a kernel with a knob that is no more
            found[config_at(space, index)] = microseconds
    return {config: microseconds for config, microseconds in found.items() if isinstance(config, WgmmaConfig)}


def regrets(data: Data, constants: Constants) -> dict[str, tuple[float, float]]:
    """By layer: the regret of the first choice, and of the first few; those with equal estimates by their keys, as
    nobody knows their times beforehand."""
    found = {}
    for workload, times in data.items():
        cycles = {config: _cycles(workload, config, constants) for config in times}
        ordered = [times[config] for config in sorted(times, key=lambda config: (cycles[config], config.key))]
        best = min(ordered)
        found[workload.label] = ordered[0] / best - 1.0, min(ordered[:TRIES]) / best - 1.0
    return found


def summary(found: Mapping[str, tuple[float, float]]) -> str:
    """Means and the worst, as a line."""
    first, few = ([pair[place] for pair in found.values()] for place in (0, 1))
    worst = max(found, key=lambda label: found[label][0])
    return (
        f"first choice {100 * statistics.mean(first):.1f} % above the best measured (worst {100 * max(first):.0f} %, "
        f"{worst}), best of the first {TRIES} {100 * statistics.mean(few):.1f} % (worst {100 * max(few):.0f} %)"
    )


def _cycles(workload: ConvWorkload, config: WgmmaConfig, constants: Constants) -> float:
    return estimated_cycles(WgmmaPlan(workload, config, arch("sm_90a")), constants)


def fit(data: Data, start: Constants | None = None, turns: int = 12) -> Constants:
    """Constants that make the logarithms of estimate and time differ least; the fast configurations count most."""
    import numpy as np
    from scipy.optimize import least_squares

    names = [one.name for one in fields(Constants)]
    samples = [sample for workload, times in data.items() for sample in _weighed(workload, times)]

    def residuals(logarithms: Sequence[float]) -> Any:
        constants = Constants(**{name: math.exp(value) for name, value in zip(names, logarithms, strict=True)})
        return np.array([
            weight * math.log(us * CLOCK_MHZ / _cycles(workload, config, constants))
            for workload, config, us, weight in samples
        ])  # fmt: skip

    begin = [math.log(value) for value in vars(start or Constants()).values()]
    bounds = [value - FURTHEST for value in begin], [value + FURTHEST for value in begin]
    found = least_squares(residuals, begin, bounds=bounds, loss="soft_l1", f_scale=0.02, max_nfev=turns)
    return Constants(**{name: math.exp(value) for name, value in zip(names, found.x, strict=True)})


def _weighed(
    workload: ConvWorkload, times: Mapping[WgmmaConfig, float]
) -> list[tuple[ConvWorkload, WgmmaConfig, float, float]]:
    """The configurations of a layer that count, each with its time and weight; all layers weigh alike."""
    ordered = sorted(times.items(), key=lambda entry: entry[1])
    rest = ordered[KEPT:]
    chosen = ordered[:KEPT] + rest[:: max(1, len(rest) // KEPT)]
    best = ordered[0][1]
    return [
        (workload, config, us, math.sqrt(math.exp((1.0 - us / best) / NEAR) / len(chosen))) for config, us in chosen
    ]


def left_out(data: Data, folds: int) -> dict[str, tuple[float, float]]:
    """Regrets of each layer under constants that were fitted without it."""
    layers = list(data)
    found: dict[str, tuple[float, float]] = {}
    for fold in range(min(folds, len(layers))):
        held = layers[fold::folds]
        constants = fit({layer: times for layer, times in data.items() if layer not in held}, turns=6)
        found |= regrets({layer: data[layer] for layer in held}, constants)
    return found
