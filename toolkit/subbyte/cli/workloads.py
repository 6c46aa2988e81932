"""``subbyte workloads``: names, shapes, types of operands, operations, and what kernels cover."""

from __future__ import annotations

import argparse
from typing import Any

from subbyte.cli.arguments import add_workloads_argument, command_parser, emit
from subbyte.workload import INT4, LAYERS, NETWORKS, ConvWorkload, workloads


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte workloads``."""
    parser = command_parser(
        subparsers,
        "workloads",
        "Names, shapes, types of operands and operations of the workloads; without arguments the convolutions of all "
        "networks at batch 8.",
        "subbyte workloads resnet50@16 n8h56w56c64k64r3s3p1 resnet50.stage2@8:w1a2 gemm64x1024x1024",
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
        "kind": workload.kind,
        "operands": str(workload.precision),
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
    """Aligned text; the types of operands have a column where some are not int4."""
    columns = {
        "workload": [row["name"] for row in rows],
        "spec": [row["spec"] for row in rows],
        "operands": [row["operands"] for row in rows],
        "layers": [str(row["count"]) for row in rows],
        "operations": [f"{row['operations']:,}" for row in rows],
        "bytes": [f"{row['bytes']:,}" for row in rows],
        "kernels": kernels,
    }
    if set(columns["operands"]) <= {str(INT4)}:
        del columns["operands"]
    right = ("layers", "operations", "bytes")
    padded = []
    for head, texts in columns.items():
        width = max(map(len, [head, *texts]))
        padded.append([text.rjust(width) if head in right else text.ljust(width) for text in [head, *texts]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))
