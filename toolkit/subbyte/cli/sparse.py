"""``subbyte sparse``: the dual-side sparse Tensor Core of Wang et al. 2021, as a function and as a model in cycles."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any

from subbyte.cli.arguments import asked_settings, command_parser, emit
from subbyte.errors import InvalidInput, WrongResult

# One thread: these products are small, and on a busy machine waiting for threads takes many times longer.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_MODEL = "A model in the unit's own cycles: no GPU has it."
_LAYER = "a layer (resnet50.stage2@8, bert.ffn1@8), a spec or gemm4096, gemm1024x512x256 (M x N x K)"
_SOURCE = "a density 0 to 1, a source such as {}, or a FILE.npy of masks or values"


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte sparse`` and of its parts."""
    parser = subparsers.add_parser(
        "sparse",
        help="the dual-side sparse Tensor Core: its function, its cycle model, networks; no GPU has it",
        description="The dual-side sparse Tensor Core (arXiv 2105.09564): exact function, cycle model, networks. "
        "No GPU has it.",
        epilog="examples:\n  subbyte sparse spgemm --shape 32x32x16 --density 0.3,0.2 --trace\n"
        "  subbyte sparse simulate resnet50.stage2@8 --activations 0.45 --weights 0.2",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", title="parts", required=True)
    _add_function(parts)
    _add_model(parts)


def run(args: argparse.Namespace) -> int:
    """Print the record of one subcommand and return 0, or 1 for a product that is not exact."""
    record, more = _PARTS[args.part](args)
    emit("sparse", {"part": args.part, **record.to_dict(), **more}, args, "" if args.json else record.text())
    return 0


def _add_function(parts: Any) -> None:
    one = command_parser(
        parts, "encode", "Encode a random matrix, or one from a file, as a two-level bitmap.",
        "subbyte sparse encode --shape 64x48 --density 0.1",
    )  # fmt: skip
    one.add_argument("--shape", metavar="MxK", help="rows and columns (default 64x64)")
    one.add_argument("--density", metavar="D", help="share of non-zeros, 0 to 1 (default 0.3)")
    one.add_argument("--file", metavar="FILE.npy", help="encode this matrix instead")
    one.add_argument(
        "--side", metavar="SIDE", default="columns", help="columns (left operand, default) or rows (right operand)"
    )
    _add_values(one, "int4 (default), int8 or fp16; a file has its own dtype")
    one = command_parser(
        parts, "spgemm", "Multiply two random sparse matrices, check the product and count every instruction.",
        "subbyte sparse spgemm --shape 64x64x64 --density 0.3,0.2 --trace",
    )  # fmt: skip
    one.add_argument("--shape", metavar="MxNxK", default="64x64x64", help="sizes of the product (default 64x64x64)")
    one.add_argument(
        "--density", metavar="A,B", default="0.3,0.2", help="shares of non-zeros in A and B (default 0.3,0.2)"
    )
    one.add_argument("--trace", action="store_true", help="also print every instruction: issued, or skipped and why")
    _add_values(one, "int4 (default), int8 or fp16")


def _add_model(parts: Any) -> None:
    one = command_parser(
        parts, "simulate", f"Model one layer: cycles by bound, speed-ups over three baselines. {_MODEL}",
        "subbyte sparse simulate resnet50.stage3@8 --activations 0.45 --weights 0.2 --mode dual",
    )  # fmt: skip
    one.add_argument("workload", metavar="WORKLOAD", help=_LAYER)
    _add_densities(one, "1")
    one.add_argument(
        "--mode", default="dual", help="whose zeros are skipped: dual (default), weight, activation, dense"
    )
    _add_machine(one)
    one.add_argument(
        "--weights-side",
        default="auto",
        metavar="SIDE",
        help="operand that the weights are: a (zeros skipped in groups of 8), b (of 16) or auto (default), the faster",
    )
    one = command_parser(
        parts, "surface", f"Model the speed-up by the densities of both operands. {_MODEL}",
        "subbyte sparse surface gemm1024 --densities 0.1,0.25,0.5,1",
    )  # fmt: skip
    one.add_argument("workload", metavar="WORKLOAD", help=_LAYER)
    one.add_argument(
        "--densities", metavar="D,D,...", help="densities of both operands (default 0.05 to 1 in steps of 0.05)"
    )
    one.add_argument(
        "--kind", metavar="KIND", default="iid", help="where zeros are: iid (default), runs, channels, blocks or dead"
    )
    _add_machine(one)
    one.add_argument(
        "--weights-side", metavar="SIDE", default="auto", help="operand that the weights are: a, b or auto (default)"
    )
    one = command_parser(
        parts, "network", f"Model all layers of a network: dense, weight, activation, dual. {_MODEL}",
        "subbyte sparse network vgg16@1 --profile photos+magnitude80",
    )  # fmt: skip
    text = "vgg16, resnet18, resnet50, alexnet, maskrcnn, bert or lstm, optionally with @ and a batch"
    one.add_argument("network", metavar="NETWORK", help=text)
    _add_densities(one, None)
    one.add_argument(
        "--profile", metavar="P", help="densities: ACTIVATIONS+WEIGHTS (photos+magnitude80), or a FILE.npz by layer"
    )
    _add_machine(one, im2col=False)
    one = command_parser(
        parts, "figures", "Recompute the paper's experiments; published numbers next to ours.",
        "subbyte sparse figures F1 F10\n  subbyte sparse figures --out figures.json",
    )  # fmt: skip
    one.add_argument(
        "names", metavar="NAME", nargs="*", help="experiments: F1, F2, F3, F5, F6, F7, F8, F10 (default all)"
    )
    one.add_argument("--out", metavar="FILE", help="also write them, with the command and the date, to this JSON file")
    one = command_parser(
        parts, "profile", "Show densities and runs of zeros in ReLU maps, in pruned weights, or in a file's arrays.",
        "subbyte sparse profile photos",
    )  # fmt: skip
    one.add_argument(
        "source", metavar="SOURCE", help="photos (needs scikit-learn and Pillow), digits, pruned or FILE.npz"
    )
    one = command_parser(
        parts, "machine", "List the parameters of a unit, each with its source.", "subbyte sparse machine dstc"
    )
    one.add_argument(
        "name", metavar="MACHINE", nargs="?", default="dstc", help="dense, sparse24, dstc (default) or ideal"
    )


def _add_values(parser: argparse.ArgumentParser, kinds: str) -> None:
    parser.add_argument("--kind", metavar="KIND", help=kinds)
    _add_seed(parser)


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", metavar="N", type=_seed, default=0, help="random seed (default 0)")


def _add_densities(parser: argparse.ArgumentParser, default: str | None) -> None:
    shown = f"default {default}" if default else "default: as the output says"
    for name, examples in (("activations", "runs:0.4 or photos"), ("weights", "2:4 or magnitude80")):
        text = f"{_SOURCE.format(examples)}; {shown}"
        parser.add_argument(f"--{name}", metavar="D", default=default, help=text)


def _add_machine(parser: argparse.ArgumentParser, *, im2col: bool = True) -> None:
    parser.add_argument("--machine", metavar="NAME", default="dstc", help="dense, sparse24, dstc (default) or ideal")
    text = "set a parameter of the machine: accumulator_words=128; several may follow"
    parser.add_argument("--set", metavar="NAME=VALUE", dest="settings", action="append", default=[], help=text)
    if im2col:
        parser.add_argument("--im2col", metavar="KIND", default="implicit", help="implicit (default) or explicit")
    _add_seed(parser)


def _encode(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import encode, random_matrix
    from subbyte.sparse.profiles import load_array

    if args.file is not None:
        for name in ("shape", "density"):
            if getattr(args, name) is not None:
                raise InvalidInput(f"--{name} is of random matrices and {args.file} is a matrix: leave out one of them")
        return encode(load_array(args.file), args.side, args.kind), {}
    kind = args.kind or "int4"
    shape = "64x64" if args.shape is None else args.shape
    density = "0.3" if args.density is None else args.density
    matrix = random_matrix(_sizes(shape, "MxK"), _density(density), kind, args.seed)
    return encode(matrix, args.side, kind), {}


def _spgemm(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    import numpy as np

    from subbyte.sparse import encode, random_matrix, spgemm
    from subbyte.sparse.product import check_work

    m, n, k = _sizes(args.shape, "MxNxK")
    given = args.density.split(",")
    if len(given) != 2:
        raise InvalidInput(f"--density {args.density}: expected two, of A and B, such as 0.3,0.2")
    density_a, density_b = (_density(text) for text in given)
    check_work((m, n, k), m * n * k * density_a * density_b)
    kind = args.kind or "int4"
    a = random_matrix((m, k), density_a, kind, args.seed)
    b = random_matrix((k, n), density_b, kind, args.seed + 1)
    c, counts = spgemm(encode(a, "columns", kind), encode(b, "rows", kind), args.trace)
    # float64 holds every int32 sum exactly; float32 sums in another order differ by rounding.
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    bound = 0.0 if kind != "fp16" else k * 4.0 * k * 2.0**-24
    error = float(np.abs(c - wanted).max())
    if error > bound:
        raise WrongResult(f"the product differs from the dense one by {error:g}")
    return counts, {"largest_error": error, "exact": error == 0}


def _simulate(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import simulate

    found = simulate(
        args.workload, activations=_operand(args.activations), weights=_operand(args.weights), mode=args.mode,
        im2col=args.im2col, machine=_machine(args), weights_side=args.weights_side, seed=args.seed,
    )  # fmt: skip
    return found, {}


def _surface(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import surface

    grid = None if args.densities is None else [_density(text) for text in args.densities.split(",")]
    found = surface(
        args.workload, _machine(args), activations=grid, weights=grid, kind=args.kind, im2col=args.im2col,
        weights_side=args.weights_side, seed=args.seed,
    )  # fmt: skip
    return found, {}


def _network(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import network

    if any(text is not None and text.endswith(".npy") for text in (args.activations, args.weights)):
        raise InvalidInput("a FILE.npy is of one layer; give a network's arrays as --profile FILE.npz")
    found = network(
        args.network, activations=args.activations, weights=args.weights, machine=_machine(args),
        profile=args.profile, seed=args.seed, progress=_progress,
    )  # fmt: skip
    return found, {}


def _figures(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.files import prove_writable
    from subbyte.sparse import figures, write_figures

    if args.out is None:
        return figures(*args.names), {}
    prove_writable(args.out, parents=True)
    found = figures(*args.names)
    write_figures(found, args.out, " ".join(["subbyte sparse figures", *args.names, "--out", Path(args.out).name]))
    return found, {"file": str(args.out)}


def _profile(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import profile

    return profile(args.source), {}


def _show_machine(args: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from subbyte.sparse import machine

    found = machine(args.name)
    return found, {"sources": {row[0]: row[3] for row in found.table().rows}}


_PARTS = {
    "encode": _encode, "spgemm": _spgemm, "simulate": _simulate, "surface": _surface, "network": _network,
    "figures": _figures, "profile": _profile, "machine": _show_machine,
}  # fmt: skip


def _machine(args: argparse.Namespace) -> Any:
    """The machine with the values of ``--set``."""
    from subbyte.sparse import machine

    values: dict[str, float] = {}
    for name, text in asked_settings(args).items():
        try:
            values[name] = int(text) if re.fullmatch(r"[+-]?\d{1,18}", text) else float(text)
        except ValueError:
            raise InvalidInput(f"--set {name}={text}: expected a number") from None
    return machine(args.machine).but(**values)


def _operand(text: str) -> Any:
    """The operand that ``--activations`` or ``--weights`` specifies; a file is read."""
    from subbyte.sparse.profiles import load_array

    return load_array(text) if text.endswith(".npy") else text


def _density(text: str) -> float:
    from subbyte.sparse.patterns import density_of

    return density_of(text.strip())


def _sizes(text: str, form: str) -> tuple[int, ...]:
    """Sizes such as 32x32x16, each 1 to 8192."""
    found = text.lower().strip().split("x")
    if len(found) != len(form.split("x")) or not all(re.fullmatch(r"\d{1,9}", one) for one in found):
        raise InvalidInput(f"--shape {text}: expected {form}, such as {'64x64x64' if form == 'MxNxK' else '64x48'}")
    sizes = tuple(int(one) for one in found)
    if not all(1 <= size <= 8192 for size in sizes):
        raise InvalidInput(f"--shape {text}: each size is 1 to 8192; `subbyte sparse simulate` counts larger products")
    return sizes


def _seed(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, 0 or more")
    return int(text)


def _progress(done: int, total: int) -> None:
    """A counter on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"\rlayers {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
