"""Tune every layer of ResNet-50 (batch 8, 64, 256), ResNet-18 and VGG-16 (batch 8) with both kernel families.

    python benchmarks/network tune OUT --gpus 4 --seconds 450 --earlier results/warpgroup/tuning-....json.gz ...

Each search is a study of one layer and one space. It goes on where an earlier run (``--earlier``: a record, or a folder
of logs) stopped, if its kernels are what they were then (``searches.py``); else it begins with what that found
fastest, measured anew. First every layer gets a turn: those that nobody has searched, those that still improved, those
with a knob that nobody has tried, then all others, beginning with what the makers of the kernels name (``--extra``),
untried values of what was good and the best by estimate; then the layers that still improve and have most to gain go on
(``schedule.py``).
Several studies take turns on each GPU, so that one builds while another is measured. Every candidate is compared with
the exact reference. At the end the fastest of each layer are measured again, in turns. ``OUT/*.jsonl`` are the logs
(continued when the program is started again; those of a layer whose kernels are other ones by then, or of a space that
is another one, are laid aside in ``OUT/earlier``), ``OUT/remeasured/*.json`` the times of the best, ``OUT/pack`` the
kernels that won (``shared/kernel_pack.py``). ``collect`` writes what the package and the repository keep.
``--layers`` tunes other layers than these, such as those that default kernels are judged by.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.network import searches
from benchmarks.network.arguments import check_files, check_some, options
from benchmarks.network.builders import (
    ForkedBuilders,
    Guarded,
    MakeNetworkBody,
    build_clean,
    likely,
    seeds,
    sorted_space,
    widened,
)
from benchmarks.network.layers import layers_of
from benchmarks.network.remeasured import TOP, entry_of, logs_of, pack, top_of, tried
from benchmarks.network.schedule import (
    FIRST,
    FURTHER,
    Going,
    Known,
    Task,
    Turns,
    earlier_best,
    needs_of,
    neighbours,
    tasks,
)
from benchmarks.network.searches import ARCH, TEXTS, probes, search_of, searches_in, take_over, texts_in, unchanged
from benchmarks.shared import kernel_pack
from benchmarks.shared.command import again, answering
from benchmarks.shared.gpu_case import need_gpus
from benchmarks.shared.written import write_at_once
from subbyte.device.arch import arch
from subbyte.errors import BrokenRecord, InvalidInput, SubbyteError
from subbyte.families import space
from subbyte.families.registry import config_from_dict, family_of
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.family import WGMMA as FAMILY
from subbyte.families.wgmma.space import SMALL, WGMMA
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.kernel.build import generator_digest
from subbyte.kernel.choose import recorded_best
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.fake import FakeRunner
from subbyte.measure.noise import rank_interleaved
from subbyte.records.landscape import Landscape, find_landscape
from subbyte.records.result import Measured
from subbyte.tune import Study, read_log
from subbyte.workload import ConvWorkload, ceil_div

AT_ONCE = 6
"""Most studies of one GPU that take turns."""
BATCH = 16
SEEDS = 12
"""Configurations by estimate that a search of the wgmma space begins with, behind those that are known."""
CHOICES = 3
"""First choices that are measured beside what a search found, as the first may not be built."""
ROUNDS = 5
PROTOCOL = TimingProtocol(launches=20, warmup_ms=1.0, min_total_ms=6.0, repeats=5, cold=False, timeout_s=1.5)


@answering
def main(arguments: Sequence[str]) -> int:
    """Search on every GPU, measure the best again, pack the kernels."""
    args = options(__doc__).parse_args(arguments)
    if args.part is not None:
        return part(args)
    end = time.time() + args.seconds
    check_files(args)
    check_some(args, wanted_tasks(args, {}))
    if args.runner == "cuda":
        need_gpus(args.gpus)
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it

    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        prepare(args, pool)
    running = [
        subprocess.Popen(again("network tune", arguments, "--part", str(number), "--end", str(end)))
        for number in range(args.gpus)
    ]
    failed = sum(child.wait() != 0 for child in running)
    if args.runner == "cuda":
        pack(args.out)
    return int(failed > 0)


def prepare(args: argparse.Namespace, pool: Executor, **how: Any) -> None:
    """The folders, without what an earlier start left in the way, and what is known before. ``how`` texts are made."""
    out: Path = args.out
    for folder in ("claims", "remeasured", "spaces", "earlier"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    for stale in (*(out / "claims").iterdir(), *(out / "spaces").iterdir()):
        stale.unlink()
    there = texts_in(out)
    same = unchanged(there, there, pool, **how)
    for log in out.glob("*.jsonl"):  # of other kernels: their times say what to try, nothing else
        if spec_of(log) not in same:
            lay_aside(log, out / "earlier")
    for one in (out / "remeasured").iterdir():
        if spec_of(one) not in same:
            one.unlink()
    layers = {task.workload.spec: task.workload for task in wanted_tasks(args, {})}
    known = earlier_best([out / "earlier", *args.earlier])
    missing = {
        layer: [*recorded(layer, "wgmma"), *known.get(spec, Known()).configs("wgmma")]
        for spec, layer in layers.items() if spec not in same
    }  # fmt: skip
    unknown = [layer for layer, configs in missing.items() if not configs]
    missing |= dict(zip(unknown, pool.map(likely, unknown, repeat(ARCH), repeat(1)), strict=True))
    texts = {**{spec: there[spec] for spec in same}, **probes(missing, pool, **how)}
    taken = {str(path): sorted(unchanged(texts_in(path), layers, pool, **how)) for path in args.earlier}
    write_at_once(out / "taken.json", taken)
    write_at_once(out / "known.json", {spec: one.to_dict() for spec, one in known.items()})
    write_at_once(out / TEXTS, {"texts": texts})


def spec_of(path: Path) -> str:
    """The workload of a log, or of a re-measurement; empty when the file is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        text = path.read_text(encoding="utf-8")
        data = json.loads(text.partition("\n")[0] if path.suffix == ".jsonl" else text)
        return str(data["workload"]["spec"] if path.suffix == ".jsonl" else data["spec"])
    return ""


