"""The plan of a kernel on fragments of bit planes: launch and buffer layouts, computed without TVM."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

from subbyte.device.launch import Argument, Launch
from subbyte.families.shared.axis import Index
from subbyte.families.shared.planes.geometry import FRAGMENT_WORDS, IMAGE_WORDS, PlaneGeometry
from subbyte.numerics.thresholds import THRESHOLDS
from subbyte.workload.conv import BATCH_GROUP
from subbyte.workload.precision import SUMS


@dataclass(frozen=True)
class PlanePlan(PlaneGeometry):
    """Everything about one kernel that is known before its code is generated."""

    product: ClassVar[str] = "instruction"
    """What a product of fragments is called."""

    @property
    def kind(self) -> str:
        """The family's name, which is the prefix of its word layouts."""
        return self.config.prefix.rstrip("-")

    @property
    def parameter_form(self) -> str:
        """The form of the parameters."""
        return THRESHOLDS

    @property
    def operand_form(self) -> str:
        """Everything that determines the words of weights and parameters, as text."""
        return f"{self.kind} {self.workload.spec} {self.config.key} {self.arch.name} {self.output}"

    @property
    def form(self) -> str:
        """Layout of activations and outputs in memory."""
        return f"{self.config.layout}.planes"

    @property
    def slice_words(self) -> int:
        """Words of the weights of a block's channels; if sums are the output the table follows them."""
        return self.iterations * self.weight_words + (self.table_words if self.output == SUMS else 0)

    # ---- the sums of a thread ---------------------------------------------------------------------------------------

    @property
    def warp_planes(self) -> tuple[int, int]:
        """Planes of weights and of activations that a warp multiplies."""
        return self.weight_planes, self.planes

    @property
    def equal_bits(self) -> bool:
        """Whether equal bits are counted, including those set in neither operand; otherwise differing ones are
        counted."""
        return False

    @property
    @abstractmethod
    def stage_products(self) -> tuple[int, int]:
        """Products of fragments of a warp per stage: with weights, and with ones alone."""

    @abstractmethod
    def pair_term(self, weight_plane: int, plane: int) -> tuple[int, int, int]:
        """Where a pair of planes is counted: group of warps, set of counts, and factor."""

    @abstractmethod
    def ones_term(self, plane: int, pixel: int) -> tuple[int, int, int]:
        """Where the bits of a plane of a warp's pixel are counted: group of warps, register, factor."""

    # ---- global memory --------------------------------------------------------------------------------------------

    def _pixel(self, group: Index, y: Index, x: Index, image: Index, size: tuple[int, int]) -> Index:
        """Index of a pixel over all groups of images, or over all images."""
        which = group if self.config.layout == "nhwcnc" else group * BATCH_GROUP + image
        return (which * size[0] + y) * size[1] + x

    def activation_word(self, group: Index, y: Index, x: Index, block: Index, plane: Index, image: Index) -> Index:
        """Index of the first of the four words of 128 channels of one pixel of one image in a plane."""
        w, packed = self.view, self.config.layout == "nhwcnc"
        pixel = self._pixel(group, y, x, image, (w.h, w.w))
        part = (pixel * self.channel_blocks + block) * self.planes + plane
        return part * FRAGMENT_WORDS + image * IMAGE_WORDS if packed else part * IMAGE_WORDS

    def output_word(self, group: Index, p: Index, q: Index, word: Index, plane: Index, image: Index) -> Index:
        """Index of an output word of 32 channels."""
        w, packed = self.view, self.config.layout == "nhwcnc"
        pixel = self._pixel(group, p, q, image, (w.p, w.q))
        part = (pixel * self.filter_blocks + word // IMAGE_WORDS) * self.output_planes + plane
        first = part * FRAGMENT_WORDS + image * IMAGE_WORDS if packed else part * IMAGE_WORDS
        return first + word % IMAGE_WORDS

    def output_sum(self, group: Index, p: Index, q: Index, channel: Index, image: Index) -> Index:
        """Index of a raw sum."""
        w, block = self.view, self.view.precision.output.block
        pixel = self._pixel(group, p, q, image, (w.p, w.q))
        if self.config.layout != "nhwcnc":
            return pixel * w.padded_filters + channel
        part = (pixel * w.filter_blocks + channel // block) * BATCH_GROUP + image
        return part * block + channel % block

    # ---- launch ---------------------------------------------------------------------------------------------------

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.view
        images = w.batch_groups * BATCH_GROUP
        activations = images * w.h * w.w * self.channel_blocks * self.planes * IMAGE_WORDS
        arguments = [Argument("A", "uint32", (activations,), "in", self.form)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (images * w.p * w.q * w.padded_filters,), "out", self.form))
        else:
            words = images * w.p * w.q * self.pixel_words * self.output_planes
            arguments.append(Argument("Out", "uint32", (words,), "out", self.form))
            table = self.column_blocks * self.table_words
            arguments.append(Argument("Prm", "int32", (table,), "in", self.operand_form))
        weights = self.column_blocks * self.slice_words
        arguments.append(Argument("Wt", "uint32", (weights,), "in", self.operand_form))
        grid = (w.batch_groups * prod(self.pixel_tiles), self.column_blocks, 1)
        return Launch("conv_kernel", grid, (self.threads, 1, 1), self.shared_bytes, tuple(arguments))

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return prod(self.launch.grid)

    @property
    def missing_words(self) -> int:
        """Output words of a pixel beyond those of all blocks: they hold padding channels."""
        return max(0, self.pixel_words - self.column_blocks * self.words)

    @property
    def missing_sums(self) -> int:
        """The same for sums."""
        return max(0, self.view.padded_filters - self.column_blocks * self.columns)
