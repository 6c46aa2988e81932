"""The words of ``tune``, and what is wrong with it before anything begins."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.network.schedule import Task, needs_of
from benchmarks.shared.command import parser_of
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families.wgmma.space import SMALL, WGMMA

KINDS = (WGMMA, SMALL, "paper")
"""Kinds of spaces that are searched."""


def options(about: str | None) -> argparse.ArgumentParser:
    """The options of a program that is described so."""
    parser = parser_of("network tune", about)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=450.0, help="everything ends so many seconds after the start")
    parser.add_argument(
        "--remeasure-seconds", type=float, default=45.0, help="of these, for measuring the best again, and packing"
    )
    parser.add_argument("--only", default="", help="only studies whose name holds one of these words (a,b,...)")
    text = "other layers than those of the networks, by words (layers.py): the wgmma space of each"
    parser.add_argument("--layers", nargs="+", default=[], help=text)
    text = "of such a layer, as many of the kernels that compile would try first begin the search (default 6)"
    parser.add_argument("--first", type=int, default=6, help=text)
    text = "only studies of these kinds of spaces, such as wgmma, without the small ones that are measured whole"
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help=text)
    parser.add_argument("--most", type=int, help="most trials of a study")
    text = "what earlier runs left: records (results/warpgroup/tuning-*.json.gz), folders with logs"
    parser.add_argument("--earlier", type=Path, nargs="*", default=[], help=text)
    parser.add_argument("--record", type=Path, help="record of `baselines compare`, which says where most is to gain")
    text = "JSON files: further configurations of the wgmma family by spec, which need not lie in a space"
    parser.add_argument("--extra", type=Path, nargs="*", default=[], help=text)
    parser.add_argument("--runner", choices=("cuda", "fake"), default="cuda")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, help=argparse.SUPPRESS)
    return parser


def check_files(args: argparse.Namespace) -> None:
    """Raises InvalidInput, or BrokenRecord, for numbers and files that cannot be what is meant."""
    for name, least in (("gpus", 1), ("most", 1), ("first", 0), ("remeasure_seconds", 0)):
        value = getattr(args, name)
        if value is not None and not value >= least:
            raise InvalidInput(f"--{name.replace('_', '-')} {value:g}: expected {least} or more")
    if not args.seconds > args.remeasure_seconds:
        raise InvalidInput(
            f"--seconds {args.seconds:g}: measuring again and packing take "
            f"{args.remeasure_seconds:g} of them (--remeasure-seconds), "
            "and nothing is left to search in"
        )
    if args.out.exists() and not args.out.is_dir():
        raise InvalidInput(f"{args.out} is a file: name a folder, for the logs")
    for option, paths in (("--earlier", args.earlier), ("--record", [args.record]), ("--extra", args.extra)):
        for path in (path for path in paths if path is not None and not path.exists()):
            raise InvalidInput(f"{option} {path}: there is nothing of this name")
    try:
        needs_of(args.record)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenRecord(f"--record {args.record}: no record of `baselines compare` ({error!r})") from None
    for path in args.extra:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            shaped = all(isinstance(one, dict) for some in found.values() for one in some)
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise BrokenRecord(f"--extra {path}: no configurations by spec ({error!r})") from None
        if not shaped:
            raise BrokenRecord(f"--extra {path}: no configurations by spec (a value is no list of objects)")


def check_some(args: argparse.Namespace, wanted: Sequence[Task]) -> None:
    """Raises InvalidInput when no study is asked for."""
    if not wanted:
        kinds = f" among {', '.join(args.kinds)}" if args.kinds else ""
        raise InvalidInput(
            f"--only {args.only}: no study's name holds that{kinds}; a name is a workload and a kind of space, such as "
            f"resnet50.stage2@8.{WGMMA}"
        )
