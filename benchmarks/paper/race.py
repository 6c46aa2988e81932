"""Run the race that compares the searches (notes/searching.md says what was fixed in advance), a record per landscape.

python benchmarks/paper race --workers 16                                              all, minutes to an hour
python benchmarks/paper race --landscapes resnet50.stage5@8.paper.sm_90a --seeds 10 -o somewhere
python benchmarks/paper race --participants auto --seeds 50                            one search anew, the others kept
python benchmarks/paper race --participants auto --seeds 50 --first 31                 seeds 31 to 49, those before kept
python benchmarks/paper race --landscapes FOLDER/*.json.gz --participants ... -o benchmarks/results/races/foreign

Kernel Tuner's searches run in Kernel Tuner's own simulation mode (`kernel_tuner:` and its name of the search); Optuna's
TPE is asked for one configuration at a time and told its result before the next, as its users run it; our searches are
asked for eight at a time. Landscapes of others are caches of Kernel Tuner. Seed after seed is run on everything; what
is not complete when the time is up is left out. What a record in the folder holds of other participants stays in it.
`table` reads the records.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from benchmarks.paper.kernel_tuner import search as kernel_tuner_search
from benchmarks.shared.command import RESULTS, answering, parser_of
from subbyte.analysis import LandscapeFacts, Race, Run
from subbyte.analysis.racing import RACED_WITH, Ground, Job, lean, quiet_threads, run_one
from subbyte.errors import BrokenRecord
from subbyte.records.describe import now, versions
from subbyte.records.exchange import import_landscape
from subbyte.records.landscape import shipped
from subbyte.tune import Landscape
from subbyte.tune.strategy import make_strategy

KERNEL_TUNER, TPE = "kernel_tuner:", "optuna:tpe"
GENETIC = KERNEL_TUNER + "genetic_algorithm"
PARTICIPANTS = ("auto", "auto:prior=off", "random", "genetic", "autotvm", "diverse",
                "diverse:scope=parent:measure=random", "diverse:measure=score", "autotvm:filter=3", GENETIC,
                KERNEL_TUNER + "simulated_annealing", KERNEL_TUNER + "pso", KERNEL_TUNER + "adaptive_tabu_greywolf",
                TPE)  # fmt: skip
RACES = RESULTS / "races"
BATCH = 8


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper race", __doc__)
    add = parser.add_argument
    add("--landscapes", nargs="*", help="files (also Kernel Tuner's) or shipped names (default: all that are shipped)")
    add("--participants", nargs="*", default=list(PARTICIPANTS), help="our searches, and those of others")
    add("--trials", type=int, default=200)
    add("--seeds", type=int, default=100)
    add("--first", type=int, default=0, help="the first seed of a race that goes on: runs of those before stay")
    add("--workers", type=int, default=os.cpu_count() or 2)
    add("--limit", type=float, default=float("inf"), help="begin no further run after so many seconds")
    add("-o", "--output", type=Path, default=RACES, help="folder of the records")
    args = parser.parse_args(arguments)
    seeds = write(args)
    print(f"{seeds} of {args.seeds} seeds are complete, {args.output}")
    return 0 if seeds == args.seeds else 1


def write(args: argparse.Namespace) -> int:
    """Run everything and write the records; how many seeds are complete."""
    names = args.landscapes or list(shipped())
    begun, ends = time.monotonic(), time.time() + args.limit
    jobs = [(Job(name, who, seed, args.trials, BATCH), ends)
            for seed in range(args.first, args.seeds) for name in names for who in args.participants]  # fmt: skip
    with quiet_threads(), get_context("spawn").Pool(args.workers) as pool:
        runs = [run for run in pool.imap_unordered(work, jobs, chunksize=1) if run is not None]
    done = Counter(run.seed for run in runs)
    complete = {seed for seed, count in done.items() if count == len(names) * len(args.participants)}
    args.output.mkdir(parents=True, exist_ok=True)
    who = "" if args.participants == list(PARTICIPANTS) else " --participants " + " ".join(args.participants)
    begin = f" --first {args.first}" if args.first else ""
    command = f"python benchmarks/paper race --trials {args.trials} --seeds {args.seeds}{begin}{who}"
    for name in names if complete else ():
        facts = LandscapeFacts.of(landscape_of(name))
        own = [run for run in runs if run.landscape == facts.name and run.seed in complete]
        race = Race((facts,), tuple(args.participants), args.trials, tuple(own), 0, now(),
                    round(time.monotonic() - begun, 1), (), command, versions(RACED_WITH))  # fmt: skip
        path = args.output / f"{facts.name}.json.gz"
        joined(race, Race.load(path) if path.exists() else race, args.first).save(path)
    return args.first + len(complete)


def joined(race: Race, former: Race, first: int = 0) -> Race:
    """``race`` with what the ``former`` one on the same landscape holds of other participants and of seeds before the
    ``first``, in the usual order.

    Raises BrokenRecord when the two are not of the same landscape and number of trials.
    """
    if (race.landscapes, race.trials) != (former.landscapes, former.trials):
        raise BrokenRecord(f"{race.landscapes[0].name}: the former record is of another landscape or number of trials")
    kept = [run for run in former.runs if run.participant not in race.participants or run.seed < first]
    order = dict.fromkeys([*PARTICIPANTS, *former.participants, *race.participants])
    there = {run.participant for run in kept} | set(race.participants)
    names = [name for name in order if name in there]
    runs = sorted([*race.runs, *kept], key=lambda run: (run.seed, names.index(run.participant)))
    lines = dict.fromkeys([*(former.command.split("; ") if kept else []), race.command])
    return replace(race, participants=tuple(names), runs=tuple(runs), command="; ".join(lines))


def work(task: tuple[Job, float]) -> Run | None:
    """One run; None when the time is up."""
    job, ends = task
    if time.time() > ends:
        return None
    where = ground(job.landscape)
    if job.strategy != TPE and not job.strategy.startswith(KERNEL_TUNER):
        return run_one(where, Job(where.landscape.name, job.strategy, job.seed, job.trials, job.batch))
    begun = time.monotonic()
    if job.strategy == TPE:
        visited = one_at_a_time(where, job)
    else:
        strategy = job.strategy.removeprefix(KERNEL_TUNER)
        visited = kernel_tuner_search(where.landscape, strategy, job.trials, [job.seed])[0]
    made = Run.of_indices(where.landscape, job.strategy, job.seed, visited, job.trials)
    return Run(made.landscape, made.participant, made.seed, made.best_microseconds, made.evaluated, made.failed,
               round(time.monotonic() - begun, 4), made.batches)  # fmt: skip


@cache
def ground(name: str) -> Ground:
    """A landscape as every run on it uses it, once in each process."""
    return Ground(lean(landscape_of(name)))


def landscape_of(name: str) -> Landscape:
    """The landscape of a file or shipped name; a cache of Kernel Tuner goes by its file's name."""
    path = Path(name)
    try:
        return Landscape.load(name)
    except BrokenRecord:
        return replace(import_landscape(path), name=path.name.removesuffix(".gz").removesuffix(".json").lower())


def one_at_a_time(where: Ground, job: Job) -> list[int]:
    """Indices that TPE visits when it learns each result before its next proposal."""
    strategy = make_strategy("optuna", where.space, job.seed)
    visited: list[int] = []
    while len(visited) < job.trials and (asked := strategy.ask(1)):
        strategy.tell(asked[0], where.landscape.results[asked[0]])
        visited += asked
    return visited
