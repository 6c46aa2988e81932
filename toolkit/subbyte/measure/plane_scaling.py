"""How a kernel's time grows with the number of plane pairs: a layer in several precisions, compared with int4
(``subbyte bench planes``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from statistics import linear_regression
from typing import Any

import msgspec

from subbyte.errors import SubbyteError
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol, command_line
from subbyte.info_record import Table, columns_text
from subbyte.kernel.choose import compile as compile_kernel
from subbyte.records.shapes import Count, Name, Time, Tree
from subbyte.workload import ConvWorkload
from subbyte.workload.precision import INT4, SUMS, Precision

SCHEMA = 1
PAIRS = ("w1a1", "w1a2", "w1a3", "w1a4", "w2a2", "w1a5", "w1a6", "w2a3", "w1a8", "w2a4", "w3a3", "w2a6", "w3a4",
         "w2a8", "w4a4")  # fmt: skip
"""APNN-TC's ten pairs and five more."""
PROTOCOL = TimingProtocol(cold=False, launches=50)
MOST_OUTPUT_BITS = 4
"""Codes with more bits would take more than 15 comparisons per sum; raw sums are measured instead."""


class PrecisionShape(msgspec.Struct, frozen=True, omit_defaults=True):
    """A precision in a record: a time, or a reason."""

    precision: Name
    planes: Count
    microseconds: Time | None = None
    config: str = ""
    reason: str = ""


class PlanesShape(msgspec.Struct, frozen=True):
    """The printed parts of a record."""

    device: dict[Name, Tree]
    date: Name
    workload: Name
    rows: tuple[PrecisionShape, ...]
    command: str = ""
    schema: Count = 1


def measure_planes(
    layer: ConvWorkload, device: CudaDevice, pairs: Sequence[str] = PAIRS, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The record of a layer in each of ``pairs``, and in int4: plain data, ready for JSON.

    Every element of every output is compared with the reference. A precision that no kernel on bit planes covers has
    a reason instead of a time. Raises MissingDependency without TVM or NVRTC, WrongResult, CudaError.
    """
    rows: list[dict[str, Any]] = []
    for name in (*pairs, ""):
        precision = Precision.of(name)
        row: dict[str, Any] = {"precision": precision.label, "planes": planes_of(precision)}
        try:
            output = SUMS if precision.output.bits > MOST_OUTPUT_BITS else None
            kernel = compile_kernel(replace(layer, precision=precision), device.info.arch, output=output)
            timing = kernel.time(PROTOCOL, f"cuda:{device.info.ordinal}")
        except SubbyteError as error:
            row["reason"] = str(error)
        else:
            row |= {"microseconds": timing.microseconds, "samples": list(timing.samples), "clocks": timing.clocks(),
                    "config": kernel.config.key, "output": kernel.output}  # fmt: skip
        rows.append(row)
        say(f"{row['precision']}: {row.get('microseconds', row.get('reason'))}")
    return {
        "schema": SCHEMA, "kind": "planes", "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(), "device": device.info.to_dict(), "protocol": PROTOCOL.to_dict(),
        "workload": layer.sizes, "rows": rows,
    }  # fmt: skip


def planes_of(precision: Precision) -> int:
    """Number of plane pairs of a product on bit planes, p times q."""
    return precision.weights.bits * precision.activations.bits


def fitted(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Intercept and slope of the time in microseconds over the number of pairs, by least squares over the rows on bit
    planes; None for fewer than two rows."""
    known = [row for row in rows if "microseconds" in row and row["precision"] != INT4.label]
    if len({row["planes"] for row in known}) < 2:
        return None
    found = linear_regression([row["planes"] for row in known], [row["microseconds"] for row in known])
    return found.intercept, found.slope


def crossing(rows: Sequence[Mapping[str, Any]], other: float) -> float | None:
    """The number of plane pairs at which the line reaches ``other`` microseconds; None without a rising line."""
    line = fitted(rows)
    return None if line is None or line[1] <= 0 else (other - line[0]) / line[1]


def text_of(record: Mapping[str, Any]) -> str:
    """A row per precision, the line through them, and where it reaches int4."""
    device, rows = record["device"], record["rows"]
    cells = tuple(
        (row["precision"], row["planes"], row["microseconds"], row["config"])
        if "microseconds" in row else (row["precision"], row["planes"], "-", row["reason"])
        for row in rows
    )  # fmt: skip
    lines = [f"{record['workload']}: {device['name']} ({device['arch']}), {record['date']}", "",
             columns_text(Table(("precision", "p*q", "us", "configuration"), cells))]  # fmt: skip
    line = fitted(rows)
    if line is not None:
        lines += ["", f"least squares over kernels on bit planes: {line[0]:.2f} us + {line[1]:.3f} us for each pair"]
        int4 = [row["microseconds"] for row in rows if row["precision"] == INT4.label and "microseconds" in row]
        reached = crossing(rows, int4[0]) if int4 else None
        if reached is not None:
            lines.append(f"the line reaches int4 ({int4[0]:.2f} us) at p*q = {reached:.1f}")
    return "\n".join(lines)
