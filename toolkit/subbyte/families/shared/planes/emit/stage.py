"""The source of fragments: stages in shared memory, or global memory directly."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm.script import tirx as T

from subbyte.families.shared.planes.emit.block import Block, fill_word
from subbyte.families.shared.planes.geometry import GROUP_TILES, IMAGE_WORDS
from subbyte.tirx import instructions as op
from subbyte.tirx.copies import each_copy
from subbyte.tirx.emit import bind, loop
from subbyte.workload.conv import BATCH_GROUP

COPY_WORDS = 4


class Staged:
    """Operands of one stage in shared memory."""

    def __init__(self, block: Block, buffer: Any) -> None:
        self.block, self.base = block, buffer * block.plan.stage_words

    def activation(self, into: Any, at: Any, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any]) -> None:
        """A lane's word of a fragment: ``pixel`` of the warp, ``tap`` within the stage, channel block and plane."""
        T.buffer_store(into, self.block.shared[self._fragment(pixel, tap, part) + self.block.lane], [at])

    def image_row(self, into: Any, at: Any, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any]) -> None:
        """All four words of the lane's image."""
        first = self._fragment(pixel, tap, part) + self.block.image * IMAGE_WORDS
        with loop("v", IMAGE_WORDS, T.vectorized) as v:
            T.buffer_store(into, self.block.shared[first + v], [at + v])

    def _fragment(self, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any]) -> Any:
        plan = self.block.plan
        slot = plan.slot(*self.block.tile_pixel(pixel), *tap)
        return self.base + slot * plan.slot_words + (part[0] * plan.planes + part[1]) * BATCH_GROUP * IMAGE_WORDS

    def weights(self, into: Any, at: Any, place: Any, offset: Any) -> None:
        """Four words of the weights at ``place`` in the stage (:meth:`PlanePlan.weight_place`)."""
        first = self.base + self.block.plan.activation_words + place + offset
        with loop("v", GROUP_TILES, T.vectorized) as v:
            T.buffer_store(into, self.block.shared[first + v], [at + v])


class Direct:
    """The same operands in global memory."""

    def __init__(self, block: Block, iteration: Any) -> None:
        self.block, self.iteration = block, iteration
        self.row, self.chunk = block.plan.step(iteration)

    def activation(self, into: Any, at: Any, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any]) -> None:
        """A lane's word of a fragment, or padding outside the image."""
        lane = self.block.lane
        source, inside, channels = self._place(pixel, tap, part, lane // IMAGE_WORDS)
        with T.If(inside):
            with T.Then():
                T.buffer_store(into, self.block.activations[source + lane % IMAGE_WORDS], [at])
            with T.Else():
                T.buffer_store(into, fill_word(self.block.plan, channels, part[1], lane % IMAGE_WORDS), [at])

    def image_row(self, into: Any, at: Any, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any]) -> None:
        """All four words of the lane's image."""
        source, inside, channels = self._place(pixel, tap, part, self.block.image)
        with T.If(inside):
            with T.Then(), loop("v", IMAGE_WORDS, T.vectorized) as v:
                T.buffer_store(into, self.block.activations[source + v], [at + v])
            with T.Else():
                for word in range(IMAGE_WORDS):
                    T.buffer_store(into, fill_word(self.block.plan, channels, part[1], word), [at + word])

    def _place(self, pixel: Any, tap: tuple[Any, Any], part: tuple[Any, Any], image: Any) -> tuple[Any, Any, Any]:
        plan, w = self.block.plan, self.block.plan.view
        y, x = self.block.input_pixel(*self.block.tile_pixel(pixel), self.row + tap[0], tap[1])
        y, x = bind("y", y), bind("x", x)
        inside = T.And(T.And(y >= 0, y < w.h), T.And(x >= 0, x < w.w))
        channels = self.chunk * plan.config.chunk + part[0]
        return plan.activation_word(self.block.group, y, x, channels, part[1], image), inside, channels

    def weights(self, into: Any, at: Any, place: Any, offset: Any) -> None:
        """Four words of the weights."""
        plan = self.block.plan
        first = self.block.slice_ * plan.slice_words + self.iteration * plan.weight_words + place + offset
        op.load16(into, at, self.block.weights.ptr_to([first]), "weights")


def load_stage(block: Block, buffer: Any, iteration: Any) -> None:
    """Emit the copies of an iteration into a stage buffer."""
    plan = block.plan
    kernel_row, chunk = plan.step(iteration)
    base = buffer * plan.stage_words
    all_threads = partial(each_copy, plan.threads, block.thread)
    all_threads(plan.activation_words // COPY_WORDS, lambda i: _activation(block, base, kernel_row, chunk, i))
    source = block.slice_ * plan.slice_words + iteration * plan.weight_words
    first = base + plan.activation_words
    copies = plan.weight_words // COPY_WORDS
    all_threads(copies, lambda i: _copy16(block, first + i * COPY_WORDS, block.weights, source + i * COPY_WORDS))


def _activation(block: Block, base: Any, kernel_row: Any, chunk: Any, index: Any) -> None:
    """Copy 16 bytes, the 128 channels of an image in a plane, or write padding outside the image."""
    plan, w = block.plan, block.plan.view
    image, part = index % BATCH_GROUP, index // BATCH_GROUP
    plane, part = part % plan.planes, part // plan.planes
    slot, channels = part // plan.config.chunk, chunk * plan.config.chunk + part % plan.config.chunk
    down, right = slot // plan.cols.count * plan.rows.unit, slot % plan.cols.count * plan.cols.unit
    y = bind("y", block.row0 * w.stride + kernel_row * w.dilation + down - w.pad)
    x = bind("x", block.col0 * w.stride + right - w.pad)
    inside = bind("inside", T.And(T.And(y >= 0, y < w.h), T.And(x >= 0, x < w.w)))
    source = plan.activation_word(block.group, y, x, channels, plane, image)
    target = base + index * COPY_WORDS
    if plan.arch.async_copy and not plan.counts.form.fill:
        _copy16(block, target, block.activations, source, T.Select(inside, T.uint32(16), T.uint32(0)))
        return
    with T.If(inside):
        with T.Then():
            _copy16(block, target, block.activations, source)
        with T.Else():
            words = [fill_word(plan, channels, plane, word) for word in range(IMAGE_WORDS)]
            for word in range(IMAGE_WORDS):
                T.buffer_store(block.shared, words[word], [target + word])


def _copy16(block: Block, target: Any, buffer: Any, source: Any, valid: Any = None) -> None:
    """Copy four words to shared memory; only ``valid`` bytes are read, the others become 0."""
    if block.plan.arch.async_copy:
        operands = [block.shared.ptr_to([target]), buffer.ptr_to([source]), 16]
        T.evaluate(T.ptx["cp.async.cg.shared.global"](*operands, *([] if valid is None else [valid])))
        return
    with loop("v", COPY_WORDS, T.vectorized) as v:
        T.buffer_store(block.shared, buffer[source + v], [target + v])
