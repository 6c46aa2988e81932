"""Choose schedules of the wgmma family that build with every combination of the switches, and build them.

    python benchmarks/paper wgmma-sample --choose 12 --seconds 400     no GPU; goes on where it stopped
    python benchmarks/paper wgmma-sample FOLDER                        no GPU; bundles of what no record has
    python benchmarks/paper measure RESULTS FOLDER/*                       on the GPU; goes on where it stopped
    python benchmarks/paper wgmma-sample --assemble RESULTS            no GPU; what there is becomes a record

The schedules of a layer are those near its fastest known one (a few values around that of every knob, those that are
not varied as they are there, or, where sharing cannot be switched off with them, at their defaults): the nearest that
is valid with all eight combinations, then half from the best quarter by estimate, half from the rest. What was chosen
stands in ``wgmma_schedules.json``, beginning with the schedules that ``results/warpgroup/ablation`` has
with every combination, in the space they were drawn from: a record is extended, never begun anew. Each further one was
built with all eight combinations, by a compiler's report without fault, and ``refused`` says why others were not taken.
``FOLDER`` gets one bundle for each layer and combination; what ``--assemble`` has written is left out of the next.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.analysis.ablation import meant
from subbyte.analysis.contributions import EIGHT
from subbyte.device.arch import arch
from subbyte.errors import BrokenRecord, BuildFailed, InvalidInput
from subbyte.families.registry import config_from_dict
from subbyte.families.wgmma.config import SWITCH_VALUES, WgmmaConfig
from subbyte.families.wgmma.cycles import estimated_cycles
from subbyte.families.wgmma.family import WGMMA as FAMILY
from subbyte.families.wgmma.former_space import FormerSpace
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.space import WGMMA, WgmmaSpace
from subbyte.families.wgmma.values import value_lists
from subbyte.files import replace_file
from subbyte.kernel import build
from subbyte.kernel.choose import recorded_best
from subbyte.records.checked import new_folder
from subbyte.records.landscape_file import read_file
from subbyte.records.measurements import to_landscape
from subbyte.records.result import Measured
from subbyte.spaces.configuration import Configuration
from subbyte.tune.bundle import build_bundle
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

RECORDED = RESULTS / "warpgroup" / "ablation"
CHOSEN = Path(__file__).resolve().parent / "wgmma_schedules.json"
TARGET = arch("sm_90a")
NAMES = {f"{sharing}-{'rp' if packing else 'sp'}-{layout}": (sharing, packing, layout)
         for sharing, packing, layout in EIGHT}  # fmt: skip
"""The combinations of the switches, as files are named after them."""
AROUND = {"tile_width": 1, "tile_rows": 1, "segments": 1, "stages": 1, "unroll": 1}
"""Knobs whose listed values next to the best one's are tried, that many on either side."""
MORE = {"consumers_m": (1, 2), "consumers_n": (1, 2), "load_ahead": (1, 2), "in_flight": (1, 2)}
"""Values tried for other knobs, beside the best one's."""
SEED = 2026
Lists = dict[str, tuple[int, ...]]
AnySpace = WgmmaSpace | FormerSpace
"""A space of today, or one that a record of an earlier version describes."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper wgmma-sample", __doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="build here the chosen schedules that no record has")
    parser.add_argument("--choose", type=int, metavar="COUNT", help="choose until every layer has so many schedules")
    parser.add_argument("--assemble", type=Path, metavar="RESULTS", help="write records of what was measured")
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--batches", type=int, nargs="+", default=[8, 256])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="choose no longer than this")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args(arguments)
    if sum(one is not None for one in (args.folder, args.choose, args.assemble)) != 1:
        parser.error("name a folder for the bundles, or --choose how many schedules, or what to --assemble")
    layers = [(stage, batch) for batch in args.batches for stage in args.stages]
    if args.choose is not None:
        return choose(layers, args.choose, time.monotonic() + args.seconds, args.workers)
    return assemble(args.assemble) if args.assemble else build_all(layers, args.folder, args.workers)


# ---- what was chosen -------------------------------------------------------------------------------------------------


@dataclass
class Layer:
    """What is known of a layer: by way of sharing the values of the knobs that are not at their usual one alone, the
    schedules as indices in that space, and why others were refused."""

    knobs: dict[str, dict[str, list[int]]]
    schedules: list[int] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def spaces(self, layer: ConvWorkload) -> dict[str, AnySpace]:
        """The space once for each combination of the switches."""
        return spaces_of(layer, {sharing: {k: tuple(v) for k, v in one.items()} for sharing, one in self.knobs.items()})


def name_of(stage: int, batch: int) -> str:
    """How the files of a layer begin."""
    return f"stage{stage}-b{batch}"


def read_chosen(path: Path = CHOSEN) -> dict[str, Layer]:
    """What was chosen, by the layer's name."""
    return {name: Layer(**one) for name, one in json.loads(path.read_text(encoding="utf-8")).items()}


