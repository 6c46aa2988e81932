"""The plan of a kernel that counts bits on the integer units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from subbyte.device.atoms import Atom
from subbyte.families.shared.planes.geometry import IMAGE_WORDS
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.numerics.bit_products import plain_operation


@dataclass(frozen=True)
class PopcPlan(PlanePlan):
    """Everything about one kernel of the popc family that can be known before generating it."""

    @property
    def operation(self) -> str:
        """Xor where it needs no corrections, else and: both take one instruction."""
        return plain_operation(self.workload.precision)

    @cached_property
    def atom(self) -> Atom:
        """What a warp multiplies at a time: as the smallest matrix instruction, in popcounts."""
        return Atom(f"popc.m8n8k128.{self.operation}", "popc.b32", 1, 1, False, 75)

    @cached_property
    def factors(self) -> tuple[int, ...]:
        """One set: each count is multiplied by its factor as it is added."""
        return (1,)

    def factor(self, weight_plane: int, plane: int) -> int:
        """What a count of a pair of planes is multiplied by."""
        return self.counts.factor(weight_plane, plane) // self.divisor

    def ones_factor(self, plane: int) -> int:
        """What a count of a plane of activations is multiplied by."""
        return self.counts.pixel_factor(plane) // self.divisor

    @property
    def ones_registers(self) -> int:
        """One for each pixel of a warp."""
        return self.config.warp_row_tiles if self.counts.pixel else 0

    @property
    def fragment_registers(self) -> int:
        """The four words of a warp's pixels in a plane, those of two channels in all planes."""
        return IMAGE_WORDS * (self.config.warp_row_tiles + 2 * self.weight_planes)
