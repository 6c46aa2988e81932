"""Train the model for kernels that nobody measured, and test it on layers that were left out.

    python benchmarks/network train RECORD ... [--landscapes] [--write]

Takes records of ``collect`` (results/warpgroup/tuning-*.json.gz) and of ``times`` (results/warpgroup/times-*.json), and
with ``--landscapes`` the shipped landscapes of the small space. A layer and its variants, the same at other batches,
are in one fold. Of each layer the measured configurations are put in the order of a model that was trained without its
fold: the regret is how much longer the first, or the best of the first 16, takes than the best of all. Judged beside
the trees are the estimate alone and a ridge regression on the same features. ``--write`` writes the model that ships.

The layers of ``heldout`` and their variants are refused; with ``--leave-heldout`` a record may hold them, and what it
says of them is left out.
"""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.network.heldout import fold, is_held_out
from benchmarks.network.times import FORMAT
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.errors import BrokenRecord, InvalidInput, Unsupported
from subbyte.families import config_from_key
from subbyte.families.registry import config_from_dict, family_of_kind
from subbyte.families.trees import Node, Trees, whole_tree
from subbyte.families.wgmma import features, model
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.files import write_file
from subbyte.kernel.choose import recorded_best
from subbyte.records.describe import config_at, workload_from_dict
from subbyte.records.landscape import landscape
from subbyte.records.result import Measured
from subbyte.workload import ConvWorkload, workload

FOLDS, FEW, LEAST = 10, 16, 4
"""Of the judging: parts left out in turn, a short list, and configurations below which a layer says nothing."""
NEAR, FLOOR = 0.2, 0.03
"""A configuration slower than the best by NEAR weighs 1/e, and none weighs less than FLOOR."""
TIME = {"max_depth": 4, "eta": 0.16, "subsample": 0.7, "colsample_bytree": 0.5, "min_child_weight": 5.0}
REFUSAL = {"max_depth": 4, "eta": 0.1, "subsample": 0.7, "colsample_bytree": 0.5, "objective": "binary:logistic"}
ROUNDS, REFUSAL_ROUNDS = 130, 80
FORESTS = 3
"""Forests of other seeds whose mean is the time: one alone puts first what it is too hopeful about."""
RIDGE = 100.0
Rows = NDArray[np.float64]
Result = float | None
"""Microseconds, or None where the compiler's report refused the kernel."""
Predict = Callable[[Rows], Rows]


@dataclass(frozen=True)
class Layer:
    """What was measured of a layer: features [configurations, features] and microseconds, and what was refused."""

    workload: ConvWorkload
    configs: tuple[WgmmaConfig, ...]
    rows: Rows
    times: Rows
    refused: Rows


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network train", __doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--landscapes", action="store_true", help="the shipped landscapes of the small space too")
    parser.add_argument("--leave-heldout", action="store_true", help="read records that hold those layers without them")
    parser.add_argument("--write", action="store_true", help="write the model that ships")
    args = parser.parse_args(arguments)
    layers = load(args.paths, args.landscapes, args.leave_heldout)
    kernels = sum(len(one.times) for one in layers)
    print(f"{len(layers)} layers, {kernels} kernels, {sum(len(one.refused) for one in layers)} refused")
    print("estimate", said(regrets(layers, [one.rows[:, 0] for one in layers])))
    print("ridge   ", said(regrets(layers, left_out(layers, ridge))))
    found = regrets(layers, left_out(layers, lambda some: boosted(some)[1]))
    print("trees   ", said(found))
    if args.write:
        first = [one for one, _ in found.values()]
        judged = {"kernels": kernels, "layers": len(layers), "mean": statistics.mean(first), "worst": max(first)}
        size = write_file_of(layers, judged)
        print(f"{model.FILE.name}: {size} bytes")
    return 0


def load(paths: Iterable[Path], landscapes: bool = False, leave_heldout: bool = False) -> list[Layer]:
    """What was measured, by layer; of several times of one configuration the last. Raises InvalidInput and
    BrokenRecord."""
    found: dict[ConvWorkload, dict[WgmmaConfig, Result]] = {}
    for path in paths:
        for layer, config, result in _read(path):
            if is_held_out(layer):
                if leave_heldout:
                    continue
                raise InvalidInput(f"{path}: {layer.spec} is held out, or a variant of such a layer; train without it")
            found.setdefault(layer, {})[config] = result
    if landscapes:
        for layer, config, result in _landscapes():
            found.setdefault(layer, {}).setdefault(config, result)
    kept = [one for layer, results in found.items() if len((one := _layer(layer, results)).times)]
    if not any(len(one.times) >= LEAST for one in kept):
        raise InvalidInput(f"no layer with {LEAST} measured configurations in {', '.join(map(str, paths))}")
    return kept


