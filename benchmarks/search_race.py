"""The race that judges the searches (NOTES.md says what was fixed in advance), one record for each landscape.

python benchmarks/search_race.py --workers 16 -o benchmarks/results/races          what is missing there
python benchmarks/search_race.py --landscapes resnet50.stage5@8.paper.sm_90a --seeds 10 -o somewhere

Kernel Tuner's genetic algorithm runs in Kernel Tuner's own simulation mode; Optuna's TPE is asked for one configuration
at a time and told its result before the next, as its users run it; our searches are asked for eight at a time.
Records that exist are kept, so that a run that was cut short can be repeated. `search_tables.py` reads them.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

from kernel_tuner_opponent import search as kernel_tuner_search

from subbyte.analysis import Race, race, read_traces, write_traces
from subbyte.analysis.traces import Traces
from subbyte.errors import SubbyteError
from subbyte.tune import Landscape
from subbyte.tune.landscape import shipped
from subbyte.tune.recorded import space_of
from subbyte.tune.strategy import make_strategy

OURS = ("auto", "random", "genetic", "autotvm", "diverse", "diverse:scope=parent:measure=random",
        "diverse:measure=score", "autotvm:filter=3")  # fmt: skip
GENETIC, TPE = "kernel_tuner:genetic_algorithm", "optuna:tpe"
RESULTS = Path(__file__).resolve().parent / "results" / "races"
_CHUNK = 5


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--landscapes", nargs="*", help="files or shipped names (default: all that are shipped)")
    add("--strategies", nargs="*", default=list(OURS), help="our searches")
    add("--trials", type=int, default=200)
    add("--seeds", type=int, default=100)
    add("--workers", type=int, default=os.cpu_count() or 2)
    add("--limit", type=float, default=float("inf"), help="begin no further landscape after so many seconds")
    add("-o", "--output", type=Path, default=RESULTS, help="folder of the records")
    args = parser.parse_args(arguments)
    args.output.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    missing = []
    try:
        for which in args.landscapes or list(shipped()):
            found = Landscape.load(which)
            target = args.output / f"{found.name}.json.gz"
            if target.exists():
                continue
            if time.monotonic() - begun > args.limit:
                missing.append(found.name)
                continue
            run(found, str(which), args).save(target)
            print(f"{target.name}: {time.monotonic() - begun:.0f} s since the start", flush=True)
    except SubbyteError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if missing:
        print("not run, the time was up:", ", ".join(missing))
    return 0


def run(found: Landscape, which: str, args: argparse.Namespace) -> Race:
    """The race on one landscape: first the opponents, then ours."""
    command = f"python benchmarks/search_race.py --landscapes {found.name} --trials {args.trials} --seeds {args.seeds}"
    with tempfile.TemporaryDirectory() as folder:
        guests = [
            opponent(found, which, name, args.trials, args.seeds, args.workers, Path(folder)) for name in (GENETIC, TPE)
        ]
        return race(found, args.strategies, args.trials, args.seeds, args.workers, traces=guests, command=command)


def opponent(found: Landscape, which: str, name: str, trials: int, seeds: int, workers: int, folder: Path) -> Traces:
    """What an opponent visits, seeds spread over processes."""
    chunks = [range(start, min(start + _CHUNK, seeds)) for start in range(0, seeds, _CHUNK)]
    with ProcessPoolExecutor(min(workers, len(chunks)), get_context("spawn")) as pool:
        visited = list(pool.map(visit, [which] * len(chunks), [name] * len(chunks), [trials] * len(chunks), chunks))
    package = "kernel-tuner" if name == GENETIC else "optuna"
    tool = {"name": package, "version": metadata.version(package), "options": "defaults"}
    visits = dict(enumerate(indices for chunk in visited for indices in chunk))
    return read_traces(write_traces(folder / f"{package}.json", name, found, visits, tool))


def visit(which: str, name: str, trials: int, seeds: range) -> list[list[int]]:
    """Indices that the opponent visits for each seed."""
    found = Landscape.load(which)
    if name == GENETIC:
        return kernel_tuner_search(found, "genetic_algorithm", trials, seeds)
    return [one_at_a_time(found, "optuna", trials, seed) for seed in seeds]


def one_at_a_time(found: Landscape, text: str, trials: int, seed: int) -> list[int]:
    """Indices that a strategy visits when it learns each result before its next proposal."""
    strategy = make_strategy(text, space_of(found), seed)
    visited: list[int] = []
    while len(visited) < trials and (asked := strategy.ask(1)):
        strategy.tell(asked[0], found.results[asked[0]])
        visited += asked
    return visited


if __name__ == "__main__":
    sys.exit(main())
