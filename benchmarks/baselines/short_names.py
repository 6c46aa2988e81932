"""Sides of the comparison as columns name them."""

from __future__ import annotations

SHORT = {
    "cuDNN float16, PyTorch": "fp16 PyTorch", "cuDNN bfloat16, PyTorch": "bf16 PyTorch",
    "cuDNN float16 to float16, graph API": "fp16", "cuDNN bfloat16 to bfloat16, graph API": "bf16",
    "cuDNN float8_e4m3fn to float16, graph API": "fp8 to fp16",
    "cuDNN float8_e4m3fn to float8_e4m3fn, graph API": "fp8 to fp8", "cuDNN int8 to int32, graph API": "int8 to int32",
    "cuDNN int8 to int8, graph API": "int8 to int8", "CUTLASS int8 to int8": "CUTLASS int8",
}  # fmt: skip


def short(side: str) -> str:
    """A side's name in a column."""
    return SHORT.get(side, side)
