"""The plan of a kernel that counts bits on the integer units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from subbyte.device.atoms import Atom
from subbyte.families.shared.planes.geometry import IMAGE_WORDS
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.numerics.bit_products import plain_operation


@dataclass(frozen=True)
class PopcPlan(PlanePlan):
    """Everything about one kernel of the popc family that is known before its code is generated."""

    product: ClassVar[str] = "comparison"

    @property
    def operation(self) -> str:
        """Xor if it needs no corrections, else and: both take one instruction."""
        return plain_operation(self.workload.precision)

    @cached_property
    def atom(self) -> Atom:
        """What a warp multiplies at a time: the shape of the smallest matrix instruction, in popcounts."""
        return Atom(f"popc.m8n8k128.{self.operation}", "popc.b32", 1, 1, False, 75)

    @cached_property
    def factors(self) -> tuple[int, ...]:
        """A single set: each count is multiplied by its factor when it is added."""
        return (1,)

    def factor(self, weight_plane: int, plane: int) -> int:
        """The factor on a count of a pair of planes."""
        return self.counts.factor(weight_plane, plane) // self.divisor

    def ones_factor(self, plane: int) -> int:
        """The factor on a count of a plane of activations."""
        return self.counts.pixel_factor(plane) // self.divisor

    @property
    def ones_registers(self) -> int:
        """One for each pixel of a warp."""
        return self.config.warp_row_tiles if self.counts.pixel else 0

    @property
    def stage_products(self) -> tuple[int, int]:
        """8 x 8 x 128-bit products of a warp per stage; the activation bits are counted separately."""
        taps = self.rows_staged * len(self.pieces) * self.weight_planes * self.planes
        return taps * self.config.warp_row_tiles * self.config.warp_col_tiles, 0

    def pair_term(self, weight_plane: int, plane: int) -> tuple[int, int, int]:
        """All pairs share one set and are multiplied when they are added."""
        return 0, 0, self.factor(weight_plane, plane)

    def ones_term(self, plane: int, pixel: int) -> tuple[int, int, int]:
        """One register per pixel, multiplied when it is added."""
        return 0, pixel, self.ones_factor(plane)

    @property
    def written(self) -> int:
        """8 x 8 x 128-bit products of a pair of planes for a tap's 128 channels, each about ten times as many
        instructions as a matrix product."""
        return 10 * self.config.warp_row_tiles * self.config.warp_col_tiles

    @property
    def fragment_registers(self) -> int:
        """The four words of a warp's pixels in a plane, and those of two channels of two tiles."""
        return IMAGE_WORDS * (self.config.warp_row_tiles + 4)
