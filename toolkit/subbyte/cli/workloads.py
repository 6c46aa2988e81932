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
        "List names, shapes, operand types and operations of workloads; without arguments, of the convolutions of all "
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
    """``yes``, which families cover the layer on which architectures, or why none does."""
    from subbyte.device.arch import ARCHS
    from subbyte.families.registry import newest_first, usual
    from subbyte.kernel.coverage import covered

    reason = covered(workload, family=usual().name)
    if reason is None:
        return "yes"
    found: dict[str, list[str]] = {}
    for name, arch in ARCHS.items():
        one = next((one for one in newest_first() if one.covers(workload, arch) is None), None)
        if one is not None:
            found.setdefault(one.name, []).append(name)
    if not found:
        return covered(workload) or "yes"
    why = f"the {usual().name} family: {reason}"
    if sum(map(len, found.values())) == len(ARCHS):
        each = ", ".join(f"the {family} family on {', '.join(archs)}" for family, archs in found.items())
        return f"yes ({each}; {why})"
    each = ", ".join(f"only on {', '.join(archs)} (the {family} family" for family, archs in found.items())
    return f"{each}; {why})"


def _table(rows: list[dict[str, Any]], kernels: list[str]) -> str:
    """Aligned text; operand types have a column if some are not int4."""
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
