"""``subbyte landscape``: every configuration of a space measured once; list, read and record landscape files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.cli.arguments import (
    add_arch_argument,
    add_workload_argument,
    command_parser,
    emit,
    emit_error,
    kind_list,
    natural_number,
    positive,
    seconds,
    shown,
)
from subbyte.cli.space_arguments import switches
from subbyte.errors import InvalidInput, MissingDependency, SubbyteError, WrongResult
from subbyte.files import prove_writable
from subbyte.numerals import natural
from subbyte.processes import run_apart
from subbyte.streams import is_terminal, say

if TYPE_CHECKING:
    from subbyte.records.landscape import Landscape

RESULTS = "results.jsonl"
"""File in the bundle's folder to which ``measure`` writes by default."""


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte landscape`` and of its parts."""
    parser = subparsers.add_parser(
        "landscape",
        help="measure every configuration of a space once; read, export and import such files",
        description="Landscapes: every configuration of a space, measured once. They let searches run without a GPU.",
        epilog="example:\n  subbyte landscape record resnet50.stage2@8 -o stage2.json.gz",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", title="parts", required=True)
    command_parser(parts, "list", "List the landscapes that come with the package.", "subbyte landscape list")
    info = command_parser(
        parts, "info", "Show counts, best configuration and provenance of a landscape.",
        "subbyte landscape info resnet50.stage2@8",
    )  # fmt: skip
    text = "a file, or the name or workload of a shipped landscape; without it the shipped ones are listed"
    info.add_argument("landscape", metavar="LANDSCAPE", nargs="?", help=text)
    _add_export(parts)
    _add_import(parts)
    _add_record(parts)
    _add_measure(parts)
    _add_assemble(parts)


def run(args: argparse.Namespace) -> int:
    """Run one part and return its exit code."""
    return {
        "list": _list, "info": _info, "export": _export, "import": _import, "record": _record, "measure": _measure,
        "assemble": _assemble,
    }[args.part](args)  # fmt: skip


def _add_export(parts: Any) -> None:
    parser = command_parser(
        parts, "export", "Write a landscape as a CSV table (one line per configuration), a Kernel Tuner cache or T4.",
        "subbyte landscape export resnet50.stage2@8 --format kernel-tuner -o stage2.json",
    )  # fmt: skip
    parser.add_argument("landscape", metavar="LANDSCAPE", help="a file, or the name or workload of a shipped landscape")
    parser.add_argument("--format", metavar="FORMAT", default="csv", help="csv (default), kernel-tuner or t4")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="file to write, compressed if its name ends in .gz (default: stdout)"
    )


def _add_import(parts: Any) -> None:
    parser = command_parser(
        parts, "import", "Make a landscape from a Kernel Tuner cache, a T4 file or a CSV table, of any kernel.",
        "subbyte landscape import cache.json.gz -o convolution.json.gz",
    )  # fmt: skip
    parser.add_argument("file", metavar="FILE", help="file to read, compressed or not")
    _add_output(parser)
    parser.add_argument(
        "--format", metavar="FORMAT", default="auto", help="kernel-tuner, t4 or csv (default: recognized by content)"
    )
    parser.add_argument("--kernel", metavar="NAME", help="name of the kernel, if the file does not give it")
    parser.add_argument("--device", metavar="NAME", help="name of the GPU, if the file does not give it")
    text = "time (default: as given in the file), or median (of all samples but the first)"
    parser.add_argument("--statistic", metavar="NAME", default="time", help=text)
    parser.add_argument(
        "--like", metavar="LANDSCAPE", help="for CSV: take kernel, device and space from this landscape"
    )


def _add_record(parts: Any) -> None:
    parser = command_parser(
        parts, "record",
        "Build and measure every valid configuration, and write the landscape. Continues where it stopped.",
        "subbyte landscape record resnet50.stage2@8 --space extended --device 0,1 -o stage2.json.gz",
    )  # fmt: skip
    add_workload_argument(parser)
    parser.add_argument("--build-only", metavar="DIR", help="only build, into DIR, to be measured on another machine")
    parser.add_argument("-o", "--output", metavar="FILE", help="landscape file, ending in .json.gz")
    parser.add_argument("--space", metavar="KIND", help=f"space to measure: {kind_list()}; default: by layer")
    text = "numbers of the GPUs to measure on at the same time, separated by commas (default 0)"
    parser.add_argument("--device", metavar="N,...", default="0", help=text)
    text = "stop after this many seconds; the same command continues later"
    parser.add_argument("--limit", metavar="SECONDS", type=seconds, help=text)
    parser.add_argument("--workers", metavar="N", type=positive, default=2, help="processes that build (default 2)")
    add_arch_argument(parser)
    parser.add_argument("--set", metavar="SWITCH=VALUE", dest="settings", action="append", default=[],
                        help="fix a switch for the whole space: layout=nhwc; several may follow")  # fmt: skip


def _add_measure(parts: Any) -> None:
    parser = command_parser(
        parts, "measure", "Verify and time every kernel of a bundle on this GPU. Continues where it stopped.",
        "subbyte landscape measure stage2.bundle",
    )  # fmt: skip
    parser.add_argument("folder", metavar="DIR", help="bundle written by `record --build-only`")
    parser.add_argument("-o", "--output", metavar="FILE", help=f"file for the results (default DIR/{RESULTS})")
    parser.add_argument("--device", metavar="N", type=natural_number, default=0, help="GPU number (default 0)")


def _add_assemble(parts: Any) -> None:
    parser = command_parser(
        parts, "assemble", "Make the landscape file of a bundle that was measured.",
        "subbyte landscape assemble stage2.bundle -o stage2.json.gz",
    )  # fmt: skip
    parser.add_argument("folder", metavar="DIR", help="the bundle")
    parser.add_argument("--results", metavar="FILE", help="file that `measure` wrote (default: all results in DIR)")
    _add_output(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    text = "landscape file or folder (default: the usual name, in the current folder)"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)
    parser.add_argument("--force", action="store_true", help="overwrite an existing landscape file")


def _list(args: argparse.Namespace) -> int:
    from subbyte.records.landscape import Landscape, shipped

    rows = [Landscape.load(path).info().to_dict() for path in shipped().values()]
    text = "\n".join(f"{row['name']}  {_counts(row)} on {row['device'].get('name')}" for row in rows)
    emit("landscape", {"part": "list", "landscapes": rows}, args, text or "no landscape comes with this package")
    return 0


def _info(args: argparse.Namespace) -> int:
    from subbyte.records.landscape import landscape

    if args.landscape is None:
        return _list(args)
    info = landscape(args.landscape).info().to_dict()
    lines = [f"{name:20} {_shown(value)}" for name, value in info.items()]
    emit("landscape", {"part": "info", **info}, args, "\n".join(lines))
    return 0


def _export(args: argparse.Namespace) -> int:
    from subbyte.records.exchange import export_landscape, to_text
    from subbyte.records.landscape import landscape

    found = landscape(args.landscape)
    payload: dict[str, Any] = {"part": "export", "name": found.name, "rows": len(found), "format": args.format,
                               "file": args.output}  # fmt: skip
    if args.output is None:
        emit("landscape", {**payload, "configurations": found.rows()}, args, to_text(found, args.format).rstrip("\n"))
        return 0
    export_landscape(found, args.output, args.format)
    emit("landscape", payload, args, f"{args.output}: {len(found)} configurations of {found.workload.label}")
    return 0


def _import(args: argparse.Namespace) -> int:
    from subbyte.records.exchange import import_landscape
    from subbyte.records.landscape import landscape

    like = landscape(args.like) if args.like is not None else None
    made = import_landscape(
        args.file, args.format, kernel=args.kernel, device=args.device, statistic=args.statistic, like=like
    )
    info = made.info().to_dict()
    path = made.save(_target(args, made))
    emit("landscape", {"part": "import", "file": str(path), **info}, args, f"{path}: {_counts(info)}")
    return 0


def _record(args: argparse.Namespace) -> int:
    from subbyte.families import space

    if args.build_only is None and args.output is None:
        raise InvalidInput("name the landscape file (-o FILE.json.gz), or build only (--build-only DIR)")
    if args.output is not None:
        if not args.output.endswith(".json.gz"):
            raise InvalidInput(f"--output {shown(args.output)}: the name must end in .json.gz")
        prove_writable(args.output, "landscape file")
    devices = _devices(args.device)
    made = space(args.workload, args.arch, args.space, **switches(args, args.workload))
    return _record_all(args, made, devices) if args.build_only is None else _build_only(args, made)


def _build_only(args: argparse.Namespace, made: Any) -> int:
    from subbyte.tune.bundle import build_bundle

    report = build_bundle(made, args.build_only, args.workers, progress=_counter("built"))
    built = f"{report.folder}: {report.built} kernels, {report.failed} configurations failed, {report.kept} were there"
    emit("landscape", {"part": "record", **report.to_dict()}, args, f"{built} before")
    return 0


def _record_all(args: argparse.Namespace, made: Any, devices: list[int]) -> int:
    from subbyte.tune.recording import record_landscape

    folder = f"{args.output.removesuffix('.json.gz')}.bundle"
    report = record_landscape(made, folder, args.workers, devices, args.limit, _counter("built"))
    say(f"{folder}: {report.measured} measured, {report.failed} failed, {report.shared} the same as others")
    if report.remaining:
        raise SubbyteError(
            f"{report.remaining} of {report.valid} configurations are not measured yet; run the same command again "
            "to continue"
        )
    return _save(args, folder, None, "record")


def _devices(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    numbers = [number for part in parts if (number := natural(part)) is not None]
    if len(numbers) != len(parts):
        raise InvalidInput(f"--device {shown(text)}: expected GPU numbers with commas between, such as 0,1")
    return numbers


def _measure(args: argparse.Namespace) -> int:
    from subbyte.measure.bundle import read_measurements
    from subbyte.records.manifest import read_manifest

    read_manifest(args.folder)
    output = args.output or str(Path(args.folder) / RESULTS)
    prove_writable(output, "results")
    command = [sys.executable, "-m", "subbyte.measure.bundle", args.folder, output, "--device", str(args.device)]
    status = run_apart(command)
    if status:
        return _measuring_failed(args, status)
    _, results = read_measurements(output)
    failed = sum(not result.ok for result in results.values())
    payload = {"part": "measure", "file": output, "measured": len(results) - failed, "failed": failed}
    emit("landscape", payload, args, f"{output}: {len(results) - failed} measured, {failed} failed")
    return 0


def _measuring_failed(args: argparse.Namespace, status: int) -> int:
    """The measuring process has already printed the reason on stderr; with ``--json`` its object is also on stdout."""
    if args.json:
        kind = {InvalidInput.exit_code: InvalidInput, MissingDependency.exit_code: MissingDependency}.get(
            status, SubbyteError
        )
        message = f"measuring {args.folder} failed; standard error says why"
        emit_error("landscape", kind.__name__, message, status)
    return status


def _assemble(args: argparse.Namespace) -> int:
    return _save(args, args.folder, args.results, "assemble")


def _save(args: argparse.Namespace, folder: str, results: str | None, part: str) -> int:
    from subbyte.tune.recording import assemble

    made: Landscape = assemble(results, folder)
    info = made.info().to_dict()
    if not info["measured"]:
        raise WrongResult(
            f"{folder}: no configuration could be measured ({_shown(info['failed'])}); nothing was written"
        )
    path = made.save(args.output if part == "record" else _target(args, made))
    emit("landscape", {"part": part, "file": str(path), **info}, args, f"{path}: {_counts(info)}")
    return 0


def _target(args: argparse.Namespace, made: Landscape) -> Path:
    """The file to write: ``-o``, or the landscape's usual name in the folder that ``-o`` names, or here. A landscape's
    name comes from a file, so it must not lead to another folder or to an existing file."""
    from subbyte.files import new_file
    from subbyte.records.landscape import SUFFIX, default_name

    named = Path(args.output or ".")
    target = named / f"{default_name(made.header)}{SUFFIX}" if named.is_dir() else named
    return new_file(target, args.force, "give --force to write over it, or another file with -o FILE")


def _counter(what: str) -> Any:
    """A progress function: a counter on one line of a terminal, every hundredth line elsewhere."""

    def progress(done: int, total: int) -> None:
        terminal = is_terminal()
        if terminal or done % 100 == 0 or done == total:
            end = "\n" if not terminal or done == total else ""
            say(f"{chr(13) if terminal else ''}{what} {done}/{total}", end=end)

    return progress


def _counts(info: dict[str, Any]) -> str:
    failed = sum(info["failed"].values())
    best = f", best {info['best_microseconds']:.2f} us" if info["best_microseconds"] is not None else ""
    return f"{info['measured']} measured, {failed} failed{best}"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
