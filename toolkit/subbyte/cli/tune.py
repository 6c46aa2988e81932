"""``subbyte tune``: search for the best configuration, on this GPU or on recorded landscapes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from subbyte.cli.arguments import (
    add_arch_argument,
    add_sparsity_argument,
    add_workloads_argument,
    command_parser,
    emit_and_save,
    kind_list,
    natural_number,
    positive,
    seconds,
    seed,
    take_sparsity,
)
from subbyte.cli.space_arguments import switches
from subbyte.files import prove_writable
from subbyte.interrupts import EXIT_CODE, LINE
from subbyte.streams import is_terminal, say
from subbyte.tune.strategy import describe_strategies

if TYPE_CHECKING:
    from subbyte.records.result import Result
    from subbyte.tune.outcome import TuningReport
    from subbyte.tune.record import Trial
    from subbyte.tune.study import Callback, Study

DEFAULT_TRIALS = 100
FALLS_SHORT = 1


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte tune``."""
    parser = command_parser(
        subparsers,
        "tune",
        "Search for the best configuration of each workload, or of all layers of a network. Ctrl-C keeps the best so "
        "far; --log survives a crash.",
        "subbyte tune resnet50.stage2@8 --trials 200 --seed 1 --log stage2.jsonl",
    )
    parser.epilog = (
        f"{parser.epilog}\n\nstrategies, and their options with defaults:\n{_indented(describe_strategies())}"
    )
    add_workloads_argument(parser)
    add_sparsity_argument(parser)
    add = parser.add_argument
    text = (
        "cuda (measure on the GPU), replay (recorded times), fake (made-up times) or auto (default): cuda if there is "
    )
    add("--runner", metavar="NAME", default="auto", help=f"{text}a GPU, else replay")
    add(
        "--strategy", metavar="NAME[:k=v]", default="auto", help="how to search, with options (see below); default auto"
    )
    add("--trials", metavar="N", type=_trials, default=DEFAULT_TRIALS,
        help="trials per workload, including resumed ones; for a network, of all its layers together, spent where they "
             f"pay off; or `all` (default {DEFAULT_TRIALS})")  # fmt: skip
    add("--seed", metavar="N", type=seed, default=0, help="seed of the strategy (default 0)")
    add(
        "--batch",
        metavar="N",
        type=positive,
        default=8,
        help="configurations requested from the strategy at a time (default 8)",
    )
    add("--log", metavar="FILE", help="append every result to FILE; several workloads get one file each")
    add("--resume", action="store_true", help="continue an existing log")
    add("--report", metavar="FILE.html", help="write a web page with every curve, configuration and failure")
    add(
        "--device",
        metavar="N",
        default="0",
        help="number of the GPU, or of several that share the work (0,1), or any (default 0)",
    )
    add("--timeout", metavar="S", type=seconds, help="time limit for a candidate on the GPU, in seconds (default 20)")
    add("--top-k", metavar="N", type=natural_number,
        help="measure the N fastest again, interleaved, then name the best (default 5; made-up times: 0)")  # fmt: skip
    add("--finalists", dest="top_k", type=natural_number, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    add("--store", metavar="FILE", help="store for the best kernel found, or off for none (default: the usual one)")
    add("--landscape", metavar="FILE", help="replay this landscape (a file or a shipped name)")
    add("--space", metavar="KIND",
        help=f"space to search: {kind_list()}; default: by layer (paper, for bit planes bits, with --sparsity the one "
             "of kernels that skip such zeros)")  # fmt: skip
    add_arch_argument(parser, default=None)
    add("--set", metavar="SWITCH=VALUE", dest="settings", action="append", default=[],
        help="fix a switch for the whole search: layout=nhwc; several may follow")  # fmt: skip


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def run(args: argparse.Namespace) -> int:
    """Tune and print the report; 1 if a workload has no working configuration, 130 after Ctrl-C."""
    from subbyte.families.registry import kind_named, space_of_zeros, usual
    from subbyte.measure.runner import parse_device
    from subbyte.tune import tune
    from subbyte.tune.network import is_network

    parse_device(args.device)
    take_sparsity(args)
    if args.space is None:
        args.space = space_of_zeros(args.sparsity)
    if args.report is not None:
        prove_writable(args.report, "report", parents=True)
    kind, family = kind_named(args.space) if args.space is not None else ("", usual())
    if family.slow_to_list and kind in family.parts and is_terminal():
        say(f"subbyte: listing the {kind} space, up to a minute for each layer")
    network = len(args.workloads) == 1 and is_network(args.workloads[0]) and not args.landscape
    with _progress(args.trials, args.workloads[0] if network else "") as callback:
        report = tune(
            args.workloads, args.runner, args.strategy, args.trials, args.seed, args.log, args.resume,
            arch=args.arch, kind=args.space, fixed=switches(args, args.workloads), landscape=args.landscape,
            batch=args.batch, callbacks=[callback] if callback else [], device=args.device, timeout=args.timeout,
            top_k=args.top_k, store=args.store,
        )  # fmt: skip
    for line in _left_out(report.skipped):
        say(f"subbyte: {line}")

    def save() -> None:
        if args.report is not None:
            say(f"subbyte: wrote {report.save(args.report)}")

    failed = emit_and_save("tune", report.to_dict(), args, _text(report), save)
    if report.interrupted:
        say(f"subbyte: {LINE}")
        return EXIT_CODE
    return failed or (0 if len(report.best) == len(report.records) else FALLS_SHORT)


def _left_out(skipped: Mapping[str, str]) -> list[str]:
    """One line for each reason, however many layers share it."""
    alike: dict[str, list[str]] = {}
    for label, reason in skipped.items():
        alike.setdefault(reason.replace(label, "\0"), []).append(label)
    return [
        f"{labels[0]} was not tuned: {skipped[labels[0]]}" if len(labels) == 1
        else f"{len(labels)} layers were not tuned ({', '.join(labels)}): {reason.replace(chr(0), 'them')}"
        for reason, labels in alike.items()
    ]  # fmt: skip


def _text(report: TuningReport) -> str:
    lines = [_summary(row) for row in report.rows()]
    network, whole = getattr(report, "network", ""), getattr(report, "microseconds", None)
    if whole:
        lines.append(f"{network}  {whole:.2f} us for the {len(report.records)} tuned layers, as often as they occur")
    return "\n".join(lines)


def _summary(row: dict[str, Any]) -> str:
    failed = ", ".join(f"{count} {kind}" for kind, count in row["failed"].items())
    count = f"{row['trials']} trial" + "s" * (row["trials"] != 1)
    head = f"{row['workload']}  {count}{f' ({failed} failed)' if failed else ''} on {row['device']}"
    head += f", {row['space']} space" * (row["space"] != "paper")
    head += {"exhausted": ", the whole space", "interrupted": ", interrupted", "stopped": ", stopped"}.get(
        row["ended"], ""
    )
    if row["best_config"] is None:
        return f"{head}\n  no configuration worked; see the reasons in the log (--log FILE)"
    speed = f", {row['best_tops']:.1f} TOPS" if row["best_tops"] is not None else ""
    best = f"  best    {row['best_microseconds']:.2f} us{speed} (trial {row['best_trial']})"
    if row["fraction_of_optimum"] is not None:
        best += f", {100 * row['fraction_of_optimum']:.1f}% of the optimum ({row['optimum_microseconds']:.2f} us)"
    from subbyte.families.registry import settings_text

    lines = [head, best, f"  config  {settings_text(row['best_config'])}"]
    if row["finals"]:
        lines += _remeasured_lines(row["finals"])
    return "\n".join(lines)


def _remeasured_lines(found: dict[str, Any]) -> list[str]:
    if found["notice"]:
        return [f"  top-k   {found['notice']}"]
    first, tied = found["rows"][0], found["tied"]
    how = "measured again, side by side" if found["remeasured"] else "by their recorded samples"
    said = f"  top-k   trial {first['trial']} wins with {first['microseconds']:.2f} us ({how})"
    others = ", ".join(str(number) for number in tied[1:])
    return [f"{said}; a tie with trial{'s' * (len(tied) > 2)} {others}" if others else said]


@contextmanager
def _progress(trials: int | None, network: str = "") -> Iterator[Callback | None]:
    """A callback that draws a bar per workload (one for a network) on stderr; None if stderr is not a terminal."""
    if not is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
               TextColumn("{task.fields[best]}"))  # fmt: skip
    tasks: dict[str, Any] = {}
    done: dict[str, int] = {}
    with Progress(*columns, console=Console(stderr=True)) as bars:

        def update(study: Study, trial: Trial, result: Result) -> None:
            label = study.space.workload.label
            name = network or label
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=trials, best="")
            done[label] = len(study.trials)
            best = study.best
            text = f"best {best.microseconds:.2f} us" if best and best.microseconds else ""
            bars.update(
                tasks[name], completed=sum(done.values()) if network else done[label],
                best=f"{label}: {text}" if network else text,
            )  # fmt: skip

        yield update


def _trials(text: str) -> int | None:
    if text.lower() == "all":
        return None
    try:
        return positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or all") from None
