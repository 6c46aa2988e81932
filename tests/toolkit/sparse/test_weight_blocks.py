"""Weights pruned to blocks, drawn with blocks of zeros, and listed for kernels: each beside its own reading of them."""

import numpy as np
import pytest

import subbyte
from subbyte import sparse
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.blocks.weights import prepare_listed_weights
from subbyte.families.wgmma.listed import HEAD_WORDS, LISTED_WORDS, ListForm
from subbyte.numerics import random_values
from subbyte.workload.operand import Operand

SHAPES = ((200, 3, 3, 96), (64, 1, 1, 32), (70, 2, 3, 33), (128, 40))
SHARES = (0, 0.1, 0.25, 0.5, 1)


def live(w):
    """Which blocks are not all zero, one by one."""
    tiles, parts = -(-w.shape[0] // 64), -(-w.shape[-1] // 32)
    taps = w.reshape(w.shape[0], -1, w.shape[-1])
    return np.array([
        [[np.any(taps[64 * i : 64 * i + 64, tap, 32 * j : 32 * j + 32]) for j in range(parts)]
         for tap in range(taps.shape[1])] for i in range(tiles)
    ])  # fmt: skip


def test_pruning_keeps_the_strongest_blocks_of_every_64_filters():
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        w = rng.standard_normal(shape)
        for share in SHARES:
            found = sparse.prune(w, f"blocks:{share}")
            kept = live(found)
            counts = kept.reshape(kept.shape[0], -1).sum(1)
            assert counts.sum() == -(-kept.size * round(100 * share) // 100)
            assert np.ptp(counts) <= 1
            assert np.array_equal(found, np.where(found != 0, w, 0))
            size = np.array([np.sum(w[64 * i : 64 * i + 64] ** 2) for i in range(kept.shape[0])])
            left = np.array([np.sum((w - found)[64 * i : 64 * i + 64] ** 2) for i in range(kept.shape[0])])
            assert (left <= size * (1 - counts / kept[0].size) + 1e-9).all()  # what goes is weaker than the mean
            sparse.check_live_blocks(found, f"blocks:{share}")


def test_random_weights_have_as_many_live_blocks_as_their_type_allows():
    for shape in SHAPES:
        for share in SHARES:
            one = Operand(4, sparsity=f"blocks:{share}")
            drawn = random_values(one, shape, np.random.default_rng(2))
            counts = live(drawn)
            assert counts.sum() == -(-counts.size * one.live_percent // 100)
            assert Operand.named(one.name) == one
            if share == 1:
                assert {drawn.min(), drawn.max()} == {-8, 7}


@pytest.mark.parametrize("pairs", [1, 3])
def test_a_list_read_back_gives_the_weights(pairs):
    """By its documented layout: heads, places, and where a thread's nibbles belong."""
    w = sparse.prune(np.random.default_rng(3).integers(-8, 8, (136, 3, 2, 70)).astype(np.int8), "blocks:0.4")
    how = ListForm(pairs, 4, 40, 1000, 7, 100)
    words = prepare_listed_weights(w, how.text)
    assert words.shape == (how.words,)
    heads = words[: 4 * HEAD_WORDS].reshape(4, HEAD_WORDS)
    lists = words[4 * HEAD_WORDS :].reshape(-1, LISTED_WORDS)
    found = np.zeros((256, 3, 2, 96), np.int8)
    for tile, (first, *before) in enumerate(heads[:, :5].tolist()):
        assert before == np.concatenate([[0], np.cumsum(live_rows(w, tile))]).tolist()
        for number in range(before[3]):
            fragment, half = lists[first + number // 2], number % 2
            place = int(fragment[512 + half])
            row, rest = place >> 24, (place & 0xFFFFFF) - 1000 * (place >> 24)
            column, block = rest // 100, rest % 100 // 7
            for thread in range(128):
                warp, g, q = thread // 32, thread % 32 // 4, thread % 4
                for i in range(4):
                    nibbles = int(fragment[4 * thread + i]) >> 4 * half
                    for byte in range(4):
                        value = (nibbles >> 8 * byte & 15) ^ 8
                        filter_ = 64 * tile + 16 * warp + 2 * g + i % 2
                        found[filter_, row, column, 32 * block + 8 * q + 2 * byte + i // 2] = value - 8
    assert np.array_equal(found[:136, :, :, :70], w)
    assert not found[136:].any()


def live_rows(w, tile):
    counts = live(w)
    return counts[tile].reshape(3, -1).sum(1) if tile < len(counts) else np.zeros(3, int)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda w: sparse.prune(w, "blocks"), "the share of live blocks from 0 to 1"),
        (lambda w: sparse.prune(w, "blocks:1.5"), "the share of live blocks from 0 to 1"),
        (lambda w: sparse.prune(w[0, 0, 0], "blocks:0.5"), "blocks need filters as the first axis"),
        (lambda w: sparse.check_live_blocks(w, "2:4"), "expected 'blocks:'"),
        (lambda w: sparse.check_live_blocks(w, "blocks:0.5"), r"weights\[64:70, 0, 0, 0:32\] is one too many"),
        (lambda w: subbyte.workload("n8h6w8c64k64r3s3p1:w4a4:signed.signed-blocks50"), "blocks of zeros are those of"),
        (lambda w: Operand(1, "bipolar", sparsity="blocks:0.5"), "bipolar values are never 0"),
    ],
)
def test_wrong_requests_end_in_one_sentence(ask, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        ask(np.ones((70, 3, 1, 33), np.int8))
    assert "\n" not in str(caught.value)
