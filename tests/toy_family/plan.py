"""What is known of a kernel before it is generated, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.launch import Argument, Launch
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.precision import SUMS
from toy_family.config import ToyConfig
from toy_family.types import CHANNELS, PER_WORD, WORDS, other_types

MULTIPLY = Atom("u2.imad", "", 1, 1, False, 75)
"""An ordinary multiply-add."""


@dataclass(frozen=True)
class ToyPlan:
    """A kernel of the toy family. Index functions take Python or TIRx integers."""

    workload: ConvWorkload
    config: ToyConfig
    arch: Arch
    output: str
    clip: tuple[int, int]
    requant: str = "fixed"
    atom: Atom = MULTIPLY
    shared_bytes: int = 0

    @property
    def tile(self) -> tuple[int, int]:
        """One pixel."""
        return 1, 1

    @property
    def columns(self) -> int:
        """Output channels of a thread, whose neighbours have others."""
        return PER_WORD * self.config.words

    @property
    def layout(self) -> str:
        """Of activations and outputs."""
        return self.config.layout

    @property
    def parameter_form(self) -> str:
        """One multiplication where it is exact."""
        return "fixed0" if self.requant == "fixed" else "general"

    @property
    def images(self) -> int:
        """With those that fill up the last group of 8."""
        return self.workload.batch_groups * BATCH_GROUP

    @property
    def groups(self) -> int:
        """Threads that share the output words of a pixel."""
        return self.workload.filter_blocks * WORDS // self.config.words

    @property
    def work(self) -> int:
        """Threads with something to compute."""
        return self.images * self.workload.p * self.workload.q * self.groups

    def word(self, height: int, width: int, blocks: int, image: Any, y: Any, x: Any, word: Any) -> Any:
        """Index of a word of a pixel of an image, in a tensor of so many rows, columns and blocks of channels."""
        if self.layout == "nhwc":
            return ((image * height + y) * width + x) * (blocks * WORDS) + word
        pixel = (image // BATCH_GROUP * height + y) * width + x
        return ((pixel * blocks + word // WORDS) * BATCH_GROUP + image % BATCH_GROUP) * WORDS + word % WORDS

    def sum_place(self, image: Any, p: Any, q: Any, word: Any, channel: int) -> Any:
        """Index of a raw sum: of one of the 16 channels of an output word."""
        w = self.workload
        return self.word(w.p, w.q, w.filter_blocks, image, p, q, word) * PER_WORD + channel

    @cached_property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        w = self.workload
        out = self.images * w.p * w.q * w.filter_blocks * WORDS
        arguments = [Argument("A", "uint32", (self.images * w.h * w.w * w.channel_blocks * WORDS,), "in", self.layout)]
        if self.output == SUMS:
            arguments.append(Argument("Out", "int32", (out * PER_WORD,), "out", self.layout))
        else:
            arguments.append(Argument("Out", "uint32", (out,), "out", self.layout))
            arguments.append(Argument("Prm", "int32", (3 * w.padded_filters,), "in", self.parameter_form))
        weights = w.filter_blocks * CHANNELS * w.r * w.s * w.channel_blocks * WORDS
        arguments.append(Argument("Wt", "uint32", (weights,), "in", "toy"))
        grid = (ceil_div(self.work, self.config.threads), 1, 1)
        return Launch("conv_kernel", grid, (self.config.threads, 1, 1), 0, tuple(arguments))


def why_not(plan: ToyPlan) -> str | None:
    """Why a plan cannot be built ("kind: details"), None when it can."""
    if reason := other_types(plan.workload):
        return reason
    if plan.config.threads % 32:
        return f"threads: {plan.config.threads} are no whole warps"
    if WORDS % plan.config.words:
        return f"words: {plan.config.words} of {WORDS} in a block of channels leave a rest"
    return None
