"""``subbyte explain``: a technique as numbers and a picture in plain text."""

from __future__ import annotations

import argparse
import re
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
from subbyte.errors import InvalidInput
from subbyte.numerals import natural

DEFAULT_WORKLOAD = "resnet50.stage2@8"
_PAIR = re.compile(r"(\d{1,6})[x,](\d{1,6})")


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte explain`` and of its topics."""
    parser = subparsers.add_parser(
        "explain",
        help="a technique as numbers: tiling, duplicates, packing, layout, fragments, taps, speed",
        description="A technique as numbers and a picture in plain text.",
        epilog="example:\n  subbyte explain duplicates resnet50.stage2@8 --tile 1x4",
    )
    topics = parser.add_subparsers(dest="topic", metavar="TOPIC", title="topics", required=True)
    _add_tiling(topics)
    _add_duplicates(topics)
    _add_packing(topics)
    _add_layout(topics)
    _add_fragments(topics)
    _add_taps(topics)
    _add_speed(topics)


def run(args: argparse.Namespace) -> int:
    """Print the record of the topic and return 0."""
    record, text = _TOPICS[args.topic](args)
    emit("explain", {"topic": args.topic, **record}, args, text)
    return 0


def _add_tiling(topics: Any) -> None:
    parser = command_parser(
        topics,
        "tiling",
        "How the convolution becomes a matrix product, and how that is cut into blocks, warps and instructions.",
        "subbyte explain tiling resnet50.stage2@8 --set warp_col_tiles=2 --block 3,1",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--block", metavar="I,J", default="0,0", help="pixel tile and column block (default 0,0)")
    add_config_arguments(parser)
    add_arch_argument(parser)


def _add_duplicates(topics: Any) -> None:
    parser = command_parser(
        topics,
        "duplicates",
        "Which entries of the lowered (im2col) tile are the same input pixel, and the loads that sharing saves.",
        "subbyte explain duplicates resnet50.stage2@8 --tile 1x4 --json",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--tile", metavar="HxW", default="1x4", help="output pixels of the tile (default 1x4)")
    parser.add_argument("--at", metavar="P,Q", help="output pixel of the tile's first pixel: flags padding")
    parser.add_argument(
        "--warp", metavar="I/N", help="only warp I of N that share the tile, each with consecutive pixels"
    )


def _add_packing(topics: Any) -> None:
    parser = command_parser(
        topics,
        "packing",
        "How the lanes of a warp pack int4 results into words with shuffles, step by step on random values.",
        "subbyte explain packing --scheme quad",
    )
    parser.add_argument(
        "--family", choices=("warp", "warpgroup"), default="warp", help="warp (shuffles, default) or warpgroup"
    )
    parser.add_argument("--warp", type=natural_number, metavar="N", help="of a warpgroup, 0 (default) to 3")
    parser.add_argument("--scheme", help="quad (default) or width8")
    parser.add_argument(
        "--tiles", type=natural_number, metavar="N", help="8x8 tiles to pack (default: all the scheme takes)"
    )
    parser.add_argument("--seed", type=seed, metavar="N", help="seed of the values (default 0)")


def _add_layout(topics: Any) -> None:
    parser = command_parser(
        topics,
        "layout",
        "The addresses one warp of the kernel reads and writes, the sectors they touch and the bank conflicts.",
        "subbyte explain layout resnet50.stage2@8 --layout nhwc --set warp_row_tiles=8",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--layout", help="nhwc, hwnc or nhwcnc (default: that of the configuration, nhwcnc)")
    parser.add_argument("--block", metavar="I,J", default="0,0", help="pixel tile and column block (default 0,0)")
    parser.add_argument("--warp", type=natural_number, metavar="N", default=0, help="warp of the block (default 0)")
    parser.add_argument(
        "--iteration", type=natural_number, metavar="N", default=0, help="stage of the main loop (default 0)"
    )
    add_config_arguments(parser)
    add_arch_argument(parser)


def _add_fragments(topics: Any) -> None:
    parser = command_parser(
        topics,
        "fragments",
        "Which lane and register holds which element of a matrix instruction, and which GPUs have it.",
        "subbyte explain fragments --instruction m16n8k32.s8",
    )
    parser.add_argument(
        "--instruction",
        metavar="NAME",
        default="m16n8k32.s8",
        help="m8n8k32.s4, m16n8k32.s4, m16n8k64.s4, m16n8k32.s8 (default), m8n8k128.b1, m16n8k256.b1; "
        "of a warpgroup wgmma.m64nNk32.s8 or wgmma.m64nNk256.b1 with N from 8 to 256",
    )


def _add_taps(topics: Any) -> None:
    parser = command_parser(
        topics,
        "taps",
        "Where each tap begins in shared memory in a kernel of the warpgroup family, and its descriptor.",
        "subbyte explain taps resnet50.stage2@8 --row 0",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument(
        "--row", type=natural_number, metavar="N", default=0, help="output row of the first block (default 0)"
    )
    add_config_arguments(parser, "warpgroup")


def _add_speed(topics: Any) -> None:
    parser = command_parser(
        topics,
        "speed",
        "The speed of light: floors of launching, moving and multiplying beside the best recorded times.",
        "subbyte explain speed resnet50.stage2@8",
    )
    add_workload_argument(parser, DEFAULT_WORKLOAD)
    parser.add_argument("--gpu", default="NVIDIA H200", help="GPU whose measured ceilings count (default NVIDIA H200)")


def _tiling(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import tiling, warpgroup_tiling

    if args.family == "warpgroup":
        if args.block != "0,0":
            raise InvalidInput("--block shows a block of the warp family; leave it away with --family warpgroup")
        levels = warpgroup_tiling(args.workload, configuration(args, _estimated(args)), args.arch)
        return levels.to_dict(), "" if args.json else levels.text()
    record = tiling(args.workload, configuration(args), arch=args.arch)
    place = _pair("--block", args.block, "a pixel tile and a column block such as 0,0")
    chosen = {"block": record.block(*place).to_dict()}
    return {**record.to_dict(), **chosen}, "" if args.json else record.text(*place)


def _estimated(args: argparse.Namespace) -> Any:
    """The configuration of the warpgroup family that ``--set`` changes."""
    from subbyte.kernel.choose import best_known

    return best_known(args.workload, args.arch, "warpgroup")[0]


def _duplicates(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import duplicates

    at = None if args.at is None else _pair("--at", args.at, "an output pixel such as 0,0")
    record = duplicates(args.workload, _pair("--tile", args.tile, "output pixels such as 1x4"), at=at)
    if args.warp is not None:
        first, slash, count = args.warp.partition("/")
        warp, warps = natural(first), natural(count)
        if not slash or warp is None or not warps:
            raise InvalidInput(
                f"--warp {shown(args.warp)}: expected a warp of several, such as 0/2 for the first of two"
            )
        if len(record.pixels) % warps:
            raise InvalidInput(f"--warp {args.warp}: {count} warps cannot share {len(record.pixels)} pixels evenly")
        record = record.warp(warp, len(record.pixels) // warps)
    return record.to_dict(), "" if args.json else record.text()


def _packing(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    import numpy as np

    from subbyte.technique import packed_stores, packing_program

    for name in ("warp",) if args.family == "warp" else ("scheme", "tiles", "seed"):
        if getattr(args, name) is not None:
            other = "warpgroup" if args.family == "warp" else "warp"
            raise InvalidInput(f"--{name} is of the {other} family; leave it away with --family {args.family}")
    if args.family == "warpgroup":
        stores = packed_stores(args.warp or 0)
        return stores.to_dict(), "" if args.json else stores.text()
    program = packing_program("quad" if args.scheme is None else args.scheme)
    tiles = program.tiles if args.tiles is None else args.tiles
    if not 1 <= tiles <= program.tiles:
        raise InvalidInput(f"--tiles {tiles}: scheme {program.scheme} takes 1 to {program.tiles}")
    values = np.random.default_rng(args.seed or 0).integers(-8, 8, (tiles, 8, 8))
    trace = program.run(values)
    record = {**program.to_dict(), "values": values.tolist(), "trace": trace.to_dict()}
    return record, "" if args.json else f"{program.text()}\n\n{trace.text()}"


def _layout(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import accesses

    record = accesses(
        args.workload,
        configuration(args),
        args.layout,
        arch=args.arch,
        block=_pair("--block", args.block, "a pixel tile and a column block such as 0,0"),
        warp=args.warp,
        iteration=args.iteration,
    )
    return record.to_dict(), "" if args.json else record.text()


def _fragments(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.technique import fragments

    record = fragments(args.instruction)
    return record.to_dict(), "" if args.json else record.text()


def _taps(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.kernel.choose import best_known
    from subbyte.technique import tap_addresses

    if args.family != "warpgroup":
        raise InvalidInput("taps are addresses in the warpgroup family only; see `subbyte explain duplicates`")
    record = tap_addresses(
        args.workload, configuration(args, best_known(args.workload, family="warpgroup")[0]), args.row
    )
    return record.to_dict(), "" if args.json else record.text()


def _speed(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from subbyte.analysis import speed_of_light

    record = speed_of_light(args.workload, args.gpu)
    return record.to_dict(), "" if args.json else record.text()


_TOPICS = {
    "tiling": _tiling, "duplicates": _duplicates, "packing": _packing, "layout": _layout, "fragments": _fragments,
    "taps": _taps, "speed": _speed,
}  # fmt: skip


def _pair(name: str, text: str, meaning: str) -> tuple[int, int]:
    found = _PAIR.fullmatch(text.lower().strip())
    if found is None:
        raise InvalidInput(f"{name} {shown(text)}: expected {meaning}")
    return int(found[1]), int(found[2])
