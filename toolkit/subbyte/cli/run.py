"""``subbyte run``: execute a kernel, compare every element with the reference, time it on a GPU."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from subbyte.cli.arguments import (
    add_arch_argument,
    add_config_arguments,
    add_sparsity_argument,
    add_workload_argument,
    command_parser,
    density,
    emit_and_save,
    seed,
    take_sparsity,
)
from subbyte.cli.build import OUTPUT_HELP, chosen_kernel, description, summary
from subbyte.errors import InvalidInput
from subbyte.files import prove_writable, write_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from subbyte.kernel import Kernel
    from subbyte.numerics import Requantization, Thresholds


def add_parser(subparsers: Any) -> None:
    """Add this command to the command line."""
    parser = command_parser(
        subparsers,
        "run",
        "Run a kernel on random operands, check every output element, and time it on a GPU.",
        "subbyte run resnet50.stage2@8 --device auto --seed 1 --save run.npz",
    )
    add_workload_argument(parser)
    add_arch_argument(parser, default=None)
    add_sparsity_argument(parser)
    add_config_arguments(parser, "auto")
    parser.add_argument("--output", metavar="TYPE", help=OUTPUT_HELP)
    parser.add_argument(
        "--device", default="auto", help="auto (the GPU if there is one, else the CPU), cuda:0 or emulator"
    )
    parser.add_argument("--seed", metavar="N", type=seed, default=0, help="seed of the random operands (default 0)")
    parser.add_argument("--density", metavar="D", type=density, help="share of nonzero values in the operands")
    parser.add_argument(
        "--save", metavar="FILE.npz", type=Path, help="save operands, parameters and output to this file"
    )
    parser.add_argument("--no-time", action="store_true", help="only check the output")


def run(args: argparse.Namespace) -> int:
    """Run and check; a mismatch exits 1."""
    from subbyte.kernel.execute import (
        EMULATOR,
        compared,
        device_arch,
        expected_layer,
        random_operands,
        random_residual,
        resolve_device,
        run_outputs,
    )
    from subbyte.measure.densities import strewn
    from subbyte.workload.operand import DENSE

    if args.save is not None:
        prove_writable(args.save)
    take_sparsity(args)
    arch = args.arch or device_arch(args.device)
    device = resolve_device(args.device, arch)
    kernel = chosen_kernel(args, arch, args.output)
    pattern = kernel.workload.precision.weights.sparsity
    if args.density is not None and pattern != DENSE:
        raise InvalidInput(
            f"--density {args.density:g}: does not apply to weights of {pattern}; leave it out, or use --sparsity "
            "condense"
        )
    x, w, requant = random_operands(kernel, args.seed)
    if args.density is not None:
        x, w = strewn(kernel.workload, args.density, args.seed)
    kernel = kernel.for_requantization(requant)
    residual = random_residual(kernel, args.seed)
    outputs = run_outputs(kernel, kernel.pack(x, w, requant, residual), device)
    report = compared(kernel, outputs, expected_layer(kernel, x, w, requant, residual))
    timed = report.ok and device != EMULATOR and not args.no_time
    timing = kernel.time(device=device, seed=args.seed) if timed else None
    payload = {**description(kernel), "device": device, "seed": args.seed, "check": report.to_dict(),
               "timing": timing.to_dict() if timing else None,
               "tops": timing.tops(kernel.workload.operations) if timing else None}  # fmt: skip

    def save() -> None:
        if args.save is not None:
            _save(args.save, x, w, requant, kernel.unpack(outputs["Out"]), residual)

    failed = emit_and_save("run", payload, args, _text(kernel, device, str(report), timing), save)
    return failed or (0 if report.ok else 1)


def _text(kernel: Kernel, device: str, report: str, timing: Any) -> str:
    lines = [summary(kernel), f"  device         {device}", f"  check          {report}"]
    if timing is not None:
        cold = timing.cold_microseconds
        lines.append(
            f"  time           {timing.microseconds:.2f} us ({timing.tops(kernel.workload.operations):.0f} TOPS), "
            + (f"{cold:.2f} us with a cold L2, " if cold is not None else "")
            + f"spread {timing.spread:.1%}"
        )
        lines.append(f"  on             {timing.device.get('name')}, driver {timing.device.get('driver_version')}")
    elif device == "emulator":
        lines.append("  time           none: the CPU runs the kernel's own CUDA text, exactly but not fast")
    return "\n".join(lines)


def _save(
    path: Path,
    x: NDArray[np.int8],
    w: NDArray[np.int8],
    requant: Requantization | Thresholds | None,
    y: NDArray[np.integer],
    residual: NDArray[np.integer] | None,
) -> None:
    """Save x [N,H,W,C], w [K,R,S,C], the kernel's own y [N,P,Q,K], and bias, multiplier, shift [K], clip [2], or for
    thresholds levels [2^q - 1, K] and flip [K]; if a residual is added, also the residual and its multiplier ``added``
    [K]."""
    from subbyte.numerics import Thresholds

    if requant is None:
        raise InvalidInput("--save needs a requantized output")
    rule: dict[str, Any]
    if isinstance(requant, Thresholds):
        rule = {"levels": requant.levels, "flip": requant.flip}
    else:
        rule = {name: getattr(requant, name) for name in ("bias", "multiplier", "shift")}
        rule["clip"] = np.array(requant.clip, np.int32)
        if requant.added is not None:
            rule["added"] = requant.added
    if residual is not None:
        rule["residual"] = residual
    file = BytesIO()
    np.savez_compressed(file, x=x, w=w, **rule, y=y)
    write_file(path, file.getvalue())
