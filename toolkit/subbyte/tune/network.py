"""Tuning a whole network: one study per distinct layer, one budget of trials, spent where it pays most.

:mod:`subbyte.tune.allocation` chooses the next layer. A layer's study begins with the configurations that were best
for earlier layers, if its space contains them. With a log, every layer has its own file; a run that is killed at any
moment and resumed ends exactly as if uninterrupted (given the same seed and a runner with repeatable results).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, MissingDependency, Unsupported
from subbyte.former import former_arguments
from subbyte.interrupts import keeping
from subbyte.measure.runner import Runner, refuse_unlike
from subbyte.records.checked import several, whole
from subbyte.spaces.configuration import Configuration
from subbyte.tune.allocation import LayerState, next_layer, portion_of
from subbyte.tune.outcome import NetworkReport
from subbyte.tune.record import best_of
from subbyte.tune.remeasurement import Remeasurement, default_top_k, remeasure
from subbyte.tune.sources import DEFAULT_TRIALS, Sources, log_path
from subbyte.tune.study import Callback, Stop, Study
from subbyte.workload import DEFAULT_BATCH, NETWORKS, ConvWorkload
from subbyte.workload import workloads as parse_workloads
from subbyte.workload.parse import split_text

WARM_STARTS = 3
"""The most configurations that a layer takes over from others."""


@dataclass
class _Layer:
    study: Study
    runner: Runner
    count: int
    exhausted: bool = False

    @property
    def label(self) -> str:
        return self.study.space.workload.label

    def state(self) -> LayerState:
        return LayerState(
            self.count, _work(self.study.space.workload), self.study.curve.best_microseconds, self.exhausted
        )


def is_network(given: object) -> bool:
    """Whether a text names a network, such as ``resnet50@8`` or ``resnet50@8:w1a1``."""
    return isinstance(given, str) and given.strip().lower().partition(":")[0].partition("@")[0] in NETWORKS


@checked
def network_layers(network: str) -> list[tuple[ConvWorkload, int]]:
    """Distinct layers of a network with the number of times each occurs. Raises InvalidInput if it is not a network."""
    if not is_network(network):
        raise InvalidInput(f"{network!r} is no network; networks: {', '.join(NETWORKS)}, with a batch as in resnet50@8")
    name, batch, precision = split_text(network)
    counts = dict.fromkeys(parse_workloads(network), 0)
    for layer in NETWORKS[name]:
        counts[layer.workload(batch or DEFAULT_BATCH, precision)] += layer.count
    return list(counts.items())


@former_arguments(finalists="top_k")
@checked
def tune_network(
    network: str | Sequence[tuple[ConvWorkload, int]],
    runner: str | Runner = "auto",
    strategy: str = "auto",
    trials: int | None = DEFAULT_TRIALS,
    seed: int = 0,
    log: str | os.PathLike[str] | None = None,
    resume: bool = False,
    *,
    arch: str | None = None,
    kind: str | None = None,
    fixed: Mapping[str, Any] | None = None,
    batch: int = 8,
    callbacks: Sequence[Callback] = (),
    stop: Sequence[Stop] = (),
    device: int | str | Sequence[int] = 0,
    timeout: float | None = None,
    top_k: int | None = None,
    store: str | os.PathLike[str] | None = None,
) -> NetworkReport:
    """Tune every layer of ``network`` (``resnet50@8``, or pairs of workload and count) with ``trials`` in total.

    Trials are handed out ``batch`` at a time, or fewer if a third of them is not enough to give every layer
    that many; None means the whole space of every layer. Layers that cannot be
    measured are skipped with the reason. The other arguments and errors are those of :func:`subbyte.tune`;
    InvalidInput also when layers would be measured on different kinds of device, whose times cannot be added.
    """
    whole(batch, "batch", 1)
    if trials is not None:
        whole(trials, "trials", 1)
    if resume and log is None:
        raise InvalidInput("resume needs the log to resume from: give log=FILE (--log FILE)")
    pairs = network_layers(network) if isinstance(network, str) else _pairs(network)
    name = network.strip().lower() if isinstance(network, str) else f"{len(pairs)} layers"
    grants: list[tuple[str, int, float | None]] = []
    with keeping(), ExitStack() as stack:
        sources = stack.enter_context(Sources(runner, arch, kind, fixed, None, device, timeout))
        layers, optima, skipped = _open_layers(stack, sources, pairs, strategy, seed, log, resume, store)
        portion = portion_of(trials, len(layers), batch)
        try:
            ended = _spend(layers, trials, portion, callbacks, stop, grants)
        except KeyboardInterrupt:  # between two studies
            ended = "interrupted"
        remeasured = {} if ended == "interrupted" else _remeasured(layers, top_k)
        for layer in layers:
            layer.study.ended = layer.study.ended or ended
    return NetworkReport(
        tuple(layer.study.record for layer in layers), optima, skipped, remeasured, name,
        {layer.label: layer.count for layer in layers}, tuple(grants), trials, ended,
    )  # fmt: skip


def _pairs(layers: Iterable[tuple[ConvWorkload, int]]) -> list[tuple[ConvWorkload, int]]:
    found = several(layers, "layers")
    for pair in found:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], ConvWorkload)):
            raise InvalidInput(f"layer {pair!r}: expected a pair of ConvWorkload and count, as network_layers gives")
        whole(pair[1], f"count of {pair[0].label}", 1)
    return found


def _open_layers(
    stack: ExitStack,
    sources: Sources,
    pairs: Sequence[tuple[ConvWorkload, int]],
    strategy: str,
    seed: int,
    log: str | os.PathLike[str] | None,
    resume: bool,
    store: str | os.PathLike[str] | None,
) -> tuple[list[_Layer], dict[str, float], dict[str, str]]:
    layers: list[_Layer] = []
    optima: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for workload, count in pairs:
        reason = sources.not_covered(workload)
        if reason is not None:
            skipped[workload.label] = reason
            continue
        try:
            runner, space = sources.of(workload)
        except (Unsupported, MissingDependency) as error:
            if isinstance(error, MissingDependency) and sources.shared_only:
                raise
            skipped[workload.label] = str(error)
            continue
        if layers:
            refuse_unlike(layers[0].runner.device, runner.device)
        where: Path | None = log_path(log, workload, max(2, len(pairs)))
        study = stack.enter_context(Study(space, strategy, seed, where, resume, store))
        layers.append(_Layer(study, runner, count))
        optima.update(sources.optimum(runner, workload))
    if not layers:
        raise MissingDependency("nothing was tuned: " + "; ".join(f"{k}: {v}" for k, v in skipped.items()))
    return layers, optima, skipped


def _spend(
    layers: Sequence[_Layer],
    trials: int | None,
    batch: int,
    callbacks: Sequence[Callback],
    stop: Sequence[Stop],
    grants: list[tuple[str, int, float | None]],
) -> str:
    """Hand out the trials; returns why it ended."""
    order = sorted(range(len(layers)), key=lambda place: (-layers[place].state().weight, place))
    while True:
        left = None if trials is None else trials - sum(len(layer.study.trials) for layer in layers)
        if left is not None and left <= 0:
            return "trials"
        chosen, gain = _choose(layers, batch)
        if chosen is None:
            return "exhausted"
        layer = layers[chosen]
        told = len(layer.study.trials)
        if told < batch:
            layer.study.queue(_warm_starts(layers, order, chosen, batch))
        # an interrupted portion is completed first
        target = told + batch - told % batch
        target = target if left is None else min(target, told + left)
        held = layer.study.most_trials  # the space may hold only part of the last portion
        record = layer.study.run(layer.runner, target if target <= held else None, batch, callbacks, stop)
        grants.append((layer.label, len(record.trials) - told, gain))
        if record.ended in ("interrupted", "stopped"):
            return record.ended
        layer.exhausted = record.ended == "exhausted"


def _choose(layers: Sequence[_Layer], batch: int) -> tuple[int | None, float | None]:
    """The layer whose portion was interrupted, else the one chosen by the rule."""
    for place, layer in enumerate(layers):
        if len(layer.study.trials) % batch and not layer.exhausted:
            return place, None
    found = next_layer([layer.state() for layer in layers], batch)
    return found if found is not None else (None, None)


def _warm_starts(layers: Sequence[_Layer], order: Sequence[int], chosen: int, batch: int) -> list[Configuration]:
    """Best configurations of the layers before ``chosen``, most similar layers first. Only their first portions count,
    so the result does not depend on how often the run was interrupted."""
    mine = layers[chosen].study.space.workload
    before = [layers[place] for place in order[: order.index(chosen)]]
    before.sort(key=lambda layer: _unlike(mine, layer.study.space.workload))
    found: list[Configuration] = []
    for layer in before:
        best = best_of(layer.study.trials[:batch])
        if best is not None and best.config not in found:
            found.append(best.config)
    return found[: min(WARM_STARTS, batch)]


def _work(workload: ConvWorkload) -> int:
    """Operations of the padded sizes, which a kernel really performs: a layer with three channels costs as much as one
    with 32."""
    wl = workload
    pixels, columns = 8 * wl.batch_groups * wl.p * wl.q, 32 * wl.filter_blocks
    return 2 * pixels * columns * wl.r * wl.s * 32 * wl.channel_blocks


def _unlike(one: ConvWorkload, other: ConvWorkload) -> tuple[int, float]:
    """Dissimilarity of two workloads: a different kernel size counts most, then the ratios of output sizes and
    channels."""
    ratio = 1.0
    for mine, theirs in ((one.p * one.q, other.p * other.q), (one.c, other.c), (one.k, other.k)):
        ratio *= max(mine, theirs) / min(mine, theirs)
    return (int((one.r, one.s, one.stride) != (other.r, other.s, other.stride)), ratio)


def _remeasured(layers: Sequence[_Layer], top_k: int | None) -> dict[str, Remeasurement]:
    held = {}
    for layer in layers:
        wanted = default_top_k(layer.runner) if top_k is None else top_k
        try:
            found = remeasure(layer.study.record, layer.runner, wanted) if wanted > 1 else None
        except KeyboardInterrupt:
            break
        if found is not None:
            held[layer.label] = found
            found.remember(layer.study.memory, layer.runner.device, len(layer.study.trials))
    return held
