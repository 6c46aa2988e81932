"""Kernels on 8-bit activations and on zero points for the GPU tests, by name: of the family mma."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subbyte.families.mma.config import MmaConfig
from subbyte.workload import ConvWorkload, workload

Named = tuple[str, ConvWorkload, MmaConfig, dict[str, Any]]
"""What a kernel is for, its workload, configuration and the options of its output."""

CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "u8, odd blocks": ("n9h5w7c40k70r3s3p1:w8a8", {"warp_col_tiles": 1}, {}),
    "s8": ("n8h9w9c64k64r3s3p1:w8a8:signed.signed", {"chunk": 2}, {}),
    "first layer": ("n3h23w25c3k64r7s7p3u2:w8a8", {"reorder_inner": 1}, {"requant": "general"}),
    "through shared memory": ("n8h7w7c96k128r3s3p1:w8a8", {"chunk": 2, "register_packing": False}, {}),
    "s8, nhwc, lowered": (
        "n5h7w7c64k64r3s3p1:w8a8:signed.signed", {"chunk": 2, "layout": "nhwc", "duplicate_aware": "none"}, {},
    ),
    "int4 weights": ("n8h8w8c128k64r3s3p1:w4a8", {"chunk": 4, "split_channels": 2}, {}),
    "int4 weights, odd blocks": ("n9h9w9c40k64r3s3p2d2:w4a8:signed.signed", {"warp_col_tiles": 2}, {}),
    "int4 weights, sums": ("n8h9w9c64k128r3s3p1u2:w4a8", {"chunk": 2}, {"output": "int32"}),
    "int4 out": ("n8h6w6c64k64r1s1p0:w8a8o4:signed.signed.signed", {"chunk": 4}, {}),
    "uint8 out of uint4": ("n8h6w6c64k48r3s3p1:w4a4o8:signed.unsigned.unsigned", {"warp_col_tiles": 1}, {}),
    "zero point of u8": ("n9h7w6c40k48r3s3p1:w8a8:signed.offset-z37", {"warp_col_tiles": 1}, {}),
    "zero point of s8, sums": (
        "n8h7w6c64k48r5s5p2u2:w8a8:signed.signed-z-7", {"chunk": 2, "warp_col_tiles": 1}, {"output": "int32"},
    ),
    "zero point, int4 weights": ("n3h7w9c64k64r3s3p1:w4a8:signed.offset-z200", {"chunk": 2}, {"requant": "general"}),
    "zero point of uint4": ("n8h7w7c64k64r3s3p1:w4a4:signed.offset-z3", {"chunk": 2}, {}),
}  # fmt: skip


def bytes_and_zero_points() -> Iterator[Named]:
    """Every case."""
    for name, (spec, knobs, options) in CASES.items():
        yield f"bytes: {name}", workload(spec), MmaConfig().with_values(knobs), options