def write_chosen(found: Mapping[str, Layer], path: Path = CHOSEN) -> None:
    """Replace what was chosen, at once."""
    parts = [
        f'"{name}": {{\n "knobs": {json.dumps(one.knobs)},\n "schedules": {json.dumps(sorted(one.schedules))},\n'
        f' "refused": {json.dumps(one.refused, indent=2)}\n}}'
        for name, one in sorted(found.items())
    ]
    replace_file(path, ("{" + ",\n".join(parts) + "}\n").encode())


def recorded(name: str, folder: Path = RECORDED) -> dict[str, tuple[dict[str, Any], set[int]]]:
    """By combination of the switches: the recorded space of a layer, and the schedules measured in it.

    Raises BrokenRecord for records of several spaces.
    """
    found: dict[str, tuple[dict[str, Any], set[int]]] = {}
    for path in sorted(folder.glob(f"{name}-*.json.gz")):
        combination = path.name.removeprefix(f"{name}-").partition(".")[0]
        header, results, _ = read_file(path)
        measured = {index for index, result in results.items() if isinstance(result, Measured)}
        space, before = found.get(combination, (header["space"], set()))
        if meant(header["space"]["knobs"], WGMMA) != meant(space["knobs"], WGMMA):
            raise BrokenRecord(f"{path}: of another space than the records before it: an index is not one schedule")
        found[combination] = space, before | measured
    return found


def measured_with_all(name: str, folder: Path = RECORDED) -> set[int]:
    """Schedules of a layer that are recorded with every combination."""
    found = recorded(name, folder)
    return set.intersection(*(indices for _, indices in found.values())) if len(found) == len(NAMES) else set()


# ---- choosing --------------------------------------------------------------------------------------------------------


def choose(layers: list[tuple[int, int]], count: int, until: float, workers: int, path: Path = CHOSEN) -> int:
    """Choose, and write the file after every schedule that was looked at; 1 when time ran out before the end."""
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it

    found = read_chosen(path) if path.exists() else {}
    wanted: dict[str, tuple[dict[str, AnySpace], Iterator[int]]] = {}
    for stage, batch in layers:
        workload, name = workload_named(f"resnet50.stage{stage}@{batch}"), name_of(stage, batch)
        one = found[name] = found.get(name) or begun(workload, name)
        spaces = one.spaces(workload)
        wanted[name] = spaces, candidates(one, spaces, count, SEED + 10 * batch + stage)
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        while wanted and time.monotonic() < until:
            name = min(wanted, key=lambda name: len(found[name].schedules))  # whoever has fewest: all come to the same
            spaces, indices = wanted[name]
            index = next(indices, None)
            if index is None:
                del wanted[name]
                continue
            reason = why_not(spaces, index, pool)
            if reason is None:
                found[name].schedules.append(index)
            else:
                found[name].refused[str(index)] = reason
            write_chosen(found, path)
    for name in (name_of(*layer) for layer in layers):
        print(f"{name}: {len(found[name].schedules)} schedules, {len(found[name].refused)} refused", flush=True)
    return int(any(len(found[name_of(*layer)].schedules) < count for layer in layers))


