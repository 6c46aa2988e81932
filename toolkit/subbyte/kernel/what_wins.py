"""The note added to kernels on bit planes when wider operands hold the same values and take less time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from subbyte.device.arch import Arch
from subbyte.families.base import Plan
from subbyte.workload.coverage import FOUR_BITS, four_bits_alone
from subbyte.workload.operand import Operand
from subbyte.workload.precision import INT4

MANY = 5
"""With at least this many pairs of planes, kernels on wider operands were faster in the 4096 x 4096 x 4096 product
measured in 15 precisions on an H200 (benchmarks/notes/bits_papers.md, A5). Small products cross over later."""
BYTES = ("s8.", "u8.")
"""Name prefixes of the instructions that multiply whole values."""
RECORDED_ON = "sm_90a"
"""The architecture of the recorded times."""


def what_wins(plan: Plan, arch: Arch, recorded: Mapping[str, Mapping[str, Any]]) -> str:
    """If kernels on bit planes are not the fastest way to these sums, which way is, or is expected to be, judging by
    the fastest measured configurations of workloads."""
    workload, types = plan.workload, plan.workload.precision
    if four_bits_alone(workload) is None or arch.name != RECORDED_ON:
        return ""
    products = types.weights.bits * types.activations.bits
    own, other = recorded.get(workload.spec), recorded.get(replace(workload, precision=INT4).spec)
    fits = types.pad_value == 0 and _within(types.weights, INT4.weights)
    held = [one for one in FOUR_BITS if fits and _within(types.activations, one)]
    ours = own["microseconds"] if own else float("inf") if products >= MANY else 0.0
    if held and other is not None and other["microseconds"] < ours:
        of, on = ("", "") if held[0] == INT4.activations else (" (w4a4:signed.unsigned)", " on int4 values")
        return f"; an int4 kernel{of} holds these values too and needs {other['microseconds']:.2f} us (recorded{on})"
    if products >= MANY and not plan.atom.name.startswith(BYTES):
        many = f"{products} one-bit products for each product of values"
        return f"; {many}: int8 was faster from {MANY} on in a product of 4,096 x 4,096 x 4,096 (recorded)"
    return ""


def _within(values: Operand, wider: Operand) -> bool:
    return wider.least <= values.least and values.largest <= wider.largest
