"""Operations that a kernel fuses between a layer's sums and its output, besides comparing with thresholds.

convolution -> sums + residual (-> kept for a later layer) -> max-pooling and comparison, in either order -> output
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import whole
from subbyte.errors import InvalidInput, shown
from subbyte.numerics.arrays import Int32Array
from subbyte.numerics.bit_layer import AFTER, BEFORE, POOL_ORDERS, LayerResult, layer_reference, pooled
from subbyte.numerics.residual import NARROW, WIDE, residual_width
from subbyte.numerics.thresholds import Thresholds
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.operand import Operand

SEPARATOR = "+"
ADDED = ".added"
"""Suffix of the parameters' form if they have a fourth row: the multipliers of the values that are added."""
_KEEP = "keep"
_PART = re.compile(
    r"pool(?P<pool>[1-9]\d*)(?P<after>after)?|add(?P<by>pool[1-9]\d*x)?(?P<channels>[1-9]\d*)(?P<wide>b32)?|"
    r"keep(?P<kept>32)?|keeppool(?P<windows>[1-9]\d*)(?P<wide_windows>b32)?|add(?P<values>[a-z]+[1-8])"
)


@dataclass(frozen=True)
class Fusion:
    """The fused operations of a layer, besides comparing with thresholds.

    ``pool`` x ``pool`` outputs become their maximum, ``before`` or ``after`` they are compared (``pool_order``).
    ``residual`` channels of an earlier layer's sums are added to the first channels of this layer's; if the earlier map
    is ``residual_pool`` times as high and wide, the maximum of each window is added. ``keep``: the sums are a second
    output, for a later layer; if the later layer's map is smaller by a factor of ``keep_pool`` in height and width,
    only the largest of each window is kept. Added sums have ``residual_bits``, kept ones ``keep_bits``: 16 or 32.

    ``added``: the type of a tensor of values with the output's sizes that is added, with multipliers of its own, before
    sums are rounded (:class:`~subbyte.numerics.Requantization` with ``added``), as int4, uint4 or int8.

    Raises InvalidInput for other values.
    """

    pool: int = 1
    pool_order: str = BEFORE
    residual: int = 0
    residual_pool: int = 1
    keep: bool = False
    residual_bits: int = NARROW
    keep_bits: int = NARROW
    keep_pool: int = 1
    added: Operand | None = None

    def __post_init__(self) -> None:
        whole(self.pool, "pool", 1, 64)
        whole(self.residual_pool, "residual_pool", 1, 64)
        whole(self.keep_pool, "keep_pool", 1, 64)
        whole(self.residual, "residual", 0, 1 << 20)
        residual_width(self.residual_bits, "residual_bits")
        residual_width(self.keep_bits, "keep_bits")
        if self.pool_order not in POOL_ORDERS:
            raise InvalidInput(f"pool_order={shown(self.pool_order)}: allowed: {', '.join(POOL_ORDERS)}")

    @property
    def sums(self) -> bool:
        """Whether sums of other layers (not values) are read, or sums of this one are written."""
        return self.residual > 0 or self.keep

    @property
    def text(self) -> str:
        """The part of an output's name: ``+add64+keep``, ``+addpool2x64b32+keep32``, ``+pool2``; empty if nothing is
        fused."""
        parts = []
        wide = "" if self.residual_bits == NARROW else f"b{WIDE}"
        if self.residual:
            parts.append(f"add{f'pool{self.residual_pool}x' if self.residual_pool > 1 else ''}{self.residual}{wide}")
        if self.added is not None:
            parts.append(f"add{self.added.name}")
        if self.keep and self.keep_pool > 1:
            parts.append(f"{_KEEP}pool{self.keep_pool}{'' if self.keep_bits == NARROW else f'b{WIDE}'}")
        elif self.keep:
            parts.append(_KEEP if self.keep_bits == NARROW else f"{_KEEP}{WIDE}")
        if self.pool > 1:
            parts.append(f"pool{self.pool}{AFTER if self.pool_order == AFTER else ''}")
        return "".join(f"{SEPARATOR}{part}" for part in parts)

    @staticmethod
    def of(output: str) -> Fusion:
        """The fusion in an output's name. Raises InvalidInput for an unknown part."""
        return _read(output)

    def reference(
        self, workload: ConvWorkload, x: NDArray[Any], w: NDArray[Any], thresholds: Thresholds,
        residual: Int32Array | None = None,
    ) -> LayerResult:  # fmt: skip
        """The layer on values x [N,H,W,C] and w [K,R,S,C]; ``residual`` int32 [N,P*by,Q*by,channels], as
        :func:`~subbyte.numerics.bit_layer.layer_reference` computes it. Raises InvalidInput."""
        if (residual is not None) != (self.residual > 0):
            wanted = f"int32 [N,P,Q,{self.residual}]" if self.residual else "none"
            raise InvalidInput(f"residual: {'none' if residual is None else 'one'} given; this layer takes {wanted}")
        added = None if residual is None else np.ascontiguousarray(pooled(residual, self.residual_pool))
        found = layer_reference(workload, x, w, thresholds, added, self.pool, self.pool_order)
        return LayerResult(found.values, None if found.sums is None else pooled(found.sums, self.keep_pool))


NOTHING = Fusion()


@cache
def _read(output: str) -> Fusion:
    values: dict[str, Any] = {}
    for part in output.split(SEPARATOR)[1:]:
        found = _PART.fullmatch(part)
        if found is None:
            known = "pool2, pool2after, add64, addpool2x64, keep, keeppool2, add64b32, keep32, addint4, adduint4"
            raise InvalidInput(
                f"output {shown(output)}: {shown(part)} is none of {known} (channels and sizes may differ)"
            )
        if part.startswith(_KEEP):
            wide = found["kept"] or found["wide_windows"]
            windows = int(found["windows"] or 1)
            values |= {"keep": True, "keep_bits": WIDE if wide else NARROW, "keep_pool": windows}
        elif found["values"]:
            values |= {"added": Operand.named(found["values"])}
        elif found["pool"]:
            values |= {"pool": int(found["pool"]), "pool_order": AFTER if found["after"] else BEFORE}
        else:
            size = int(found["by"].removeprefix("pool").removesuffix("x")) if found["by"] else 1
            bits = WIDE if found["wide"] else NARROW
            values |= {"residual": int(found["channels"]), "residual_pool": size, "residual_bits": bits}
    return Fusion(**values)


def base_of(output: str) -> str:
    """The output's name without the fused operations."""
    return output.partition(SEPARATOR)[0]
