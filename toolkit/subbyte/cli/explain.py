"""``subbyte explain``: a technique as numbers and a picture in plain text.

Topics that apply to any convolution or instruction are here, those of bits in ``explain_bits``. All others are what the
families can show of their kernels (:mod:`subbyte.families.topic`): one command for each name, whichever families have
it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from subbyte.cli.arguments import (
    add_arch_argument,
    add_config_arguments,
    add_workload_argument,
    command_parser,
    configuration,
    emit,
    natural_number,
    seed,
    shown,
)
from subbyte.cli.explain_bits import BIT_TOPICS
from subbyte.cli.explain_bits import DEFAULT_WORKLOAD as DEFAULT_BITS
from subbyte.device.arch import Arch, arch
from subbyte.errors import InvalidInput, Unsupported
from subbyte.families.registry import commands, family_named, named, newest_first, not_here, topics
from subbyte.families.topic import Option, Topic
from subbyte.numerals import natural
from subbyte.workload import ConvWorkload, workload

DEFAULT_WORKLOAD = "resnet50.stage2@8"
DEFAULT_PRODUCT = "gemm4096"
_PAIR = re.compile(r"(\d{1,6})[x,](\d{1,6})")
_READ: dict[str, Callable[[str], Any]] = {"number": natural_number, "seed": seed, "pair": str, "text": str}
"""How an option's text is parsed on the command line; pairs are split when they are used."""

