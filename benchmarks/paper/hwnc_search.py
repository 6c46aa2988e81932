"""Tune TVM's own HWNC schedule with the same tuner and trials: the first baseline of Table 1.

    python benchmarks/paper hwnc-search OUT --gpus 8 --seconds 440

One search for each 3x3 stage of ResNet50 at batch 8 with int4 values (``s4``: emulated on Hopper) and with bytes
(``s8``), each candidate compared with the reference; then the best of each search measured again, in turns.
``OUT/stageN-OPERAND.jsonl`` are the logs (continued when the program is started again), ``OUT/stageN-OPERAND.json`` the
re-measurements. Needs TVM and the CUDA toolkit's headers (``mma.h``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.paper.hwnc.case import MakeHwncBody
from benchmarks.paper.hwnc.kernel import build_s4, build_s8
from benchmarks.paper.hwnc.space import HwncSpace
from benchmarks.shared.command import add_search, again, answering, parser_of
from benchmarks.shared.gpu_case import need_gpus
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.measure.cuda_runner import CudaRunner
from subbyte.measure.noise import rank_interleaved
from subbyte.tune import Study, read_log
from subbyte.workload import workload

TASKS = [(stage, operand) for operand in ("s8", "s4") for stage in (2, 3, 4, 5)]
BUILDS: dict[str, Any] = {"s4": build_s4, "s8": build_s8}
PROTOCOLS = {"s4": TimingProtocol(cold=False, launches=5), "s8": TimingProtocol(cold=False)}
BATCH = 32
TOP = 5
ROUNDS = 9


@answering
def main(arguments: Sequence[str]) -> int:
    """Deal the searches out to the GPUs."""
    parser = parser_of("paper hwnc-search", __doc__)
    add_search(parser)
    args = parser.parse_args(arguments)
    if args.part is not None:
        return search(args)
    need_gpus(args.gpus)
    args.out.mkdir(parents=True, exist_ok=True)
    extra = ["--deadline", str(time.time() + args.seconds)]
    children = [
        subprocess.Popen(again("paper hwnc-search", arguments, *extra, "--part", str(part)))
        for part in range(args.gpus)
    ]
    return int(sum(child.wait() != 0 for child in children) > 0)


def search(args: argparse.Namespace) -> int:
    """All searches of one GPU, and the best of each measured again."""
    mine = TASKS[args.part :: args.gpus]
    for number, (stage, operand) in enumerate(mine):
        left = args.deadline - time.time()
        deadline = time.time() + left / (len(mine) - number)
        workers = max(1, (os.cpu_count() or 1) // args.gpus - 1)
        with CudaRunner(
            args.part, PROTOCOLS[operand], build=BUILDS[operand], workers=workers, make_body=MakeHwncBody
        ) as runner:
            print(one_search(args, runner, stage, operand, deadline), flush=True)
            remeasure(args, runner, stage, operand)
    return 0


def one_search(args: argparse.Namespace, runner: Any, stage: int, operand: str, deadline: float) -> str:
    """One study, from where its log ends to its last trial or the deadline."""
    started = time.time()
    log = args.out / f"stage{stage}-{operand}.jsonl"
    with Study(space_of(stage, operand), args.strategy, args.seed, log, resume=log.exists()) as study:
        record = study.run(runner, args.trials, BATCH, stop=[lambda _: time.time() > deadline])
        best = study.best
    failed = sum(trial.microseconds is None for trial in record.trials)
    found = f"{best.microseconds:.2f} us {best.config}" if best else "nothing"
    took = time.time() - started
    return f"stage{stage} {operand}: {len(record.trials)} trials ({failed} failed), best {found}, {took:.0f} s"


def remeasure(args: argparse.Namespace, runner: Any, stage: int, operand: str) -> None:
    """The fastest of a search once more, in turns."""
    trials = read_log(args.out / f"stage{stage}-{operand}.jsonl").trials
    timed = sorted((t for t in trials if t.microseconds is not None), key=lambda t: t.microseconds or 0.0)[:TOP]
    space = space_of(stage, operand)
    times = runner.rematch(space.workload, [space.config(trial.index) for trial in timed], ROUNDS)
    entries = [
        {
            "index": timed[standing.place].index,
            "config": space.config(timed[standing.place].index).to_dict(),
            "first_microseconds": timed[standing.place].microseconds,
            "microseconds": standing.microseconds,
            "samples": list(standing.samples),
        }
        for standing in rank_interleaved(times)
    ]
    data = {
        "format": "subbyte-hwnc-finals", "schema": 1, "stage": stage, "operand": operand, "strategy": args.strategy,
        "seed": args.seed, "trials": len(trials), "failed": sum(t.microseconds is None for t in trials),
        "valid": len(space.valid), "device": dict(runner.device), "protocol": PROTOCOLS[operand].to_dict(),
        "command": command_line(), "entries": entries,
    }  # fmt: skip
    (args.out / f"stage{stage}-{operand}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def space_of(stage: int, operand: str) -> Any:
    """The space of TVM's schedule for a stage."""
    return HwncSpace(workload(f"resnet50.stage{stage}@8"), operand)
