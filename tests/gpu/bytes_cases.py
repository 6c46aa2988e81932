"""Kernels on 8-bit activations and on zero points for the GPU tests, by name: of the families mma and wgmma."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from subbyte.families.mma.config import MmaConfig
from subbyte.families.registry import config_from_key
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload, workload

Named = tuple[str, ConvWorkload, Configuration, dict[str, Any]]
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


SIGNED = "w8a8:signed.signed"
WGMMA: dict[str, tuple[str, str, dict[str, Any]]] = {
    "s8": (f"n8h9w9c64k64r3s3p1:{SIGNED}", "wgp-tw10-tr1-cm1-sg2-st4-la1-sta0-ca1", {}),
    "u8, odd blocks, edges": ("n9h5w12c40k70r3s3p1:w8a8", "wgp-tw6-tr1-cm1-sg1-st5-la1-ca1-cr2", {}),
    "u8 through registers": ("n9h7w9c96k128r3s3p1:w8a8", "wgp-tw10-tr1-cm2-sg1-st5", {"clip": (3, 200)}),
    "first layer": ("n3h23w25c3k64r7s7p3u2:w8a8", "wgp-tw14-tr1-cm1-sg2-st8-la1-sta0-ca2", {"requant": "general"}),
    "own rows, groups of channels": (
        f"n8h14w14c256k128r3s3p1:{SIGNED}", "wgp-tw14-tr2-cm2-sg2-cg4-st12-rr0-la1-sta0-if2-ca3", {},
    ),
    "rows of an iteration in a stage, stride 2": (
        "n8h14w14c128k128r3s3p1u2:w4a8", "wgp-tw8-tr4-cm2-sg1-cg2-st3-rr3-la1-sta0-ca1", {},
    ),
    "early release, lean start": (
        f"n8h14w14c64k64r3s3p1:{SIGNED}", "wgp-tw14-tr1-cm1-cr2-sg2-st7-rr2-la1-sta0-ls2-ca2", {},
    ),
    "1x1, flat batch, int4 weights": (
        "n24h7w7c256k128r1s1p0:w4a8", "wgp-tw24-tr1-cm2-sg3-cg2-st6-rr0-la1-sta0-px2-ca3", {},
    ),
    "1x1, int8 weights, sums": (
        f"n16h7w7c128k192r1s1p0:{SIGNED}", "wgp-tw8-tr1-cm1-mi3-sg2-st4-la1-sta0-ca1", {"output": "int32"},
    ),
    "lowered, nhwc, through shared memory": (
        f"n5h7w7c64k64r3s3p1:{SIGNED}", "wgp-tw8-tr1-cm1-sg1-st4-la1-sta0-dup.none-rp0-nhwc", {},
    ),
    "a cluster shares channels": (
        f"n8h7w7c256k128r3s3p1:{SIGNED}", "wgp-tw8-tr1-cm2-sg7-sk4-st3-la1-un2-sta0-ca1", {},
    ),
    "one tile iteration": (f"n9h7w6c64k70r3s3p1:{SIGNED}", "wgs-tw3-tr1-cm1-sg7-mc1-pdl0-wa3-pa1", {}),
    "one tile iteration, weights for two": ("n16h7w7c128k128r3s3p1:w4a8", "wgs-tw8-tr1-cm1-sg7-mc2", {}),
    "int4 out": ("n8h6w6c64k64r1s1p0:w8a8o4:signed.signed.signed", "wgp-tw6-tr1-cm1-sg2-st3-la1-sta0-ca1", {}),
    "uint8 out of uint4": ("n8h6w6c64k48r3s3p1:w4a4o8:signed.unsigned.unsigned", "wgp-tw6-tr1-cm1-sg1-st4", {}),
    "zero point of u8": ("n9h7w6c40k48r3s3p1:w8a8:signed.offset-z37", "wgp-tw6-tr1-cm1-sg1-st5-la1-ca2", {}),
    "zero point of s8, sums": (
        "n8h7w12c64k48r5s5p2u2:w8a8:signed.signed-z-7", "wgp-tw3-tr1-cm1-sg1-st6", {"output": "int32"},
    ),
    "zero point, int4 weights, own rows": (
        "n3h6w6c128k64r3s3p1:w4a8:signed.offset-z200", "wgp-tw6-tr1-cm1-sg2-cg2-st7-rr0-la1-sta0-if2-ca2",
        {"requant": "general"},
    ),
    "zero point of uint4": ("n8h7w7c64k64r3s3p1:w4a4:signed.offset-z3", "wgp-tw8-tr1-cm1-sg1-st4", {}),
    "zero point of int4, one tile iteration": (
        "n8h5w6c64k64r3s3p1:w4a4:signed.signed-z-3", "wgs-tw6-tr1-cm1-sg5-mc1-pa2", {},
    ),
    "zero points of both": ("n8h7w7c64k64r3s3p1:w8a8:signed.offset-z37.signed-z-9", "wgp-tw8-tr1-cm1-sg1-st4", {}),
}  # fmt: skip


def bytes_and_zero_points() -> Iterator[Named]:
    """Every case."""
    for name, (spec, knobs, options) in CASES.items():
        yield f"bytes: {name}", workload(spec), MmaConfig().with_values(knobs), options
    yield from bytes_on_wgmma()


def bytes_on_wgmma() -> Iterator[Named]:
    """Those of the family wgmma."""
    for name, (spec, key, options) in WGMMA.items():
        yield f"bytes on wgmma: {name}", workload(spec), config_from_key(key), options
