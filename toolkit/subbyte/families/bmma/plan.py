"""The plan of a kernel on one-bit warp products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.families.bmma.config import AUTO, DOUBLE, POPCOUNT, SHARED, BmmaConfig
from subbyte.families.shared.axis import Index
from subbyte.families.shared.planes.plan import PlanePlan
from subbyte.numerics.bit_products import AND, XOR, CountForm, count_form, plain_operation
from subbyte.workload.conv import ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS


def usual_operation(workload: ConvWorkload, arch: Arch) -> str:
    """The bit product of an architecture; if it has both, the one that needs fewer corrections."""
    if not arch.async_copy:
        return XOR
    return plain_operation(workload.precision) if arch.native_s4 else AND


def atom(operation: str, pixels: int, pieces: int) -> Atom:
    """The instruction for fragments of this many pixels and blocks of 128 channels."""
    shape = f"m{8 * pixels}n8k{128 * pieces}"
    ptx = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
    return Atom(f"b1.{shape}.{operation}", ptx, pixels, pieces, False, 75 if pixels == 1 else 80)


@dataclass(frozen=True)
class BmmaPlan(PlanePlan):
    """Everything about one kernel of the bmma family that is known before its code is generated."""

    @property
    def _config(self) -> BmmaConfig:
        return cast(BmmaConfig, self.config)

    @property
    def operation(self) -> str:
        """``and`` or ``xor``."""
        wanted = AND if self.doubled else self._config.operation
        return usual_operation(self.workload, self.arch) if wanted == AUTO else wanted

    @property
    def doubled(self) -> bool:
        """Whether equal bits are counted (set in both operands or in neither); others count differing ones."""
        return self._config.correction == DOUBLE

    @property
    def equal_bits(self) -> bool:
        """Same as :attr:`doubled`."""
        return self.doubled

    @cached_property
    def counts(self) -> CountForm:
        """How sums are computed from counts of bits."""
        return count_form(self.workload.precision, XOR if self.doubled else self.operation)

    @cached_property
    def shift(self) -> int:
        """The constant from which differing bits are subtracted: all bits of a window, padding channels included, times
        the pairs' factors; 0 if nothing is :attr:`doubled`."""
        if not self.doubled:
            return 0
        bits = self.view.r * self.view.s * self.channel_blocks * BLOCK_BITS
        sides = range(self.weight_planes), range(self.planes)
        return bits * sum(self.counts.factor(s, t) for s in sides[0] for t in sides[1])

    @cached_property
    def atom(self) -> Atom:
        """The matrix instruction."""
        return atom(self.operation, 2, 2) if self.arch.async_copy else atom(self.operation, 1, 1)

    @cached_property
    def last_atom(self) -> Atom:
        """The one for a last, single block of 128 channels."""
        return atom(self.operation, self.atom.pixels, 1)

    @cached_property
    def factors(self) -> tuple[int, ...]:
        """One set of counts for all pairs of planes with the same factor."""
        if self.splits > 1:
            return (1,)
        pairs = ((s, t) for s in range(self.weight_planes) for t in range(self.planes))
        return tuple(dict.fromkeys(self._factor(s, t) for s, t in pairs))

    def _factor(self, weight_plane: int, plane: int) -> int:
        factor = self.counts.factor(weight_plane, plane) // self.divisor
        return -factor if self.doubled else factor

    def set_of(self, weight_plane: int, plane: int) -> int:
        """The set in which a pair of planes is counted."""
        return 0 if self.splits > 1 else self.factors.index(self._factor(weight_plane, plane))

    @property
    def fragment_registers(self) -> int:
        """Registers per step: weights of all planes, activations of one."""
        pixels, columns = self.pairs * self.atom.pixels, self.config.warp_col_tiles
        return self.atom.blocks * (columns * self.warp_planes[0] + pixels) * (2 if self.doubled else 1)

    @property
    def written(self) -> int:
        """Matrix instructions per kernel row."""
        steps = ceil_div(len(self.pieces), self.atom.blocks) * self.warp_planes[0] * self.warp_planes[1]
        return steps * self.pairs * self.config.warp_col_tiles * (2 if self.doubled else 1)

    def ones_factor(self, plane: int) -> int:
        """The factor on a count of a plane of activations."""
        return self.counts.pixel_factor(plane) // self.divisor

    @cached_property
    def split_factors(self) -> tuple[tuple[int, int], ...]:
        """One pair of planes for each group of warps, if the groups add up in shared memory; the activation bits are
        counted with the first plane of the weights."""
        if self._config.combine != SHARED:
            return ((1, 1),)
        pairs = ((s, t) for s in range(self.weight_planes) for t in range(self.planes))
        return tuple((self._factor(s, t), self.ones_factor(t) if s == 0 else 0) for s, t in pairs)

    @property
    def warp_planes(self) -> tuple[int, int]:
        """Planes of weights and of activations that a warp multiplies."""
        return (1, 1) if self.splits > 1 else (self.weight_planes, self.planes)

    @property
    def counted_by_instruction(self) -> bool:
        """Whether the activation bits are counted by one more tile of columns."""
        return self._config.correction != POPCOUNT

    @property
    def ones_registers(self) -> int:
        """Registers per plane: those of a tile of columns, or one for each pixel."""
        if not self.counts.pixel:
            return 0
        each = self.pairs * (self.atom.accumulators if self.counted_by_instruction else self.atom.pixels)
        return self.warp_planes[1] * each

    @property
    def stage_products(self) -> tuple[int, int]:
        """Matrix instructions of a warp per stage: with weights, and with a tile of ones."""
        steps = self.rows_staged * ceil_div(len(self.pieces), self.atom.blocks)
        ones = bool(self.ones_registers) and self.counted_by_instruction
        return self.written * self.rows_staged, steps * self.warp_planes[1] * self.pairs if ones else 0

    def pair_term(self, weight_plane: int, plane: int) -> tuple[int, int, int]:
        """Group of warps, set of counts, factor."""
        if self.splits > 1:
            split = weight_plane * self.planes + plane
            return split, 0, self.split_factors[split][0]
        return 0, self.set_of(weight_plane, plane), self._factor(weight_plane, plane)

    def ones_term(self, plane: int, pixel: int) -> tuple[int, int, int]:
        """Group of warps, register, factor."""
        if self.splits > 1:
            return plane, int(self.ones_register(0, pixel)), self.split_factors[plane][1]
        return 0, int(self.ones_register(plane, pixel)), self.ones_factor(plane)

    def ones_register(self, plane: Index, pixel: Index) -> Index:
        """The register with the bit count for a plane of a warp's pixel."""
        pair, half = pixel % self.pairs, pixel // self.pairs
        if self.counted_by_instruction:
            return (plane * self.pairs + pair) * self.atom.accumulators + half * 2
        return (plane * self.pairs + pair) * self.atom.pixels + half
