"""Tunes every layer of ResNet-50 (batch 8, 64, 256), ResNet-18 and VGG-16 (batch 8) with both kernel families.

    python benchmarks/tune_network.py OUT --gpus 8 --seconds 330

Each search is a study of one layer and one space; whoever is free takes the next one, several side by side on each GPU,
so that one builds while another is measured. Every candidate is compared with the exact reference. The searches of the
warpgroup family begin with the best by estimate; the four 3x3 stages at batch 8 and 256 are also sampled at random, for
landscapes. At the end the fastest of each layer are measured again, in turns. ``OUT/*.jsonl`` are the logs (continued
when the program is started again), ``OUT/finals/*.json`` the finals, ``OUT/pack`` the kernels that won
(``kernel_pack.py``). ``collect_tuning.py`` writes what the package and the repository keep.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel_pack
from network_tuning import ForkedBuilders, MakeNetworkBody, build_clean, likely, place_of, seeds, sorted_space

from subbyte.errors import BrokenRecord, InvalidInput, SubbyteError
from subbyte.kernel.choose import recorded_best
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.fake import FakeRunner
from subbyte.measure.noise import rank_interleaved
from subbyte.measure.result import Measured
from subbyte.measure.timing import TimingProtocol, command_line
from subbyte.measure.worker import WorkerPool
from subbyte.schedule import WarpgroupConfig
from subbyte.space import space
from subbyte.tune import Study, read_log
from subbyte.tune.landscape import Landscape, find_landscape
from subbyte.workload import ConvWorkload, workload, workloads

ARCH = "sm_90a"
STAGES = tuple(f"resnet50.stage{stage}" for stage in (2, 3, 4, 5))
SAMPLED = "sampled"
"""Instead of a kind of space: the warpgroup space, drawn at random."""
AT_ONCE = 4
BATCH = 16
SEEDS = 16
LOOKED_AT = 160_000
"""Products of a larger space that are looked at, but for the 3x3 stages, where all are."""
FINALISTS = {"warpgroup": 3, "warp": 2}
ROUNDS = 5
PROTOCOL = TimingProtocol(launches=20, warmup_ms=1.0, min_total_ms=6.0, repeats=5, cold=False, timeout_s=3.0)


@dataclass(frozen=True)
class Task:
    """One study: a layer, a kind of space, and how many results it should hold."""

    workload: ConvWorkload
    kind: str
    trials: int

    @property
    def name(self) -> str:
        """Stem of its log."""
        return f"{self.workload.label}.{self.kind}"


def tasks(most: int | None = None) -> list[Task]:
    """All studies, the most important first; ``most`` bounds their trials (for rehearsals)."""

    def several(kind: str, trials: int, names: list[str]) -> list[Task]:
        return [Task(one, kind, min(trials, most or trials)) for one in workloads(names)]

    stages = [f"{stage}@{batch}" for batch in (8, 256, 64) for stage in STAGES]
    every = {batch: [one.label for one in workloads(f"resnet50@{batch}") if one.label not in stages]
             for batch in (8, 64, 256)}  # fmt: skip
    shared = set(workloads("resnet50@8"))
    others = [one.label for one in workloads(["resnet18@8", "vgg16@8"]) if one not in shared]
    found = several("warpgroup", 120, stages)
    for batch in (8, 256, 64):
        found += several("warpgroup", 48, every[batch])
    found += several("extended", 24, [f"{STAGES[0]}@8", f"{STAGES[3]}@8"])
    found += several("paper", 24, [f"{STAGES[1]}@8", f"{STAGES[2]}@8"])
    found += several("warpgroup", 40, others)
    found += several(SAMPLED, 200, [f"{stage}@{batch}" for batch in (8, 256) for stage in STAGES])
    found += several("paper", 24, [*every[8], *others])
    found += several("paper", 12, [name for batch in (64, 256) for name in every[batch] if "1x1" in name])
    return found


def main() -> int:
    """Search on every GPU, hold the finals, pack the kernels."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=330.0, help="everything ends so many seconds after the start")
    parser.add_argument("--finals-seconds", type=float, default=40.0, help="of these, for finals and packing")
    parser.add_argument("--only", default="", help="only studies whose name holds one of these words (a, b, ...)")
    parser.add_argument("--most", type=int, help="most trials of a study")
    parser.add_argument(
        "--extra",
        type=Path,
        help="JSON: further configurations of the warpgroup family by spec, which need not lie in a space",
    )
    parser.add_argument("--runner", choices=("cuda", "fake"), default="cuda")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part is not None:
        return part(args)
    started = time.time()
    for folder in ("claims", "finals", "spaces"):
        (args.out / folder).mkdir(parents=True, exist_ok=True)
    for stale in (*(args.out / "claims").iterdir(), *(args.out / "spaces").iterdir()):
        stale.unlink()
    end = started + args.seconds
    running = [
        subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--part", str(number), "--end", str(end)])
        for number in range(args.gpus)
    ]
    failed = sum(child.wait() != 0 for child in running)
    pack(args.out)
    return int(failed > 0)


# ---- one GPU -------------------------------------------------------------------------------------------------------