Said = tuple[dict[str, Any], str]
"""The output of a topic: the fields of the JSON object, and the text."""


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte explain`` and of its topics."""
    known = {name: found for name, found in topics().items() if name not in _GENERAL}
    parser = subparsers.add_parser(
        "explain",
        help=f"a technique as numbers: {', '.join([*known, *_GENERAL])}",
        description="Show a technique as numbers and a picture in plain text.",
        epilog="example:\n  subbyte explain duplicates resnet50.stage2@8 --tile 1x4",
    )
    parsers = parser.add_subparsers(dest="topic", metavar="TOPIC", title="topics", required=True)
    for name, found in known.items():
        _add_topic(parsers, name, found)
    for add, _ in _GENERAL.values():
        add(parsers)


def run(args: argparse.Namespace) -> int:
    """Print the record of the topic and return 0."""
    record, text = _GENERAL[args.topic][1](args) if args.topic in _GENERAL else _of_a_family(args)
    emit("explain", {"topic": args.topic, **record}, args, "" if args.json else text)
    return 0


def _add_topic(parsers: Any, name: str, found: Mapping[str, Topic[Any]]) -> None:
    """The command of one topic. Its default ``--family`` is the first one that has the topic and computes the
    workload."""
    family, first = next(iter(found.items()))
    parser = command_parser(parsers, name, first.summary, first.example)
    if first.of != "any":
        add_workload_argument(parser, _first_computed(found, arch("sm_90a")))
        parser.set_defaults(workload=None)
    options: dict[str, tuple[Option, list[str]]] = {}
    for owner, topic in found.items():
        for option in topic.options:
            options.setdefault(option.name, (option, []))[1].append(owner)
    for option, owners in options.values():
        alone = "" if len(owners) == len(found) else f" ({' and '.join(owners)} family)"
        parser.add_argument(
            f"--{option.name}", metavar=option.metavar, type=_READ[option.kind], help=option.meaning + alone
        )
    first_of = "the first of these that computes WORKLOAD" if len(found) > 1 else family
    add_config_arguments(parser, family, first_of if first.of != "any" else "", found)
    if first.of != "any":
        add_arch_argument(parser)


def _of_a_family(args: argparse.Namespace) -> Said:
    """The topic of the requested family."""
    from subbyte.kernel.choose import known_config
    from subbyte.technique import topics as records

    found = topics()[args.topic]
    args.family = None if args.family == "auto" else args.family
    if args.family is None or args.family in found:
        args.family = _asked(args, found)
    family = family_named(args.family)
    if family.name not in found:
        raise not_here(configuration(args) or family.plain, map(family_named, found))
    topic = found[family.name]
    options = _options(args, found, family.name)
    if topic.of == "any":
        return topic.in_words(topic.record(None, **options), options)
    target = arch(args.arch)
    config = None
    if args.settings:
        config = configuration(args, None if family.starts_plain else known_config(args.workload, target, family))
    plan = records.planned(family, topic, args.workload, config, target)
    return topic.in_words(records.shown(topic, plan, **options), options)


def _asked(args: argparse.Namespace, found: Mapping[str, Topic[Any]]) -> str:
    """The requested family, else the first one that has the topic and computes the workload; if no workload is given, a
    default is set. Raises Unsupported if only other families compute the workload."""
    having = [family_named(name) for name in ([args.family] if args.family else found)]
    if next(iter(found.values())).of == "any":
        return having[0].name
    target = arch(args.arch)
    if args.workload is None:
        args.workload = workload(_first_computed([one.name for one in having], target))
    given: ConvWorkload = args.workload
    computing = [one for one in having if one.hopeless(given, target) is None]
    if computing:
        return computing[0].name
    others = [one for one in newest_first() if one.hopeless(given, target) is None]
    see = f"; it is computed by {named(others)}: see {commands(others[0], given.label)}" if others else ""
    raise Unsupported(
        f"{given.label} on {target.name}: only kernels of {named(having)} are shown here ("
        f"{having[0].hopeless(given, target)}){see}"
    )


def _first_computed(names: Iterable[str], target: Arch) -> str:
    """The default layer: the first of several that one of these families computes."""
    having = [family_named(name) for name in names]
    layers = DEFAULT_WORKLOAD, DEFAULT_BITS, DEFAULT_PRODUCT
    return next((one for one in layers if any(f.hopeless(workload(one), target) is None for f in having)), layers[0])


def _options(args: argparse.Namespace, found: Mapping[str, Topic[Any]], family: str) -> dict[str, Any]:
    """The options of the family's topic. Raises InvalidInput for one that only another family's topic has."""
    own = {option.name: option for option in found[family].options}
    for owner, topic in found.items():
        for option in topic.options:
            if option.name not in own and getattr(args, option.name) is not None:
                raise InvalidInput(
                    f"--{option.name} belongs to the {owner} family; leave it out with --family {family}"
                )
    given = {name: getattr(args, name) for name in own}
    for name, option in own.items():
        if option.kind == "pair" and given[name] is not None:
            given[name] = _pair(f"--{name}", given[name], option.such)
    return found[family].values(given)


def _add_duplicates(parsers: Any) -> None:
    parser = command_parser(
        parsers,
        "duplicates",
        "Which entries of the lowered (im2col) tile are the same input pixel, and the loads that sharing saves.",
        "subbyte explain duplicates resnet50.stage2@8 --tile 1x4 --json",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--tile", metavar="HxW", default="1x4", help="output pixels of the tile (default 1x4)")
    parser.add_argument(
        "--at", metavar="P,Q", help="place the tile's first pixel at this output pixel, and mark the padding"
    )
    parser.add_argument(
        "--warp",
        metavar="I/N",
        help="show only warp I (from 0) of N warps that share the tile, each with consecutive pixels",
    )


def _add_fragments(parsers: Any) -> None:
    parser = command_parser(
        parsers,
        "fragments",
        "Which lane and register holds which element of a matrix instruction, and which GPUs have it.",
        "subbyte explain fragments --instruction m16n8k32.s8",
    )
    parser.add_argument(
        "--instruction",
        metavar="NAME",
        default="m16n8k32.s8",
        help="m8n8k32.s4, m16n8k32.s4, m16n8k64.s4, m16n8k32.s8 (default), m8n8k128.b1, m16n8k256.b1; "
        "for a warpgroup wgmma.m64nNk32.s8 or wgmma.m64nNk256.b1, with N from 8 to 256",
    )


def _add_speed(parsers: Any) -> None:
    parser = command_parser(
        parsers,
        "speed",
        "The speed of light: the least time for the launch, moving and multiplying, and the best recorded times.",
        "subbyte explain speed resnet50.stage2@8",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument(
        "--gpu", default="NVIDIA H200", metavar="NAME", help="GPU whose measured peaks are used (default NVIDIA H200)"
    )


def _duplicates(args: argparse.Namespace) -> Said:
    from subbyte.technique import duplicates

    at = None if args.at is None else _pair("--at", args.at, "an output pixel such as 0,0")
    record = duplicates(args.workload, _pair("--tile", args.tile, "output pixels such as 1x4"), at=at)
    if args.warp is not None:
        first, slash, count = args.warp.partition("/")
        warp, warps = natural(first), natural(count)
        if not slash or warp is None or not warps:
            raise InvalidInput(
                f"--warp {shown(args.warp)}: expected warp I of N as I/N, such as 0/2 for the first of two"
            )
        if len(record.pixels) % warps:
            raise InvalidInput(f"--warp {args.warp}: {count} warps cannot share {len(record.pixels)} pixels evenly")
        record = record.warp(warp, len(record.pixels) // warps)
    return record.to_dict(), record.text()


def _fragments(args: argparse.Namespace) -> Said:
    from subbyte.technique import fragments

    record = fragments(args.instruction)
    return record.to_dict(), record.text()


def _speed(args: argparse.Namespace) -> Said:
    from subbyte.analysis import speed_of_light

    record = speed_of_light(args.workload, args.gpu)
    return record.to_dict(), record.text()


_GENERAL: dict[str, tuple[Callable[[Any], None], Callable[[argparse.Namespace], Said]]] = {
    "duplicates": (_add_duplicates, _duplicates),
    "fragments": (_add_fragments, _fragments),
    "speed": (_add_speed, _speed),
    **BIT_TOPICS,
}
"""Topics of no particular family: how each is added to the command line, and what it prints."""


def _pair(name: str, text: str, meaning: str) -> tuple[int, int]:
    found = _PAIR.fullmatch(text.lower().strip())
    if found is None:
        raise InvalidInput(f"{name} {shown(text)}: expected {meaning}")
    return int(found[1]), int(found[2])
