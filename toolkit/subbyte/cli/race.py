"""``subbyte race``: strategies compared on recorded landscapes, with intervals and a verdict in words."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from subbyte.cli.arguments import command_parser, emit_and_save, positive, seed
from subbyte.errors import InvalidInput
from subbyte.streams import is_terminal, say

STRATEGIES = "random,genetic,autotvm,diverse"


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte race``."""
    parser = command_parser(
        subparsers,
        "race",
        "Compare strategies on recorded landscapes: every strategy with every seed, paired intervals, a verdict.",
        "subbyte race resnet50.stage2@8 --strategies random,autotvm,diverse --trials 200 --seeds 100 -o race.json.gz",
    )
    add = parser.add_argument
    text = "a landscape (a file or a shipped name), or a layer or network with shipped landscapes"
    add("workloads", metavar="WORKLOAD", nargs="*", help=text)
    text = (
        f"what to compare, with options (autotvm:loss=reg); `subbyte tune --help` lists them all; default {STRATEGIES}"
    )
    add("--strategies", metavar="A,B,...", default=STRATEGIES, help=text)
    add("--trials", metavar="N", type=positive, default=200, help="trials of each run (default 200)")
    add(
        "--seeds",
        metavar="N",
        type=positive,
        default=100,
        help="runs of each strategy, with seeds 0 to N-1 (default 100)",
    )
    add("--workers", metavar="N", type=positive, default=2, help="worker processes (default 2)")
    add("--batch", metavar="N", type=positive, default=8, help="configurations requested at a time (default 8)")
    add("--traces", metavar="FILE", action="append", default=[],
        help="also compare the configurations that another tool visited (a trace file); may be repeated")  # fmt: skip
    add("--statistics-seed", metavar="N", type=seed, default=0, help="seed of the resampling (default 0)")
    add("-o", "--output", metavar="FILE", help="save every run to FILE (.json.gz)")
    text = "recompute the statistics from saved runs; nothing is run"
    add("--load", "--from", metavar="FILE", nargs="+", help=text)


def run(args: argparse.Namespace) -> int:
    """Run or load a race and print it."""
    from subbyte.analysis import Race, race

    if args.output is not None and not args.output.endswith(".json.gz"):
        raise InvalidInput(f"--output {args.output}: the name must end in .json.gz")
    if args.load is not None:
        if args.workloads or args.output or args.traces:
            raise InvalidInput("--load prints a race kept earlier; it takes no WORKLOAD, --traces or --output")
        found = Race.join([Race.load(file) for file in args.load])
    elif not args.workloads:
        raise InvalidInput("name a WORKLOAD or a landscape (`subbyte landscape list`), or --load FILE")
    else:
        strategies = [text.strip() for text in args.strategies.split(",") if text.strip()]
        found = race(
            args.workloads, strategies, args.trials, args.seeds, args.workers, batch=args.batch, traces=args.traces,
            statistics_seed=args.statistics_seed, command=_command(args), progress=_progress, output=args.output,
        )  # fmt: skip
    file = args.output

    def save() -> None:
        if file is not None:
            found.save(file)

    saved = f"\n\nevery run: {file}" if file else ""
    return emit_and_save("race", {**found.to_dict(), "file": file}, args, found.text(), save, saved)


def _command(args: argparse.Namespace) -> str:
    """The command that repeats the race, with any number of workers."""
    words = ["subbyte", "race", *args.workloads, "--strategies", args.strategies, "--trials", str(args.trials),
             "--seeds", str(args.seeds), "--batch", str(args.batch)]  # fmt: skip
    words += [word for file in args.traces for word in ("--traces", file)]
    return shlex.join(words)


def _progress(done: int, total: int) -> None:
    """A counter on one line of a terminal, every hundredth run elsewhere."""
    terminal = is_terminal()
    if terminal or done % 100 == 0 or done == total:
        end = "\n" if not terminal or done == total else ""
        say(f"{chr(13) if terminal else ''}runs {done}/{total}", end=end)
