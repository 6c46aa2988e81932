"""``subbyte tune``: search the best configuration, on this GPU or on recorded landscapes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from subbyte.cli.arguments import (
    add_arch_argument,
    add_workloads_argument,
    command_parser,
    configuration,
    emit,
)

if TYPE_CHECKING:
    from subbyte.measure.result import Result
    from subbyte.tune.record import Trial
    from subbyte.tune.study import Callback, Study

DEFAULT_TRIALS = 100
FALLS_SHORT, INTERRUPTED = 1, 130


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte tune``."""
    parser = command_parser(
        subparsers,
        "tune",
        "Search the best configuration of each workload. Ctrl-C keeps the best so far; --log survives a crash.",
        "subbyte tune resnet50.stage2@8 --trials 200 --seed 1 --log stage2.jsonl",
    )
    add_workloads_argument(parser)
    add = parser.add_argument
    add("--runner", default="auto", help="auto (cuda with a GPU, else replay), cuda, replay, fake; default auto")
    add("--strategy", metavar="NAME[:k=v]", default="random", help="random, exhaustive:order=...; default random")
    add("--trials", metavar="N", type=_trials, default=DEFAULT_TRIALS,
        help=f"results per workload, resumed ones included, or `all` (default {DEFAULT_TRIALS})")  # fmt: skip
    add("--seed", metavar="N", type=int, default=0, help="seed of the strategy (default 0)")
    add(
        "--batch",
        metavar="N",
        type=_positive,
        default=8,
        help="configurations the strategy is asked for at a time (default 8)",
    )
    add("--log", metavar="FILE", help="append every result to FILE; several workloads get a file each")
    add("--resume", action="store_true", help="go on with an existing log")
    add("--landscape", metavar="FILE", help="replay this landscape (a file or a shipped name)")
    add("--space", metavar="KIND", default="paper", help="paper or extended; default paper")
    add_arch_argument(parser, default=None)
    add("--set", metavar="SWITCH=VALUE", dest="settings", action="append", default=[],
        help="a switch of the whole space, such as layout=nhwc; several may follow")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Tune, print the report; 1 when a workload has no working configuration, 130 after Ctrl-C."""
    from subbyte.tune import tune

    with _progress(args.trials) as callback:
        report = tune(
            args.workloads, args.runner, args.strategy, args.trials, args.seed, args.log, args.resume,
            arch=args.arch, kind=args.space, fixed=_switches(args), landscape=args.landscape, batch=args.batch,
            callbacks=[callback] if callback else [],
        )  # fmt: skip
    for label, reason in report.skipped.items():
        print(f"subbyte: {label} was not tuned: {reason}", file=sys.stderr)
    emit("tune", report.to_dict(), args, "\n".join(_summary(row) for row in report.rows()))
    if report.interrupted:
        return INTERRUPTED
    return 0 if len(report.best) == len(report.records) else FALLS_SHORT


def _switches(args: argparse.Namespace) -> dict[str, Any]:
    """``--set`` names switches here; the knobs are what is searched."""
    chosen = configuration(args)
    names = [setting.partition("=")[0].strip().lower().replace("-", "_") for setting in args.settings]
    return {name: getattr(chosen, name) for name in names}


def _summary(row: dict[str, Any]) -> str:
    failed = ", ".join(f"{count} {kind}" for kind, count in row["failed"].items())
    count = f"{row['trials']} trial" + "s" * (row["trials"] != 1)
    head = f"{row['workload']}  {count}{f' ({failed} failed)' if failed else ''} on {row['device']}"
    head += {"exhausted": ", the whole space", "interrupted": ", interrupted", "stopped": ", stopped"}.get(
        row["ended"], ""
    )
    if row["best_config"] is None:
        return f"{head}\n  no configuration worked; see the reasons in the log (--log FILE)"
    best = f"  best    {row['best_microseconds']:.2f} us, {row['best_tops']:.1f} TOPS (trial {row['best_trial']})"
    if row["fraction_of_optimum"] is not None:
        best += f", {100 * row['fraction_of_optimum']:.1f}% of the optimum ({row['optimum_microseconds']:.2f} us)"
    return f"{head}\n{best}\n  config  {_settings(row['best_config'])}"


def _settings(config: dict[str, Any]) -> str:
    """The knobs of the paper and whatever is not at its default, as ``subbyte build --set`` takes them."""
    from subbyte.schedule.config import KNOBS, ConvConfig

    usual = ConvConfig().to_dict()
    return " ".join(f"{key}={value}" for key, value in config.items() if key in KNOBS or value != usual[key])


@contextmanager
def _progress(trials: int | None) -> Iterator[Callback | None]:
    """A callback that draws a bar per workload on stderr; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[best]}"))  # fmt: skip
    tasks: dict[str, Any] = {}
    fastest: dict[str, float] = {}
    with Progress(*columns, console=Console(stderr=True)) as bars:

        def update(study: Study, trial: Trial, result: Result) -> None:
            label = study.space.workload.label
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=trials, best="")
                fastest[label] = study.best.microseconds or 0.0 if study.best else float("inf")
            if trial.microseconds is not None:
                fastest[label] = min(fastest[label], trial.microseconds)
            best = f"best {fastest[label]:.2f} us" if fastest[label] < float("inf") else ""
            bars.update(tasks[label], completed=len(study.trials), best=best)

        yield update


def _trials(text: str) -> int | None:
    return None if text.lower() == "all" else _positive(text)


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a positive integer")
    return number
