"""Tune a search for each combination of the switches: the retuned optima behind Figures 15 and 16, and Table 1.

    python benchmarks/paper retuned OUT --gpus 8 --seconds 440

For each 3x3 stage of ResNet50 at batch 8 and each of the twelve combinations of sharing, packing and layout, one search
of the paper's space with the same tuner, seed and number of trials. A stage's searches lie on as few GPUs as possible;
three run side by side on a GPU, so that one builds while another is measured. The best configurations of all
combinations of a stage, and those of its recorded landscape, are then measured again, in turns, in one process.
``OUT/NAME.jsonl`` are the searches' logs (continued when the program is started again), ``OUT/stageN-finals.json`` the
re-measurements.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.shared.command import add_search, again, answering, parser_of
from benchmarks.shared.gpu_case import need_gpus
from subbyte.families import Space, space
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.fake import FakeRunner
from subbyte.measure.noise import rank_interleaved
from subbyte.records.landscape import landscape
from subbyte.records.result import Measured
from subbyte.tune import Study, read_log

STAGES = (2, 3, 4, 5)
SWITCHES: dict[str, dict[str, Any]] = {
    f"{sharing}-{'rp' if packing else 'sp'}-{layout}": {
        "duplicate_aware": sharing,
        "register_packing": packing,
        "layout": layout,
    }
    for sharing, packing, layout in itertools.product(("full", "none", "shared"), (True, False), ("nhwcnc", "nhwc"))
}
EXHAUSTIVE = "exhaustive"
"""Among what is measured again: the fastest of the recorded landscape, all techniques on."""
AT_ONCE = 3
BATCH = 32
TOP = 3
ROUNDS = 9
PROTOCOL = TimingProtocol(cold=False)


@answering
def main(arguments: Sequence[str]) -> int:
    """Search on every GPU, then measure the best of each stage again."""
    parser = parser_of("paper retuned", __doc__)
    add_search(parser)
    parser.add_argument("--runner", choices=("cuda", "fake"), default="cuda")
    parser.add_argument("--remeasure", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.part is not None:
        return search(args)
    if args.remeasure is not None:
        return remeasure(args)
    if args.runner == "cuda":
        need_gpus(args.gpus)
    args.out.mkdir(parents=True, exist_ok=True)
    deadline = time.time() + args.seconds
    status = children(arguments, [["--part", str(part), "--deadline", str(deadline)] for part in range(args.gpus)])
    for first in range(0, len(STAGES), args.gpus):
        status += children(arguments, [["--remeasure", str(stage)] for stage in STAGES[first : first + args.gpus]])
    return int(status > 0)


def children(words: Sequence[str], many: list[list[str]]) -> int:
    """Run this program (``words``) once for each list of further arguments, side by side; how many failed."""
    running = [subprocess.Popen(again("paper retuned", words, *extra)) for extra in many]
    return sum(child.wait() != 0 for child in running)


def tasks(part: int, gpus: int) -> list[tuple[int, str]]:
    """Stage and switches of the searches of GPU ``part``: a stage's searches lie on as few GPUs as possible."""
    every = [(stage, name) for stage in STAGES for name in SWITCHES]
    share = len(every) / gpus
    return every[round(part * share) : round((part + 1) * share)]


def search(args: argparse.Namespace) -> int:
    """All searches of one GPU, ``AT_ONCE`` side by side."""
    with open_runner(args, args.part) as runner, ThreadPoolExecutor(AT_ONCE) as threads:
        for line in threads.map(lambda task: one_search(args, runner, *task), tasks(args.part, args.gpus)):
            print(line, flush=True)
    return 0


def one_search(args: argparse.Namespace, runner: Any, stage: int, name: str) -> str:
    """One study, from where its log ends to its last trial or the deadline."""
    started = time.time()
    log = args.out / f"stage{stage}-{name}.jsonl"
    with Study(space_of(stage, name), args.strategy, args.seed, log, resume=log.exists()) as study:
        record = study.run(runner, args.trials, BATCH, stop=[lambda _: time.time() > args.deadline])
        best = study.best
    took = time.time() - started
    found = f"{best.microseconds:.3f} us" if best else "nothing"
    return f"stage{stage} {name}: {len(record.trials)} trials, {record.ended}, best {found}, {took:.0f} s"


def remeasure(args: argparse.Namespace) -> int:
    """The fastest of all combinations of a stage, in turns, in one process, on one GPU."""
    stage = args.remeasure
    entries: list[dict[str, Any]] = []
    for name in SWITCHES:
        log = args.out / f"stage{stage}-{name}.jsonl"
        trials = read_log(log).trials if log.exists() else ()
        timed = [trial for trial in trials if trial.microseconds is not None]
        entries += [
            {
                "switches": name,
                "index": trial.index,
                "trials": len(trials),
                "first_microseconds": trial.microseconds,
            }
            for trial in sorted(timed, key=lambda t: t.microseconds or 0.0)[:TOP]
        ]
    recorded = landscape(f"resnet50.stage{stage}@8").results
    best = sorted((result.microseconds, index) for index, result in recorded.items() if isinstance(result, Measured))
    entries += [{"switches": EXHAUSTIVE, "index": i, "first_microseconds": time} for time, i in best[:TOP]]
    with open_runner(args, STAGES.index(stage) % args.gpus) as runner:
        configs = [space_of(stage, e["switches"]).config(e["index"]) for e in entries]
        times = runner.rematch(space_of(stage, "full-rp-nhwcnc").workload, configs, ROUNDS)
        device = dict(runner.device)
    for standing in rank_interleaved(times):
        entries[standing.place]["microseconds"] = standing.microseconds
        entries[standing.place]["samples"] = list(standing.samples)
    data = {
        "format": "subbyte-tuned-finals", "schema": 1, "stage": stage, "strategy": args.strategy, "seed": args.seed,
        "trials": args.trials, "rounds": ROUNDS, "device": device, "protocol": PROTOCOL.to_dict(),
        "command": command_line(), "entries": entries,
    }  # fmt: skip
    (args.out / f"stage{stage}-finals.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


def open_runner(args: argparse.Namespace, gpu: int) -> Any:
    """The runner of one GPU, with its share of the processors for building."""
    if args.runner == "fake":
        return FakeRunner()
    return CudaRunner(gpu, PROTOCOL, workers=max(1, (os.cpu_count() or 1) // args.gpus - 1))


def space_of(stage: int, name: str) -> Space:
    """The paper's space of a stage with these switches."""
    return space(f"resnet50.stage{stage}@8", **SWITCHES.get(name, {}))
