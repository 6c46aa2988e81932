"""The knobs of TVM's schedule and which of their values mean something for a workload."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.records.foreign import FOREIGN, ForeignConfig, index_of
from subbyte.spaces.listed import Enumerated, Listed
from subbyte.workload import ConvWorkload

KNOBS: dict[str, tuple[int, ...]] = {
    "block_row_warps": (1, 2, 4),
    "block_col_warps": (1, 2, 4),
    "warp_row_tiles": (1, 2, 4, 8, 16),
    "warp_col_tiles": (1, 2, 4, 8, 16),
    "chunk": (1, 2, 4, 8),
    "split_block_k_nums": (1, 2, 4, 8, 16, 32),
    "vector_ws": (1, 8),
    "vector_as": (1, 8, 16),
    "reorder_inner": (0, 1),
    "auto_unroll_max_step": (0, 512, 1500),
}
"""TVM's values. Its two knobs for double buffering are left out: TVM 0.27 drops their annotation while lowering
(``LowerOpaqueBlock``), so both of their values build the same program."""
SHARED_LIMIT = 48 * 1024
"""Bytes of statically allocated shared memory of a block."""


@dataclass(frozen=True)
class Operand:
    """How values are stored and multiplied: element type and the instruction's rows, columns and depth."""

    name: str
    dtype: str
    bits: int
    m: int
    n: int
    k: int


OPERANDS = {"s4": Operand("s4", "int4", 4, 8, 8, 32), "s8": Operand("s8", "int8", 8, 8, 32, 16)}


@dataclass(frozen=True)
class HwncSpace(Listed):
    """All configurations of one workload (a multiple of 8 images, stride and dilation 1); ``operand`` s4 or s8."""

    workload: ConvWorkload
    operand: str
    arch: str = "sm_90a"
    kind: str = FOREIGN
    listed: bool = True

    @property
    def knobs(self) -> dict[str, tuple[int, ...]]:
        """Value lists, the first knob varies fastest."""
        return KNOBS

    @property
    def fixed(self) -> dict[str, Any]:
        """What does not vary."""
        return {"schedule": "tvm-hwnc", "operand": self.operand}

    def config(self, index: int) -> ForeignConfig:
        """The configuration at ``index``. Raises InvalidInput when it is no integer or out of range."""
        return ForeignConfig.from_dict(self.values_at(index))

    def index(self, config: ForeignConfig) -> int:
        """The index of a configuration."""
        return index_of(config.to_dict(), KNOBS)

    def check(self, which: int | ForeignConfig) -> str | None:
        """Why a configuration cannot be built, or builds what another one builds too; None when it can."""
        config = self.config(which) if isinstance(which, int) else which
        return why_not(self.workload, OPERANDS[self.operand], dict(config.to_dict()))

    @cached_property
    def _enumerated(self) -> Enumerated:
        operand = OPERANDS[self.operand]
        valid, refused = [], Counter[str]()
        for index in range(len(self)):
            if reason := why_not(self.workload, operand, self.values_at(index)):
                refused[reason.split(":")[0]] += 1
            else:
                valid.append(index)
        return tuple(valid), dict(refused)

    @property
    def hash(self) -> str:
        """Digest of workload, operand and knobs."""
        data = [self.workload.spec, self.arch, self.operand, {name: list(values) for name, values in KNOBS.items()}]
        return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:16]


def why_not(w: ConvWorkload, operand: Operand, values: dict[str, Any]) -> str | None:
    """The reason against a configuration, beginning with its kind and a colon."""
    groups, columns, blocks = w.n // operand.m, w.k // operand.n, w.c // operand.k
    if groups % (values["warp_row_tiles"] * values["block_row_warps"]):
        return f"rows: {groups} group(s) of 8 images leave further warps or tiles along the batch without work"
    if columns % (values["warp_col_tiles"] * values["block_col_warps"]):
        return f"columns: {columns} tiles of {operand.n} filters are not divided"
    if blocks % values["chunk"]:
        return f"chunk: {blocks} blocks of {operand.k} channels are not divided"
    if w.p * w.q % values["split_block_k_nums"]:
        return f"pixels: {w.p * w.q} pixels are not divided"
    if shared_bytes(w, operand, values) > SHARED_LIMIT:
        return f"shared memory: more than {SHARED_LIMIT} bytes"
    return None


def shared_bytes(w: ConvWorkload, operand: Operand, values: dict[str, Any]) -> int:
    """Bytes of a block's stages: activations, weights, int32 sums."""
    rows = values["warp_row_tiles"] * values["block_row_warps"]
    columns = values["warp_col_tiles"] * values["block_col_warps"]
    inner = values["chunk"] if values["reorder_inner"] else 1
    taps = w.s if values["reorder_inner"] else w.r * w.s
    activations = taps * values["chunk"] * rows * operand.m * operand.k * operand.bits // 8
    weights = inner * columns * operand.n * operand.k * operand.bits // 8
    sums = rows * columns * operand.m * operand.n * 4
    return int(activations + weights + sums)
