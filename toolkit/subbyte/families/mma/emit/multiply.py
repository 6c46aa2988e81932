"""Shared memory to registers to Tensor Cores: the multiplications of one stage.

With ``duplicate_aware="full"`` this is lines 7 to 18 of Algorithm 1 (Choi et al. 2022): a genuine fragment of the
warp is loaded, and unpacked, once, and every tap that uses it takes it from registers. Otherwise each tap loads
(and unpacks) its own.
"""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.device.atoms import LOW_NIBBLES
from subbyte.families.mma.emit.block import Block
from subbyte.families.mma.plan import BLOCK_WORDS
from subbyte.tirx.emit import bind, loop, registers


def begin_sums(block: Block) -> None:
    """The initial sums: 0, or if activations have a zero point, its contribution to each channel's sum."""
    plan = block.plan
    if not plan.zero_point:
        with loop("i", plan.accumulators) as i:
            T.buffer_store(block.accumulators, T.uint32(0), [i])
        return
    first = plan.correction_base + block.column_block * plan.config.columns
    with loop("n", plan.config.warp_col_tiles) as column, loop("i", 2) as i:
        channel = (block.warp_col * plan.config.warp_col_tiles + column) * 8 + block.lane % 4 * 2 + i
        added = registers("correction", 1)
        T.buffer_store(added, T.cast(block.weights[first + channel], "uint32"), [0])
        if plan.config.split_channels > 1:  # the splits are added up later
            T.buffer_store(added, T.Select(block.split == 0, added[0], T.uint32(0)), [0])
        with loop("m", plan.pairs) as pair:
            for half in range(plan.atom.pixels):
                first_sum = (pair * plan.config.warp_col_tiles + column) * plan.atom.accumulators
                T.buffer_store(block.accumulators, added[0], [first_sum + half * 2 + i])


