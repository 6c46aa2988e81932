"""``subbyte build``: one configuration as TIRx, CUDA, PTX, SASS or cubin. Needs no GPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.cli.arguments import (
    add_arch_argument,
    add_config_arguments,
    add_sparsity_argument,
    add_workload_argument,
    asked_family,
    command_parser,
    configuration,
    density,
    emit,
    natural_number,
    take_sparsity,
)
from subbyte.errors import InvalidInput
from subbyte.files import prove_writable, write_file
from subbyte.streams import say
from subbyte.workload.operand import DENSE
from subbyte.workload.sparsity import FOUND

if TYPE_CHECKING:
    from subbyte.families.base import Plan
    from subbyte.kernel import Kernel

FORMS = ("tir", "cuda", "ptx", "sass", "cubin")


OUTPUT_HELP = (
    "int32 for the raw sums (default: the workload's output type, int4); kernels on bit planes can also pool and add: "
    "bipolar1+pool2, bipolar1+add64+keep"
)


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = command_parser(
        subparsers,
        "build",
        "Build a kernel; print its text, or write it to a file. Needs no GPU.",
        "subbyte build resnet50.stage2@8 --arch sm_80 --set chunk=2 layout=nhwc --emit cuda",
    )
    add_workload_argument(parser)
    add_arch_argument(parser)
    add_sparsity_argument(parser)
    add_config_arguments(parser, "auto")
    text = "with --sparsity condense: share of nonzero values in both operands; if a dense kernel is faster, it is used"
    parser.add_argument("--density", metavar="D", type=density, help=text)
    add_choice_arguments(parser)
    parser.add_argument("--emit", choices=FORMS, help="what to print (default: a summary); cubin needs -o")
    parser.add_argument("--output", metavar="TYPE", help=OUTPUT_HELP)
    parser.add_argument("-o", "--out", metavar="FILE", type=Path, help="write to FILE instead of stdout")
    parser.add_argument(
        "--export", metavar="DIR", type=Path, help="also write the cubin, launch data and a C header to DIR"
    )


def add_choice_arguments(parser: argparse.ArgumentParser) -> None:
    """``--tries``, ``--store`` and ``--gpu``: which kernel is chosen without ``--set``."""
    text = "build, verify and time the N (such as 16) most promising kernels on this GPU, use and remember the fastest"
    parser.add_argument("--tries", metavar="N", type=natural_number, default=0, help=text)
    text = "store with your own records, or off for none (default: the usual one); see `subbyte records --help`"
    parser.add_argument("--store", metavar="FILE", help=text)
    parser.add_argument(
        "--gpu", metavar="NAME", help="use your records of the GPU with this name instead of this machine's GPU"
    )


def run(args: argparse.Namespace) -> int:
    """Build, then print or write."""
    if args.emit == "cubin" and args.out is None and not args.json:
        raise InvalidInput("--emit cubin is not text; give a file with -o FILE")
    if args.out is not None:
        prove_writable(args.out)
    if args.export is not None:
        prove_writable(args.export / "kernel.cubin", parents=True)
    take_sparsity(args)
    kernel = chosen_kernel(args, args.arch, args.output, weighs_density=True)
    files = [str(path) for path in kernel.export(args.export)] if args.export else []
    content = getattr(kernel, args.emit) if args.emit else None
    if args.out is not None:
        written = content if content is not None else kernel.cuda
        write_file(args.out, written.encode() if isinstance(written, str) else written)
        files.append(str(args.out))
    text = content if isinstance(content, str) and args.out is None else summary(kernel)
    emit("build", {**description(kernel), **_emitted(args, content), "files": files}, args, text.rstrip())
    for file in files:
        say(f"wrote {file}")
    return 0


def chosen_kernel(
    args: argparse.Namespace, arch: str, output: str | None = None, weighs_density: bool = False
) -> Kernel:
    """The kernel that ``--family`` and ``--set`` specify; without ``--set``, the one that :func:`subbyte.compile`
    chooses, for the given density if the density matters."""
    from subbyte.device.arch import arch as arch_named
    from subbyte.families.registry import family_named
    from subbyte.kernel import build
    from subbyte.kernel.choose import known_config
    from subbyte.measure.tries import compile as compile_kernel

    if not args.settings:
        found = FOUND if args.sparsity == FOUND else DENSE  # a pattern is a part of the workload
        share = args.density if weighs_density else None
        return compile_kernel(
            args.workload, arch, family=args.family, output=output, sparsity=found, density=share,
            store=getattr(args, "store", None), gpu=getattr(args, "gpu", None), tries=getattr(args, "tries", 0),
        )  # fmt: skip
    if getattr(args, "tries", 0):
        raise InvalidInput(
            "--tries measures which configuration is the fastest, and --set names one; use only one of them"
        )
    known = known_config(args.workload, arch_named(arch), family_named(asked_family(args)))
    return build(args.workload, configuration(args, known), arch, output=output)


def description(kernel: Kernel) -> dict[str, Any]:
    """What was built, as plain data."""
    return {
        "workload": kernel.workload.spec,
        "name": kernel.workload.label,
        "arch": kernel.arch,
        "config": kernel.config.to_dict(),
        "reason": kernel.reason,
        "atom": kernel.plan.atom.name,
        "tile": list(kernel.plan.tile),
        "output": kernel.output,
        "launch": kernel.launch.to_dict(),
        "resources": kernel.resources.to_dict(),
    }


def summary(kernel: Kernel) -> str:
    """A few lines about a built kernel."""
    resources, launch, plan = kernel.resources, kernel.launch, kernel.plan
    label, spec = kernel.workload.label, kernel.workload.spec
    channels = plan.columns
    chosen = [f"  chosen         {kernel.reason}"] if kernel.reason else []
    return "\n".join(
        [
            f"{label} for {kernel.arch}" if label == spec else f"{label} ({spec}) for {kernel.arch}",
            *chosen,
            f"  configuration  {kernel.config.key}",
            f"  instruction    {plan.atom.name}{_how(plan)}",
            f"  block          {launch.block[0]} threads",
            f"  block tile     {plan.tile[0]}x{plan.tile[1]} pixels x 8 images x {channels} channels",
            f"  grid           {_grid(kernel)}",
            f"  registers      {resources.registers} per thread, {resources.local_bytes} bytes of local memory",
            f"  shared memory  {launch.shared_bytes} bytes; {resources.blocks_per_sm} blocks per multiprocessor",
        ]
    )


def _grid(kernel: Kernel) -> str:
    """The grid, such as ``2 x 28 x 8 blocks in clusters of 2``; a third size of 1 is left out."""
    launch = kernel.launch
    sizes = launch.grid if launch.grid[2] > 1 else launch.grid[:2]
    clusters = f" in clusters of {launch.cluster}" if launch.cluster > 1 else ""
    return f"{' x '.join(map(str, sizes))} blocks{clusters}"


def _how(plan: Plan) -> str:
    if plan.atom.unpacked:
        return " (int4 unpacked in registers)"
    emulated = plan.atom.name.startswith("s4.") and not plan.arch.native_s4
    return f" (emulated on {plan.arch.name}: about 40 times slower than int8)" if emulated else ""


def _emitted(args: argparse.Namespace, content: str | bytes | None) -> dict[str, Any]:
    return {"text": content} if isinstance(content, str) and args.out is None else {}
