"""The plan of a kernel on one-bit products: sizes, launch and buffer layouts, computed without TVM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.families.bits.config import PAIRS, PLAIN
from subbyte.families.bits.geometry import BitsGeometry
from subbyte.families.bits.pixel_blocks import block_size, blocked
from subbyte.numerics.pixel_blocks import BlockForm
from subbyte.numerics.residual import FORMS, residual_elements
from subbyte.numerics.thresholds import LINE, THRESHOLDS
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS

NHWCNC, NHWCNC_PLANES = "nhwcnc", "nhwcnc.planes"


@dataclass(frozen=True)
class BitsPlan(BitsGeometry):
    """Everything about one kernel of the bits family that is known before its code is generated."""

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        if self.whole_values:
            kind = "s8" if self.workload.precision.activations.least < 0 else "u8"
            ptx = f"wgmma.mma_async.sync.aligned.m64n{self.n}k32.s32.{kind}.s8"
            return Atom(f"{kind}.wgmma.m64n{self.n}k32", ptx, 8, 1, False, 90)
        ptx = f"wgmma.mma_async.sync.aligned.m64n{self.n}k256.s32.b1.b1.and.popc"
        return Atom(f"b1.wgmma.m64n{self.n}k256", ptx, 8, 1, False, 90)

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return PAIRS if self.config.paired_rows else PLAIN

    @property
    def parameter_form(self) -> str:
        """The form of the parameters."""
        return LINE if self.by_line else THRESHOLDS

    @property
    def threads(self) -> int:
        """Threads per block: the consumers, and a copying warp, or a warpgroup that also counts."""
        return 128 * self.config.consumers + (128 if self.config.counted else 32)

    @property
    def places(self) -> int:
        """Number of blocks with different pixels."""
        return self.view.batch_groups * self.segments * self.config.row_parts

    @property
    def operand_form(self) -> str:
        """Everything that determines the words of weights and parameters, as text: workload, schedule and output."""
        parts = ("bits", self.workload.spec, self.config.key, self.output, *([LINE] if self.by_line else []))
        return " ".join(parts)

    @property
    def slice_words(self) -> int:
        """Words of a block's weights; if sums are the output the table follows them."""
        return self.weight_bytes // 4 + (self.table_words if self.output == SUMS else 0)

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments, in order of their names, which is TVM's order."""
        w = self.view
        groups = w.batch_groups
        activations = groups * self.image_rows * w.w * self.channel_blocks * self.planes * 32
        arguments = [Argument("A", "uint32", (activations,), "in", self._input_form)]
        if self.output == SUMS:
            sums = groups * BATCH_GROUP * w.p * w.q * w.padded_filters
            arguments.append(Argument("Out", "int32", (sums,), "out", NHWCNC_PLANES))
        else:
            words = groups * self.stored_outputs
            arguments.append(Argument("Out", "uint32", (words,), "out", _form(self.paired_output)))
            table = self.slices * self.table_words
            arguments.append(Argument("Prm", "int32", (table,), "in", self.operand_form))
            if self.fusion.residual:
                bits = self.fusion.residual_bits
                by = self.fusion.residual_pool
                added = residual_elements(w.n, w.p * by, w.q * by, self.fusion.residual) * bits // 32
                arguments.append(Argument("Res", "uint32", (added,), "in", FORMS[bits]))
            if self.fusion.keep:
                bits = self.fusion.keep_bits
                windows = self.fusion.keep_pool
                kept = residual_elements(w.n, w.p // windows, w.q // windows, w.k) * bits // 32
                arguments.append(Argument("Sum", "uint32", (kept,), "out", FORMS[bits]))
        arguments.append(Argument("Wt", "uint32", (self.slices * self.slice_words,), "in", self.operand_form))
        return Launch(
            "conv_kernel", (self.slices * self.places, 1, 1), (self.threads, 1, 1), self.shared_bytes,
            tuple(arguments), 1, bool(self.config.dependent_launch),
        )  # fmt: skip

    @property
    def _input_form(self) -> str:
        """The activations' layout in memory."""
        if not self.whole_values:
            return _form(self.paired_rows)
        view = blocked(self.workload)
        if view == self.workload:
            return NHWCNC
        return BlockForm(block_size(self.workload), self.workload.pad, view.h, view.w).text


def _form(paired: bool) -> str:
    return PAIRS if paired else NHWCNC_PLANES
