"""``subbyte explain bits``, ``planes``, ``strides`` and ``thresholds``: few-bit networks, as far as no kernel is needed
to explain them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from subbyte.cli.arguments import add_workload_argument, command_parser, natural_number, seed, shown
from subbyte.errors import InvalidInput
from subbyte.numerals import natural

DEFAULT_WORKLOAD = "resnet50.stage2@8:w1a1"


def _add_bits(commands: Any) -> None:
    parser = command_parser(
        commands,
        "bits",
        "How one sum is made from its bits: products of planes, counts, corrections, and what the border costs.",
        "subbyte explain bits resnet50.stage2@8:w1a2 --at 1,1",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--at", metavar="P,Q", default="0,0", help="output pixel (default 0,0, a corner)")
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="seed of the random operands (default 0)")
    for name, meaning in (("image", "image"), ("channel", "output channel")):
        parser.add_argument(f"--{name}", metavar="N", type=natural_number, default=0, help=f"{meaning} (default 0)")


def _add_planes(commands: Any) -> None:
    parser = command_parser(
        commands,
        "planes",
        "The bit planes of a workload's operands, and their words in each layout.",
        "subbyte explain planes resnet50.stage2@8:w1a2",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)


def _add_thresholds(commands: Any) -> None:
    parser = command_parser(
        commands,
        "thresholds",
        "How batch normalization and rounding become integer thresholds, for one output channel.",
        "subbyte explain thresholds resnet50.stage2@8:w1a2 --gamma=-1 --step 0.5",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    defaults = {"gamma": "1", "beta": "0", "mean": "that of random sums", "variance": "that of random sums",
                "eps": "1e-5", "step": "1"}  # fmt: skip
    for name, default in defaults.items():
        text = "between the values that results are rounded to" if name == "step" else "of the normalization"
        parser.add_argument(f"--{name}", metavar="X", help=f"{name} {text} (default {default})")


def _add_strides(commands: Any) -> None:
    parser = command_parser(
        commands,
        "strides",
        "What it costs to load a tile of 8 x 128 bits, by the stride between its rows: banks, sectors, lines.",
        "subbyte explain strides --ldm 128,1024",
    )
    parser.add_argument(
        "--ldm", metavar="N,N", default=None, help="strides in bits (default 128 to 1024 in steps of 128)"
    )


def _bits(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import bit_sum

    at = tuple(natural(part) for part in args.at.split(","))
    if len(at) != 2 or at[0] is None or at[1] is None:
        raise InvalidInput(f"--at {shown(args.at)}: expected an output pixel such as 0,0")
    record = bit_sum(args.workload, (at[0], at[1]), args.image, args.channel, args.seed)
    return record.to_dict(), record.text()


def _planes(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import planes

    record = planes(args.workload)
    return record.to_dict(), record.text()


def _thresholds(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import folding

    names = ("gamma", "beta", "mean", "variance", "eps", "step")
    given = {name: _real(name, getattr(args, name)) for name in names if getattr(args, name) is not None}
    record = folding(args.workload, **given)
    return record.to_dict(), record.text()


def _strides(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique.strides import DISTANCES, strides

    given = None if args.ldm is None else [natural(part) for part in args.ldm.split(",")]
    if given is not None and None in given:
        raise InvalidInput(f"--ldm {shown(args.ldm)}: expected numbers of bits such as 128,256")
    record = strides(DISTANCES if given is None else [one for one in given if one is not None])
    return record.to_dict(), record.text()


def _real(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InvalidInput(f"--{name} {shown(text)}: expected a number such as 0.5")
    return found


BIT_TOPICS: dict[str, tuple[Callable[[Any], None], Callable[[argparse.Namespace], tuple[dict[str, Any], str]]]] = {
    "bits": (_add_bits, _bits),
    "planes": (_add_planes, _planes),
    "strides": (_add_strides, _strides),
    "thresholds": (_add_thresholds, _thresholds),
}
"""How each topic is added to the command line, and what it prints."""
