"""``subbyte workloads``: names, shapes, operations, and what kernels cover."""

from __future__ import annotations

import argparse
from typing import Any

from subbyte.cli.arguments import add_workloads_argument, command_parser, emit
from subbyte.workload import LAYERS, NETWORKS, ConvWorkload, workloads


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte workloads``."""
    parser = command_parser(
        subparsers,
        "workloads",
        "Names, shapes and operations of the convolutions; without arguments those of all networks at batch 8.",
        "subbyte workloads resnet50@16 n8h56w56c64k64r3s3p1",
    )
    add_workloads_argument(parser, nargs="*")


def run(args: argparse.Namespace) -> int:
    """Print the workloads and return 0."""
    # Network by network: a shape that two networks share is listed under both names.
    asked = args.workloads or list(NETWORKS)
    found = {one.label: one for text in asked for one in workloads(text)}
    rows = [_row(workload) for workload in found.values()]
    emit("workloads", {"workloads": rows}, args, _table(rows, [*map(_kernels, found.values())]))
    return 0


def _row(workload: ConvWorkload) -> dict[str, Any]:
    from subbyte.kernel.coverage import covered

    layer = LAYERS.get(workload.label.partition("@")[0])
    reason = covered(workload)
    return {
        "name": workload.label,
        "spec": workload.spec,
        "count": layer.count if layer else 1,
        "input": [workload.n, workload.h, workload.w, workload.c],
        "weights": [workload.k, workload.r, workload.s, workload.c],
        "output": [workload.n, workload.p, workload.q, workload.k],
        "pad": workload.pad,
        "stride": workload.stride,
        "dilation": workload.dilation,
        "operations": workload.operations,
        "bytes": workload.bytes_moved,
        "covered": reason is None,
        "reason": reason,
    }


def _kernels(workload: ConvWorkload) -> str:
    """``yes``, which architectures a family covers alone, or why there is none."""
    from subbyte.device.arch import ARCHS
    from subbyte.families.registry import families, usual
    from subbyte.kernel.coverage import covered

    reason = covered(workload, family=usual().name)
    if reason is None:
        return "yes"
    for other in families().values():
        archs = [name for name, arch in ARCHS.items() if other is not usual() and other.covers(workload, arch) is None]
        if archs:
            why = f"the {other.name} family; the {usual().name} family: {reason}"
            return f"on {', '.join(archs)} alone ({why})"
    return covered(workload) or "yes"


def _table(rows: list[dict[str, Any]], kernels: list[str]) -> str:
    head = ["workload", "spec", "layers", "operations", "bytes", "kernels"]
    cells = [head] + [
        [row["name"], row["spec"], str(row["count"]), f"{row['operations']:,}", f"{row['bytes']:,}",
         kernel]
        for row, kernel in zip(rows, kernels, strict=True)
    ]  # fmt: skip
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    right = (2, 3, 4)
    lines = (
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )
    return "\n".join(lines)