def _read(path: Path) -> Iterable[tuple[ConvWorkload, WgmmaConfig, Result]]:
    try:
        raw = path.read_bytes()
        data: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        yield from _times(data) if data["format"] == FORMAT else _searches(data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenRecord(f"{path}: no record of `collect` or `times` ({error!r})") from None


def _times(data: Mapping[str, Any]) -> Iterable[tuple[ConvWorkload, WgmmaConfig, Result]]:
    for one in data["kernels"]:
        config = config_from_key(one["config"])
        if isinstance(config, WgmmaConfig) and ("microseconds" in one or one["kind"] == "build"):
            yield workload(one["cell"]), config, one.get("microseconds")


def _searches(data: Mapping[str, Any]) -> Iterable[tuple[ConvWorkload, WgmmaConfig, Result]]:
    for search in data["searches"].values():
        if "knobs" not in search["space"] or family_of_kind(search["space"]["kind"]) is not WGMMA:
            continue
        layer = workload_from_dict(search["workload"])
        for index, found in search["trials"]:
            with suppress(Unsupported, InvalidInput):  # a kernel with a knob that is no more
                config = config_at(search["space"], index)
                if isinstance(config, WgmmaConfig) and (isinstance(found, list) or found == "build"):
                    yield layer, config, statistics.median(found) if isinstance(found, list) else None


def _landscapes() -> Iterable[tuple[ConvWorkload, WgmmaConfig, Result]]:
    for stage in (2, 3, 4, 5):
        recorded = landscape(f"resnet50.stage{stage}@8.warpgroup-small.sm_90a")
        for index, found in recorded.results.items():
            with suppress(Unsupported):  # a kernel with a knob that is no more
                config = recorded.config(index)
                if isinstance(config, WgmmaConfig) and (isinstance(found, Measured) or found.kind == "build"):
                    yield recorded.workload, config, found.microseconds if isinstance(found, Measured) else None


def _layer(layer: ConvWorkload, results: Mapping[WgmmaConfig, Result]) -> Layer:
    plans = {config: WgmmaPlan(layer, config, arch("sm_90a")) for config in results}
    rows = {config: features.row(plan) for config, plan in plans.items() if why_not(plan) is None}
    right = [config for config in rows if results[config] is not None]
    wrong = [rows[config] for config in rows if results[config] is None]
    width = len(features.NAMES)
    return Layer(
        layer, tuple(right), np.array([rows[config] for config in right]).reshape(-1, width),
        np.array([results[config] for config in right], dtype=float), np.array(wrong).reshape(-1, width),
    )  # fmt: skip


def wanted(layers: Sequence[Layer]) -> tuple[Rows, Rows, Rows]:
    """Features, logarithms of time over estimate, and weights: all layers weigh alike but for how much is known."""
    rows = np.concatenate([one.rows for one in layers])
    times = np.concatenate([np.log2(one.times * model.CLOCK_MHZ) for one in layers])
    weights = np.concatenate([_weights(one.times) for one in layers])
    return rows, times - rows[:, 0], weights / weights.mean()


def _weights(times: Rows) -> Rows:
    near = FLOOR + np.exp(-(times / times.min() - 1.0) / NEAR)
    return np.asarray(near / np.sqrt(len(times)))


def boosted(layers: Sequence[Layer]) -> tuple[Trees, Predict]:
    """Trees of the time, and what they say of rows."""
    rows, target, weights = wanted(layers)
    mean = float(np.average(target, weights=weights))
    some = [trained(rows, target, weights, {**TIME, "seed": seed}, ROUNDS, mean) for seed in range(FORESTS)]
    parts = "feature", "threshold", "leaf"
    feature, threshold, leaf = (np.concatenate([getattr(one, part) for one in some]) for part in parts)
    trees = Trees(mean, feature, threshold, (leaf / FORESTS).astype(np.float32))
    return trees, lambda given: trees.predict(given) + given[:, 0]


def trained(
    rows: Rows, target: Rows, weights: Rows | None, options: Mapping[str, Any], rounds: int, base: float
) -> Trees:
    """Trees of xgboost, as the library reads them."""
    import xgboost

    held = {"tree_method": "hist", "max_bin": 64, "nthread": 1, "verbosity": 0, "seed": 0, "reg_lambda": 2.0}
    logistic = options.get("objective") == "binary:logistic"
    data = xgboost.DMatrix(rows, label=target, weight=weights)
    start = 1.0 / (1.0 + np.exp(-base)) if logistic else base
    booster = xgboost.train({**held, **options, "base_score": float(start)}, data, rounds)
    dumped = [json.loads(text) for text in booster.get_dump(dump_format="json")]
    whole = [whole_tree(_nodes(tree), options["max_depth"]) for tree in dumped]
    feature, threshold, leaf = (np.array([one[part] for one in whole]) for part in range(3))
    return Trees(base, feature.astype(np.int32), threshold.astype(np.float32), leaf.astype(np.float32))


def _nodes(tree: Mapping[str, Any]) -> dict[int, Node]:
    if "leaf" in tree:
        return {tree["nodeid"]: float(tree["leaf"])}
    found: dict[int, Node] = {}
    for child in tree["children"]:
        found |= _nodes(child)
    split = int(tree["split"].removeprefix("f"))
    return {**found, tree["nodeid"]: (split, float(tree["split_condition"]), tree["yes"], tree["no"])}


def ridge(layers: Sequence[Layer]) -> Predict:
    """A linear model on the same features, each by its spread."""
    rows, target, weights = wanted(layers)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9

    def of(given: Rows) -> Rows:
        return np.c_[(given - mean) / spread, np.ones(len(given))]

    known = of(rows)
    weighed = (known * weights[:, None]).T
    solved = np.linalg.solve(weighed @ known + RIDGE * np.eye(known.shape[1]), weighed @ target)
    return lambda given: of(given) @ solved + given[:, 0]


def left_out(layers: Sequence[Layer], train: Callable[[Sequence[Layer]], Predict]) -> list[Rows]:
    """What models say of each layer's configurations that were trained without its fold."""
    groups: dict[object, list[int]] = {}
    for place, one in enumerate(layers):
        groups.setdefault(fold(one.workload), []).append(place)
    parts = [sum(list(groups.values())[part::FOLDS], start=list[int]()) for part in range(FOLDS)]
    said: dict[int, Rows] = {}
    for part in filter(None, parts):
        predict = train([one for place, one in enumerate(layers) if place not in part])
        said |= {place: predict(layers[place].rows) for place in part}
    return [said[place] for place in range(len(layers))]


def regrets(layers: Sequence[Layer], said: Sequence[Rows]) -> dict[str, tuple[float, float]]:
    """By layer of which enough was measured: the regret of the first choice, and of the first few."""
    found = {}
    for one, order in zip(layers, said, strict=True):
        if len(one.times) < LEAST:
            continue
        times = one.times[np.argsort(order, kind="stable")]
        found[one.workload.spec] = float(times[0] / times.min() - 1.0), float(times[:FEW].min() / times.min() - 1.0)
    return found


def said(found: Mapping[str, tuple[float, float]]) -> str:
    """Means and the worst, as a line."""
    first, few = ([pair[place] for pair in found.values()] for place in (0, 1))
    worst = max(found, key=lambda spec: found[spec][0])
    return (
        f"first choice {100 * statistics.mean(first):.1f} % above the best measured (worst {100 * max(first):.0f} %, "
        f"{worst}), best of the first {FEW} {100 * statistics.mean(few):.1f} % (worst {100 * max(few):.0f} %)"
    )


def _winner(layer: Layer) -> tuple[str, str, float]:
    """The spec of a layer, and key and time of what was the fastest of it when it was measured again, else at once."""
    best = recorded_best().get(layer.workload.spec)
    config = config_from_dict(best["config"]) if best else None
    if best and isinstance(config, WgmmaConfig):
        return layer.workload.spec, config.key, best["microseconds"]
    place = int(np.argmin(layer.times))
    return layer.workload.spec, layer.configs[place].key, float(layer.times[place])


def write_file_of(layers: Sequence[Layer], judged: Mapping[str, float]) -> int:
    """Train on everything, and write the model that ships; how many bytes."""
    times, _ = boosted(layers)
    right, wrong = (np.concatenate([getattr(one, part) for one in layers]) for part in ("rows", "refused"))
    labels = np.r_[np.zeros(len(right)), np.ones(len(wrong))]
    share = labels.mean()
    refused = trained(
        np.concatenate([right, wrong]), labels, None, REFUSAL, REFUSAL_ROUNDS, float(np.log(share / (1.0 - share)))
    )
    winners = [_winner(one) for one in layers]
    data = {
        "format": "subbyte-wgmma-model", "schema": 1, "features": features.NAMES, "judged": judged,
        "winners": winners, "time": times.to_dict(), "refused": refused.to_dict(),
    }  # fmt: skip
    text = json.dumps(data, separators=(",", ":")) + "\n"
    write_file(model.FILE, text.encode())
    return len(text)