def part(args: argparse.Namespace) -> int:
    """Take studies, then finals, while there are any, on one GPU."""
    wanted = [task for task in tasks(args.most) if not args.only or any(w in task.name for w in args.only.split(","))]
    search_end = args.end - args.finals_seconds
    cpus = max(2, (os.cpu_count() or 1) // args.gpus)
    with open_runner(args, cpus) as runner, WorkerPool(min(cpus, 12), "sorting") as pool:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in range(AT_ONCE):
                threads.submit(logged, args, lambda: [one_study(args, task, runner, pool, search_end)
                                                      for task in claimed(args.out, wanted, search_end)])  # fmt: skip
        layers = list(dict.fromkeys(task.workload for task in wanted))
        with ThreadPoolExecutor(2) as threads:
            for _ in range(2):
                threads.submit(logged, args, lambda: [one_final(args, one, runner)
                                                      for one in claimed_layers(args, layers)])  # fmt: skip
    return 0


def logged(args: argparse.Namespace, work: Any) -> None:
    """Do work; say what went wrong instead of losing it in a thread."""
    try:
        work()
    except Exception as error:
        say(args, f"stopped: {type(error).__name__}: {error}"[:300])


def say(args: argparse.Namespace, text: str) -> None:
    """A line with the seconds since the start and the GPU."""
    print(f"[{time.time() - args.end + args.seconds:5.0f}s gpu {args.part}] {text}", flush=True)


def claim(out: Path, name: str) -> bool:
    """Take something for this process; False when another has it."""
    try:
        os.close(os.open(out / "claims" / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def claimed(out: Path, wanted: list[Task], end: float) -> Iterator[Task]:
    """Studies that nobody has taken, one after the other."""
    for task in wanted:
        if time.time() < end and claim(out, task.name):
            yield task


def claimed_layers(args: argparse.Namespace, layers: list[ConvWorkload]) -> Iterator[ConvWorkload]:
    """Layers whose finals nobody holds."""
    for layer in layers:
        if time.time() < args.end - 8 and claim(args.out, f"final.{layer.label}"):
            yield layer


def open_runner(args: argparse.Namespace, cpus: int) -> Any:
    """The runner of this GPU, with its share of the processors for building."""
    if args.runner == "fake":
        return FakeRunner()
    builders = ForkedBuilders(cpus - 1)  # before anything else here begins a thread
    runner = CudaRunner(args.part, PROTOCOL, workers=cpus - 1, build=build_clean, make_body=MakeNetworkBody)
    runner._pool.shutdown(wait=False)
    runner._pool = builders  # type: ignore[assignment]
    return runner


def one_study(args: argparse.Namespace, task: Task, runner: Any, pool: WorkerPool, end: float) -> None:
    """One study, from where its log ends to its last trial or the end."""
    started = time.time()
    where, first = space_of(args.out, task, pool)
    log = args.out / f"{task.name}.jsonl"
    strategy = "random" if task.kind == SAMPLED else "auto"
    with opened(where, strategy, log) as study:
        if task.kind == "warpgroup" and len(where.valid):
            first = [
                *(config for config in further(args, task.workload) if place_of(where, config) in where.valid),
                *first,
            ]
        study.queue(first)
        study.run(runner, task.trials, BATCH, stop=[lambda _: time.time() > end])
        best, held = study.best, len(study.trials)
        wrong = sum(trial.microseconds is None for trial in study.trials)
    found = f"{best.microseconds:.2f} us {best.config.key}" if best else "nothing"
    say(args, f"{task.name}: {held} of {len(where.valid)}, {wrong} failed, {found}, {time.time() - started:.0f} s")


def opened(where: Any, strategy: str, log: Path) -> Study:
    """The study, with what its log holds; a log of another space (constraints changed meanwhile) is begun anew."""
    if log.exists():
        with contextlib.suppress(InvalidInput, BrokenRecord):
            return Study(where, strategy, 0, log, resume=True)
        log.unlink()
    return Study(where, strategy, 0, log)


def space_of(out: Path, task: Task, pool: WorkerPool) -> tuple[Any, list[Any]]:
    """The space of a study, and what to measure first."""
    if task.kind in ("warpgroup", SAMPLED):
        first = [*recorded(task.workload), *likely(task.workload, ARCH, SEEDS // 4)]
        limit = None if task.workload.label.startswith(tuple(f"{stage}@" for stage in STAGES)) else LOOKED_AT
        where, by_estimate = sorted_space(task.workload, ARCH, pool, out / "spaces", limit, first)
        return where, [] if task.kind == SAMPLED else seeds(where, first, by_estimate, SEEDS)
    name = find_landscape(task.workload, ARCH, task.kind)
    first = []
    if name is not None:
        held = Landscape.load(name)
        timed = sorted((r.microseconds, i) for i, r in held.results.items() if isinstance(r, Measured))
        first = [held.config(index) for _, index in timed[:8]]
    return space(task.workload, ARCH, task.kind), first


def recorded(layer: ConvWorkload) -> list[WarpgroupConfig]:
    """The configuration of the warpgroup family that earlier measurements found best."""
    best = recorded_best().get(layer.spec)
    known = best is not None and best.get("family", "warpgroup") == "warpgroup"
    return [WarpgroupConfig.from_dict(best["config"])] if best is not None and known else []


# ---- finals --------------------------------------------------------------------------------------------------------


def one_final(args: argparse.Namespace, layer: ConvWorkload, runner: Any) -> None:
    """The fastest of all searches of a layer, in turns, in one process."""
    entries = [*extras(args, layer, runner), *finalists(args.out, layer)]
    entries = list({(entry["family"], entry["key"]): entry for entry in entries}.values())
    configs = [kernel_pack.config_from_dict(entry["family"], entry["config"]) for entry in entries]
    again = runner.run(layer, configs)  # compared with the reference once more: a race may have been lucky
    entries = [entry for entry, result in zip(entries, again, strict=True) if isinstance(result, Measured)]
    configs = [config for config, result in zip(configs, again, strict=True) if isinstance(result, Measured)]
    if not entries:
        return
    times = runner.rematch(layer, configs, ROUNDS)
    for standing in rank_interleaved(times):
        entries[standing.place] |= {"microseconds": standing.microseconds, "samples": list(standing.samples)}
    entries.sort(key=lambda entry: entry["microseconds"])
    data = {
        "format": "subbyte-layer-finals", "schema": 1, "workload": layer.label, "spec": layer.spec,
        "trials": {path.stem.rpartition(".")[2]: len(read_log(path).trials) for path in logs_of(args.out, layer)},
        "device": dict(runner.device), "protocol": PROTOCOL.to_dict(), "rounds": ROUNDS,
        "command": command_line(), "entries": entries,
    }  # fmt: skip
    (args.out / "finals" / f"{layer.label}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def extras(args: argparse.Namespace, layer: ConvWorkload, runner: Any) -> list[dict[str, Any]]:
    """What earlier measurements and the file of further configurations name, as far as it is right: it may lie outside
    the space."""
    configs = [*recorded(layer), *further(args, layer)]
    results = runner.run(layer, configs) if configs else []
    right = [(result.microseconds, config) for result, config in zip(results, configs, strict=True)
             if isinstance(result, Measured)]  # fmt: skip
    return [
        {"family": "warpgroup", "key": config.key, "config": config.to_dict(), "first_microseconds": us}
        for us, config in sorted(right, key=lambda entry: entry[0])[: FINALISTS["warpgroup"]]
    ]


def further(args: argparse.Namespace, layer: ConvWorkload) -> list[WarpgroupConfig]:
    """The configurations that the file names for a layer."""
    given = json.loads(args.extra.read_text(encoding="utf-8")) if args.extra is not None and args.extra.exists() else {}
    return [WarpgroupConfig.from_dict(one) for one in given.get(layer.spec, ())]


def logs_of(out: Path, layer: ConvWorkload) -> list[Path]:
    """The logs of a layer."""
    return sorted(path for path in out.glob("*.jsonl") if path.stem.rpartition(".")[0] == layer.label)


def finalists(out: Path, layer: ConvWorkload) -> list[dict[str, Any]]:
    """The fastest few of each family, two that overlap with others in a chain among them."""
    found: dict[str, dict[str, tuple[float, Any]]] = {family: {} for family in FINALISTS}
    for path in logs_of(out, layer):
        for trial in read_log(path).trials:
            if trial.microseconds is not None:
                family = kernel_pack.family_of(trial.config)
                known = found[family].get(trial.config.key, (float("inf"), None))
                found[family][trial.config.key] = min(known, (trial.microseconds, trial.config), key=lambda e: e[0])
    chosen = []
    for family, count in FINALISTS.items():
        ordered = sorted(found[family].values(), key=lambda entry: entry[0])
        overlapping = [entry for entry in ordered if getattr(entry[1], "overlap", 0)]
        for us, config in [*ordered[:count], *(entry for entry in overlapping[:2] if entry not in ordered[:count])]:
            chosen.append({"family": family, "key": config.key, "config": config.to_dict(), "first_microseconds": us})
    return chosen


def pack(out: Path) -> None:
    """Put the two fastest kernels of each layer, and the two fastest that overlap, into ``out/pack``; what was built
    is still in the cache."""
    target = out / "pack"
    if (target / "kernels.jsonl").exists():
        (target / "kernels.jsonl").unlink()
    for path in sorted((out / "finals").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        layer, packed = workload(data["workload"]), []
        overlapping = [entry for entry in data["entries"] if entry["config"].get("overlap")]
        first = data["entries"][:2]
        for entry in [*first, *(entry for entry in overlapping[:2] if entry not in first)]:
            config = kernel_pack.config_from_dict(entry["family"], entry["config"])
            try:
                kernel = build_clean(layer, config, ARCH)
            except SubbyteError as error:
                print(f"{layer}: not packed: {error}"[:200], flush=True)
                continue
            reason = f"{entry['family']} family, fastest of the searches"
            packed.append(
                kernel_pack.Packed(layer, entry["family"], config, reason, bytes(kernel.cubin), kernel.launch)
            )
        kernel_pack.add(target, packed)


if __name__ == "__main__":
    sys.exit(main())
