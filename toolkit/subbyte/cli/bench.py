"""``subbyte bench``: this toolkit's kernels and cuDNN side by side on this GPU; ``bench atoms``: its ceilings."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from subbyte.cli.arguments import add_workloads_argument, command_parser, emit
from subbyte.errors import InvalidInput
from subbyte.workload import workloads


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte bench``."""
    parser = command_parser(
        subparsers,
        "bench",
        "Time this toolkit's kernels and cuDNN (float16, bfloat16, int8) side by side on this GPU; needs PyTorch.\n"
        "With the one word `atoms`: the ceilings of this GPU, each matrix instruction alone, copies, launches.",
        "subbyte bench resnet50.stage2@8\n  subbyte bench atoms",
    )
    add_workloads_argument(parser, nargs="*")
    text = "measure the kernels of this bundle instead of building some; may be repeated, replaces WORKLOAD"
    parser.add_argument("--bundle", action="append", default=[], metavar="DIR", help=text)
    parser.add_argument("--device", type=int, default=0, metavar="N", help="GPU number (default 0)")
    parser.add_argument("--out", metavar="FILE", help="also write the record, with every sample, to this JSON file")
    parser.add_argument("--plan-seconds", type=float, default=40.0, metavar="S",
                        help="time to spend on the plans of one cuDNN graph (default 40)")  # fmt: skip
    parser.add_argument("--no-graph-api", action="store_true", help="measure cuDNN through PyTorch alone")


def run(args: argparse.Namespace) -> int:
    """Measure and print; 0 when every side was measured, 1 when a kernel of ours was wrong or did not run."""
    if args.workloads == ["atoms"] and not args.bundle:
        return _atoms(args)
    from subbyte.measure.device import CudaDevice
    from subbyte.measure.lock import hold
    from subbyte.measure.sidebyside import build_candidates, from_bundles, side_by_side, text_of

    if bool(args.workloads) == bool(args.bundle):
        raise InvalidInput("bench needs WORKLOADs (resnet50.stage2@8), --bundle DIR, or the one word atoms")
    asked = [one for text in args.workloads for one in workloads(text)]
    device = CudaDevice(args.device)
    kernels = from_bundles(args.bundle) or {one: build_candidates(one, device.info.arch) for one in asked}
    with hold(device.info):
        record = side_by_side(
            kernels, device, plan_seconds=args.plan_seconds, graph_api=not args.no_graph_api,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )  # fmt: skip
    _put(record, args, text_of(record))
    return int(any(entry["side"].startswith("subbyte") for entry in record["missing"]))


def _atoms(args: argparse.Namespace) -> int:
    """The ceilings of this GPU."""
    from subbyte.measure.atoms import measure_atoms, text_of
    from subbyte.measure.device import CudaDevice
    from subbyte.measure.lock import hold

    device = CudaDevice(args.device)
    with hold(device.info):
        record = measure_atoms(device, say=lambda text: print(text, file=sys.stderr, flush=True))
    _put(record, args, text_of(record))
    return 0


def _put(record: dict[str, Any], args: argparse.Namespace, text: str) -> None:
    """Print a record, and write it where ``--out`` says."""
    if args.out:
        target = Path(args.out)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    shown = {key: value for key, value in record.items() if key not in ("schema", "command")}
    emit("bench", {**shown, "command_line": record["command"]}, args, text)