def lay_aside(log: Path, folder: Path) -> None:
    """Keep a log that is not continued, beside others of its name."""
    number = sum(1 for _ in folder.glob(f"{log.stem}.*.jsonl"))
    log.rename(folder / f"{log.stem}.{number}.jsonl")


def wanted_tasks(args: argparse.Namespace, known: Mapping[str, Known]) -> list[Task]:
    """The studies that are asked for, in the order of their first turns."""
    found = tasks(needs_of(args.record), args.most, known, layers_of(args.layers))
    return [task for task in found
            if (not args.only or any(word in task.name for word in args.only.split(",")))
            and (not args.kinds or task.kind in args.kinds)]  # fmt: skip


# ---- one GPU -------------------------------------------------------------------------------------------------------


def part(args: argparse.Namespace) -> int:
    """Take turns while there are any, then measure the best again, on one GPU."""
    data = json.loads((args.out / "known.json").read_text(encoding="utf-8"))
    known = {spec: Known.from_dict(one) for spec, one in data.items()}
    wanted = wanted_tasks(args, known)
    runner, pool = open_runner(args, max(2, (os.cpu_count() or 1) // args.gpus))
    search = Search(args, runner, pool, known, needs_of(args.record), wanted)
    turns = Turns(search.begin)
    with runner, pool:
        together(shared_out(len(wanted), args.gpus), lambda: logged(args, lambda: search.work(turns)))
        search.report(turns)
        mine = list(dict.fromkeys(going.task.workload for going in turns.begun))
        layers = [*mine, *(one for one in dict.fromkeys(task.workload for task in wanted) if one not in mine)]
        for going in turns.begun:
            going.study.close()
        together(2, lambda: logged(args, lambda: [remeasure(args, one, runner) for one in layers if may(args, one)]))
    return 0


def shared_out(studies: int, gpus: int) -> int:
    """How many studies take turns on a GPU: no more than its share, else another GPU and its builders stand idle."""
    return max(1, min(AT_ONCE, ceil_div(studies, gpus)))


def together(count: int, work: Callable[[], Any]) -> None:
    """Do the same in several threads, and wait for all."""
    with ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            threads.submit(work)


def logged(args: argparse.Namespace, work: Callable[[], Any]) -> None:
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


def may(args: argparse.Namespace, layer: ConvWorkload) -> bool:
    """Whether the best of a layer are for this process to measure again."""
    return time.time() < args.end - 8 and claim(args.out, f"remeasure.{layer.label}")


def open_runner(args: argparse.Namespace, cpus: int) -> tuple[Any, Executor]:
    """The runner of this GPU, and its share of the processors, which build kernels and enumerate spaces."""
    if args.runner == "fake":
        return FakeRunner(), ThreadPoolExecutor(2)
    builders = ForkedBuilders(cpus)  # before anything else here begins a thread
    runner = CudaRunner(args.part, PROTOCOL, workers=cpus, build=build_clean, make_body=MakeNetworkBody)
    runner._pool.shutdown(wait=False)
    runner._pool = builders  # type: ignore[assignment]
    return Guarded(runner), builders


class Search:
    """The studies of one process. ``known`` by spec is what earlier runs found."""

    def __init__(
        self, args: argparse.Namespace, runner: Any, pool: Executor, known: Mapping[str, Known],
        needs: Mapping[str, float], wanted: list[Task],
    ) -> None:  # fmt: skip
        self.args, self.runner, self.pool = args, runner, pool
        self.known, self.needs, self.wanted = known, needs, wanted
        self.end = args.end - args.remeasure_seconds
        taken = json.loads((args.out / "taken.json").read_text(encoding="utf-8"))
        self.earlier = [search for path, specs in taken.items() for search in searches_in(Path(path))
                        if search.spec in specs]  # fmt: skip
        """Searches whose kernels are what they were."""

    def begin(self) -> Going | None:
        """The next study that nobody has taken, opened; None when there is none."""
        for task in self.wanted:
            if time.time() < self.end and claim(self.args.out, task.name):
                try:
                    return self.open(task)
                except SubbyteError as error:  # a family that does not cover the layer, a log in use
                    say(self.args, f"{task.name}: left out: {error}"[:300])
        return None

    def open(self, task: Task) -> Going:
        """A study, from where its log ends."""
        where, first = self.space_of(task)
        study, before = opened(where, "exhaustive" if task.kind == SMALL else "auto",
                               self.args.out / f"{task.name}.jsonl", self.args.out / "earlier")  # fmt: skip
        if all("taken_from" in trial.result.device for trial in study.trials if trial.result is not None):
            # nothing was measured here yet: whoever began to take over may have been killed meanwhile
            mine = (one for one in self.earlier if (one.spec, one.kind) == (task.workload.spec, task.kind))
            take_over(study, self.runner, [*before, *mine])
        study.queue(first)
        return Going(task, study, self.needs.get(task.workload.spec, 1.0), len(study.trials))

    def work(self, turns: Turns) -> None:
        """Turn after turn, until the time is over."""
        while time.time() < self.end and (going := turns.take()) is not None:
            begun = len(going.study.trials)
            most = begun + (FURTHER if begun else FIRST)
            if going.task.kind == SMALL:
                most = len(going.study.space.valid)
            most = min(most, going.task.trials or most)
            try:
                held = going.study.most_trials
                going.study.run(
                    self.runner, most if most <= held else None, BATCH, stop=[lambda _: time.time() > self.end]
                )
                going.closed = going.study.ended == "exhausted" or len(going.study.trials) == begun
            finally:
                turns.give_back(going)

    def report(self, turns: Turns) -> None:
        """A line for each study."""
        for going in turns.begun:
            trials, best = going.study.trials, going.study.best
            failed = sum(trial.microseconds is None for trial in trials)
            found = f"{best.microseconds:.2f} us at {best.number}, {best.config.key}" if best else "nothing"
            say(
                self.args,
                f"{going.task.name}: {len(trials)} of {len(going.study.space.valid)}, {failed} failed, {found}",
            )

    def space_of(self, task: Task) -> tuple[Any, list[Any]]:
        """The space of a study, and what to measure first."""
        layer = task.workload
        known = self.known.get(layer.spec, Known())
        if task.kind == WGMMA:
            choices = self.pool.submit(first_choices, layer, self.args.first).result() if self.args.layers else []
            named = [*further(self.args, layer), *choices]
            sure = list(dict.fromkeys([*named, *recorded(layer, "wgmma"), *known.configs("wgmma")]))
            first = [*sure, *likely(layer, ARCH, SEEDS // 3)]
            whole = widened(layer, ARCH, named)
            where, by_estimate = sorted_space(whole, self.pool, self.args.out / "spaces", include=first)
            fresh = neighbours(where, by_estimate, known.configs("wgmma")[:2], known.values)
            return where, [*sure, *fresh[: 2 * SEEDS], *seeds(where, first[len(sure) :], by_estimate, SEEDS)]
        where = space(layer, ARCH, task.kind)
        first = [*recorded(layer, "mma"), *known.configs("mma"), *of_landscape(layer, task.kind)]
        return where, [] if task.kind == SMALL else first


def opened(where: Any, strategy: str, log: Path, aside: Path) -> tuple[Study, list[searches.Search]]:
    """The study, with what its log holds; a log of another space (constraints changed meanwhile, or other values are
    listed) is laid aside: the study is begun anew, and can take over what the other holds. Raises InvalidInput when
    another process writes the log."""
    before = []
    if log.exists():
        try:
            return Study(where, strategy, 0, log, resume=True), []
        except (InvalidInput, BrokenRecord) as error:
            if "by another study" in str(error):
                raise
        with contextlib.suppress(InvalidInput, BrokenRecord):
            before = [search_of(log)]
        lay_aside(log, aside)
    return Study(where, strategy, 0, log), before


def of_landscape(layer: ConvWorkload, kind: str) -> list[Any]:
    """The fastest of a shipped landscape of the mma family."""
    name = find_landscape(layer, ARCH, kind)
    if name is None:
        return []
    held = Landscape.load(name)
    timed = sorted((r.microseconds, i) for i, r in held.results.items() if isinstance(r, Measured))
    return [held.config(index) for _, index in timed[:8]]


def recorded(layer: ConvWorkload, family: str) -> list[Any]:
    """The configuration of a family that earlier measurements found best."""
    best = recorded_best().get(layer.spec, {})
    entries = [one for one in (best, *best.values()) if isinstance(one, dict) and "config" in one]
    configs = [config_from_dict(one["config"]) for one in entries]
    return [config for config in configs if family_of(config).name == family]


def first_choices(layer: ConvWorkload, count: int) -> list[WgmmaConfig]:
    """What ``compile`` would try first of a layer that is named: a search begins with it, so that it finds nothing
    slower."""
    found = islice(FAMILY.candidates(layer, arch(ARCH)), count)
    return [config for config in found if isinstance(config, WgmmaConfig)]


def further(args: argparse.Namespace, layer: ConvWorkload) -> list[WgmmaConfig]:
    """The configurations that the files name for a layer; what this generator does not know is left out."""
    found = []
    for path in args.extra:
        for one in json.loads(path.read_text(encoding="utf-8")).get(layer.spec, ()):
            with contextlib.suppress(SubbyteError):
                found.append(config_from_dict(one))
    return [config for config in dict.fromkeys(found) if isinstance(config, WgmmaConfig)]


# ---- top-k re-measurement --------------------------------------------------------------------------------------------


def remeasure(args: argparse.Namespace, layer: ConvWorkload, runner: Any) -> None:
    """The fastest of all searches of a layer, in turns, in one process."""
    entries = top_of(args.out, layer)
    there = {entry["key"] for entry in entries}
    more = {config.key: config for config in [*further(args, layer), *recorded(layer, "wgmma"),
                                              *recorded(layer, "mma")] if config.key not in there}  # fmt: skip
    seen = tried(args.out, layer)
    entries += [entry_of(config, None) for key, config in more.items() if key not in seen]
    if args.layers:  # what a user gets, the first that can be built, beside what was found
        there = {entry["key"] for entry in entries}
        entries += [entry_of(config, None) for config in first_choices(layer, CHOICES) if config.key not in there]
    configs = [kernel_pack.config_from_dict(entry["family"], entry["config"]) for entry in entries]
    repeated = runner.run(layer, configs)  # compared with the reference once more: a race may have been lucky
    right = [(r.microseconds, place) for place, r in enumerate(repeated) if isinstance(r, Measured)]
    chosen = {place for _, place in sorted(right)[: len(right) if args.layers else 2 * sum(TOP.values())]}
    entries, configs = [[one[place] for place in sorted(chosen)] for one in (entries, configs)]
    if not entries:
        return
    times = runner.rematch(layer, configs, ROUNDS)
    for standing in rank_interleaved(times):
        entries[standing.place] |= {"microseconds": standing.microseconds, "samples": list(standing.samples)}
    entries.sort(key=lambda entry: entry["microseconds"])
    data = {
        "format": "subbyte-layer-finals", "schema": 1, "workload": layer.label, "spec": layer.spec,
        "trials": {path.stem.rpartition(".")[2]: len(read_log(path).trials) for path in logs_of(args.out, layer)},
        "generator": generator_digest(), "device": dict(runner.device), "protocol": PROTOCOL.to_dict(),
        "rounds": ROUNDS,
        "command": command_line(), "entries": entries,
    }  # fmt: skip
    write_at_once(args.out / "remeasured" / f"{layer.label}.json", data)