def multiply_stage(block: Block, buffer: Any) -> None:
    """Emit the multiplications of stage buffer ``buffer``: each split handles its own part of the channel blocks."""
    config = block.plan.config
    blocks = config.chunk // config.split_channels
    per_turn = config.unroll * block.plan.atom.blocks
    with loop("cb", blocks // per_turn, T.serial) as turn, loop("u", config.unroll) as u:
        first = block.split * blocks + turn * per_turn + u * block.plan.atom.blocks
        _multiply_blocks(block, buffer * block.plan.stage_words, first)


def _multiply_blocks(block: Block, base: Any, channel_block: Any) -> None:
    """All taps of one instruction's channel blocks."""
    plan = block.plan
    atom = plan.atom
    reuse = plan.config.duplicate_aware == "full"
    held = plan.fragments if reuse else plan.pairs * atom.pixels
    a = registers("a", held * atom.registers)
    b = registers("b", plan.config.warp_col_tiles * atom.registers)
    for r in range(plan.rows_staged):
        if reuse:
            _load_genuine(block, base, channel_block, a, r)
        with loop("s", plan.workload.s) as s:
            _load_weights(block, base, channel_block, b, r * plan.workload.s + s)
            if not reuse:
                _load_tap(block, base, channel_block, a, r, s)
            with loop("m", plan.pairs) as pair, loop("n", plan.config.warp_col_tiles) as column:
                operands = [_held(plan, pair, half, r, s, reuse) for half in range(atom.pixels)]
                _mma(block, pair, column, a, operands, b)


def _held(plan: Any, pair: Any, half: int, r: int, s: Any, reuse: bool) -> Any:
    """Index of the fragment that half ``half`` of an instruction multiplies."""
    if not reuse:
        return pair * plan.atom.pixels + half
    pixel = plan.partner(pair, half)
    return plan.fragment(pixel // plan.warp_tile[1], pixel % plan.warp_tile[1], r, s)


def _load_genuine(block: Block, base: Any, channel_block: Any, a: Any, r: int) -> None:
    """Load the genuine fragments that kernel row ``r`` is the first to need."""
    plan = block.plan
    row, col = block.tile_pixel(0)
    for fragment_row in plan.fresh_rows[r]:
        with loop("f", plan.warp_cols.count) as fragment_col:
            slot = plan.slot(row, col, 0, 0) + plan.fragment_slot(fragment_row, fragment_col)
            held = fragment_row * plan.warp_cols.count + fragment_col
            _load_fragment(block, base, channel_block, slot, a, held)


def _load_tap(block: Block, base: Any, channel_block: Any, a: Any, r: int, s: Any) -> None:
    """Load the fragments of one tap, one for each pixel of the warp."""
    plan = block.plan
    for half in range(plan.atom.pixels):
        with loop("m", plan.pairs) as pair:
            row, col = block.tile_pixel(plan.partner(pair, half))
            held = pair * plan.atom.pixels + half
            _load_fragment(block, base, channel_block, plan.slot(row, col, r, s), a, held)


def _load_fragment(block: Block, base: Any, channel_block: Any, slot: Any, a: Any, held: Any) -> None:
    plan = block.plan
    stored = plan.stored_words
    for part in range(plan.atom.blocks):
        word = ((slot * plan.config.chunk + channel_block + part) * BLOCK_WORDS + block.lane) * stored
        values = _shared_words(block, base + word, stored)
        if stored > 1:
            for i in range(stored):
                T.buffer_store(a, values[i], [held * plan.atom.registers + i])
        else:
            _keep(plan.atom, a, held * plan.atom.registers + part, values[0])


def _shared_words(block: Block, word: Any, count: int) -> Any:
    """``count`` neighbouring words of shared memory, in one load."""
    if block.plan.config.duplicate_aware == "shared":
        # The CUDA compiler would merge a plain load of the same word for another tap with the first one, which
        # is what "full" does; this mode shares in shared memory only.
        loaded = registers("loaded", count)
        width = "" if count == 1 else f"v{count}."
        T.evaluate(
            T.ptx[f"ld.volatile.shared.{width}u32"](*(loaded[i] for i in range(count)), block.shared.ptr_to([word]))
        )
        return loaded
    if count == 1:
        return [block.shared[word]]
    loaded = registers("loaded", count)
    with loop("v", count, T.vectorized) as v:
        T.buffer_store(loaded, block.shared[word + v], [v])
    return loaded


def _load_weights(block: Block, base: Any, channel_block: Any, b: Any, tap: Any) -> None:
    """Load the weight fragments of one tap: a lane loads the words of up to four column tiles at once."""
    plan = block.plan
    atom, vector, together = plan.atom, plan.vector, plan.tiles_together
    groups = plan.config.warp_col_tiles // together // vector
    words = registers("words", vector)
    for part in range(atom.blocks):
        run = ((channel_block + part) * plan.taps_staged + tap) * (plan.column_tiles // together) * BLOCK_WORDS
        with loop("g", groups) as g:
            group = block.warp_col * groups + g
            word = base + plan.activation_words + run + (group * BLOCK_WORDS + block.lane) * vector
            with loop("v", vector, T.vectorized) as v:
                T.buffer_store(words, block.shared[word + v], [v])
            with loop("v", vector) as v:
                if atom.weights_unpacked:
                    _keep_two(atom, b, (g * vector + v) * 2 * atom.registers + part, words[v])
                else:
                    _keep(atom, b, (g * vector + v) * atom.registers + part, words[v])


def _keep(atom: Any, target: Any, index: Any, word: Any) -> None:
    """Store a packed word as the atom needs it: unchanged, or split into two words of signed bytes."""
    if atom.unpacked:
        packed = bind("packed", word)
        T.buffer_store(target, (packed << T.uint32(4)) & T.uint32(LOW_NIBBLES), [index])
        T.buffer_store(target, packed & T.uint32(LOW_NIBBLES), [index + 1])
    else:
        T.buffer_store(target, word, [index])


def _keep_two(atom: Any, target: Any, index: Any, word: Any) -> None:
    """Split a word of weights into bytes of two neighbouring column tiles, each times 16."""
    packed = bind("packed", word)
    T.buffer_store(target, (packed << T.uint32(4)) & T.uint32(LOW_NIBBLES), [index])
    T.buffer_store(target, packed & T.uint32(LOW_NIBBLES), [index + atom.registers])


def _mma(block: Block, pair: Any, column: Any, a: Any, operands: list[Any], b: Any) -> None:
    """One matrix instruction. A's registers go by channel half first, then by pixel (PTX ISA, mma.m16n8k32)."""
    plan, atom = block.plan, block.plan.atom
    first = (pair * plan.config.warp_col_tiles + column) * atom.accumulators
    acc = [block.accumulators[first + i] for i in range(atom.accumulators)]
    rows = [a[held * atom.registers + i] for i in range(atom.registers) for held in operands]
    cols = [b[column * atom.registers + i] for i in range(atom.registers)]
    T.evaluate(T.ptx[atom.ptx](*acc, *rows, *cols, *acc))