def begun(workload: ConvWorkload, name: str) -> Layer:
    """A layer with what its records hold, or near its best known configuration when there are none."""
    there = recorded(name)
    if measured_with_all(name):
        lists = {sharing: meant(there[f"{sharing}-rp-nhwcnc"][0]["knobs"], WGMMA) for sharing in ("full", "none")}
        return Layer(lists, sorted(measured_with_all(name)))
    best = config_from_dict(recorded_best()[workload.spec]["config"])
    assert isinstance(best, WgmmaConfig)
    for plain in (False, True):
        near = knobs_near(workload, best, plain)
        one = Layer({sharing: meant(lists, WGMMA) for sharing, lists in near.items()})
        if common(one.spaces(workload)):
            break
    return one


def candidates(one: Layer, spaces: Mapping[str, AnySpace], count: int, seed: int) -> Iterator[int]:
    """Indices to look at until a layer has ``count``, half of them likely fast ones: the one nearest to the best known
    when there is none yet, then in turns whichever half lacks more."""
    here = spaces["full-rp-nhwcnc"]

    @cache
    def cycles(index: int) -> float:
        return estimated_cycles(here.plan(index))

    rng = random.Random(seed)
    ranked = sorted(common(spaces), key=cycles)
    quarter = set(ranked[: len(ranked) // 4])
    waiting = {True: [index for index in ranked if index in quarter], False: ranked[len(quarter) :]}
    for half in waiting.values():
        rng.shuffle(half)
    if not one.schedules:
        best = config_from_dict(recorded_best()[here.workload.spec]["config"]).to_dict()

        def differences(index: int) -> tuple[int, float]:
            values = here.config(index).to_dict()
            return sum(values.get(name) != value for name, value in best.items()), cycles(index)

        yield from (i for i in sorted(ranked, key=differences) if not one.schedules and str(i) not in one.refused)
    while len(one.schedules) < count and any(waiting.values()):
        fast = sum(index in quarter for index in one.schedules)
        wanted = fast < count // 2
        index = (waiting[wanted] or waiting[not wanted]).pop(0)
        if index not in one.schedules and str(index) not in one.refused:
            yield index


def common(spaces: Mapping[str, AnySpace]) -> list[int]:
    """Indices that are valid with every combination."""
    return sorted(set.intersection(*(set(one.valid) for one in spaces.values())))


def why_not(spaces: Mapping[str, AnySpace], index: int, pool: Executor) -> str | None:
    """Why a schedule cannot be compared: the first combination that does not build, and its reason."""
    names = sorted(spaces, key=lambda name: ("rp" in name, name))  # packing through shared memory takes most registers
    for wave in (names[:2], names[2:]):
        jobs = [(spaces[name].workload, spaces[name].config(index)) for name in wave]
        for name, reason in zip(wave, pool.map(built, *zip(*jobs, strict=True)), strict=True):
            if reason:
                return f"{name}: {reason}"
    return None


def built(workload: ConvWorkload, config: Configuration, how: Callable[..., Any] = build) -> str | None:
    """Why a configuration does not build, None when it does and nothing is found in it."""
    try:
        how(workload, config, TARGET)
    except BuildFailed as error:
        return str(error).partition(": ")[2] or str(error)
    return None


# ---- spaces ----------------------------------------------------------------------------------------------------------


def knobs_near(workload: ConvWorkload, best: WgmmaConfig, plain: bool = False) -> dict[str, Lists]:
    """The values around a configuration, by way of sharing. What is not varied is as in the configuration, or
    (``plain``) that of a pipeline at its default, but for the split over a cluster."""
    source = PipelineConfig(cluster_split_k=best.cluster_split_k) if plain else best
    usual = source.to_dict()
    listed, given = value_lists(workload), {**usual, **{n: v for n, v in best.to_dict().items() if n in usual}}
    knobs: Lists = {}
    for name, row in type(source).rows.items():
        if name in AROUND:
            values = sorted({*listed[name], given[name]})
            place = values.index(given[name])
            knobs[name] = tuple(values[max(0, place - AROUND[name]) : place + AROUND[name] + 1])
        elif name in MORE:
            knobs[name] = tuple(sorted({*MORE[name], given[name]}))
        elif not row.switch:
            knobs[name] = (usual[name],)
    return {sharing: {**knobs, **_turns(source, best, sharing)} for sharing in ("full", "none")}


def spaces_of(workload: ConvWorkload, knobs: Mapping[str, Lists]) -> dict[str, AnySpace]:
    """A space for each combination of the switches, in whose words the knobs are: those of today, or of records."""
    found: dict[str, AnySpace] = {}
    for name, switches in NAMES.items():
        fixed, lists = dict(zip(SWITCH_VALUES, switches, strict=True)), knobs[switches[0]]
        kind = WGMMA if set(lists) <= set(FAMILY.knobs) else "warpgroup"
        found[name] = FAMILY.recorded_space(workload, TARGET, kind, lists, fixed)
    return found


def _turns(source: WgmmaConfig, best: WgmmaConfig, sharing: str) -> Lists:
    """Consumers that load every tap anew cannot take turns: they read the same stages at the same time."""
    if not isinstance(source, PipelineConfig):
        return {}
    asked = best.stagger if isinstance(best, PipelineConfig) else source.stagger
    return {"stagger": (asked if sharing == "full" and best.consumers == 2 else 0,)}


# ---- building --------------------------------------------------------------------------------------------------------


def build_all(layers: list[tuple[int, int]], folder: Path, workers: int) -> int:
    """Bundles of the chosen schedules that are not recorded with every combination; 1 when a kernel does not build."""
    chosen, failed = read_chosen(), 0
    new_folder(folder, "folder of the bundles")  # a wrong one is said also where nothing is left to build
    for stage, batch in layers:
        name, workload = name_of(stage, batch), workload_named(f"resnet50.stage{stage}@{batch}")
        if name not in chosen:
            raise InvalidInput(f"{name}: no schedules were chosen for it: --choose a COUNT for --stages and --batches")
        missing = sorted(set(chosen[name].schedules) - measured_with_all(name))
        print(f"{name}: {len(missing)} schedules to measure, {len(chosen[name].schedules)} in all", flush=True)
        for combination, here in chosen[name].spaces(workload).items() if missing else ():
            report = build_bundle(here, folder / f"{name}-{combination}", workers, missing)
            failed += report.failed
            print(f"  {combination}: {report.built} built, {report.failed} failed", flush=True)
    return int(failed > 0)


# ---- after measuring -------------------------------------------------------------------------------------------------


def assemble(results: Path, folder: Path = RECORDED) -> int:
    """A landscape of each file of measurements, beside those of earlier runs; again after more was measured, the file
    of the same run is replaced. Raises InvalidInput when nothing was measured."""
    names, measured = set(), sorted(results.glob("stage*.jsonl"))
    if not measured:
        raise InvalidInput(
            f"{results} holds no measurements (stage*.jsonl): python benchmarks/paper measure writes them"
        )
    for path in measured:
        made = to_landscape(path)
        earlier = sorted(folder.glob(f"{path.stem}.*json.gz"))
        same = [one for one in earlier if read_file(one)[0]["created"] == made.header["created"]]
        made.save(same[0] if same else folder / f"{path.stem}.{1 + len(earlier)}.json.gz")
        names.add(path.stem.rsplit("-", 3)[0])
    for name in sorted(names):
        print(f"{name}: {len(measured_with_all(name, folder))} schedules with every combination", flush=True)
    return 0
