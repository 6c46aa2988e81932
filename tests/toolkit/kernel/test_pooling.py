"""Pooling kernels: every value against a loop over pixels, in the emulator with all its checks; alone and in chains."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import subbyte
from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import InvalidInput, Unsupported, WrongResult
from subbyte.families import config_from_key
from subbyte.kernel import Chain, Pooling, PoolKernel
from subbyte.kernel.execute import random_operands
from subbyte.kernel.operands import activation_words
from subbyte.kernel.pool.text import pool_kernel_of, pool_kernel_text
from subbyte.numerics import Requantization, random_values, reference
from subbyte.numerics.pooling import pooling_reference
from subbyte.workload import linear

CASES = [
    (Pooling("max", 3, 2, 1), (9, 7, 6, 40), "int4", "nhwcnc"),
    (Pooling("max", (2, 3), 1), (3, 4, 5, 7), "uint4", "nhwc"),
    (Pooling("average", 3, 1, 1), (3, 5, 4, 33), "int4", "nhwc"),
    (Pooling("average", (4, 3), 2, 1, count_padding=False), (8, 6, 7, 7), "uint4", "nhwcnc"),
    (Pooling("average", 2, count_padding=False, padding=1), (2, 5, 5, 8), "int4", "nhwcnc"),
    (Pooling.over(7, 5), (5, 7, 5, 64), "int4", "nhwcnc"),
    (Pooling("max", 3, 2, 1), (9, 7, 6, 20), "int8", "nhwcnc"),
    (Pooling("max", (2, 3), 1, ceil_mode=True), (3, 4, 5, 7), "uint8", "nhwc"),
    (Pooling("average", 3, 2, 1, ceil_mode=True), (3, 6, 8, 33), "int8", "nhwc"),
    (Pooling("average", (4, 3), 3, 1, count_padding=False, ceil_mode=True), (8, 6, 7, 7), "uint8", "nhwcnc"),
    (Pooling.over(17, 16), (2, 17, 16, 5), "uint8", "nhwcnc"),  # two sums of 16 bits would not hold them
    (Pooling("average", 4, 3, 1, ceil_mode=True), (2, 7, 8, 8), "int4", "nhwcnc"),
    (Pooling("max", 2, 2, 1, ceil_mode=True), (1, 5, 6, 8), "uint4", "nhwcnc"),
    (Pooling("average", 3, 2, 1), (3, 5, 6, 40), "offset4-z3", "nhwcnc"),
    (Pooling("average", 3, 2, 1, ceil_mode=True), (2, 6, 5, 20), "offset8-z37", "nhwc"),
    (Pooling("max", 3, 2, 1), (2, 5, 6, 20), "offset8-z200", "nhwcnc"),
    (Pooling("average", (4, 3), 2, 1, count_padding=False), (2, 6, 7, 20), "int8-z-5", "nhwcnc"),
    (Pooling("average", 2, 2, 1), (2, 5, 6, 8), "int4-z7", "nhwcnc"),
]


def by_hand(pooling: Pooling, x: np.ndarray) -> np.ndarray:
    """Pixel by pixel in Python's integers, of all channels and images at once."""
    (rows, cols), stride, pad = pooling.size, pooling.stride, pooling.padding
    n, height, width, c = x.shape
    p_starts, q_starts = (
        [start for start in range(-pad, size + pad, stride)
         if start + window <= size + pad
         or (pooling.ceil_mode and start - stride + window < size + pad and start < size)]
        for size, window in ((height, rows), (width, cols))
    )  # fmt: skip
    found = np.zeros((n, len(p_starts), len(q_starts), c), x.dtype)
    for p, q in np.ndindex(found.shape[1:3]):
        inside = [
            x[:, y, z].astype(int)
            for y in range(p_starts[p], p_starts[p] + rows)
            for z in range(q_starts[q], q_starts[q] + cols)
            if 0 <= y < height and 0 <= z < width
        ]
        if pooling.kind == "max":
            found[:, p, q] = np.maximum.reduce(inside)
        else:
            padded = [min(start + window, size + pad) - start
                      for start, window, size in ((p_starts[p], rows, height), (q_starts[q], cols, width))]  # fmt: skip
            count = padded[0] * padded[1] if pooling.count_padding else len(inside)
            found[:, p, q] = np.floor(sum(inside) / count + 0.5)
    return found


def values_of(kernel: PoolKernel, seed: int = 0) -> np.ndarray:
    wl = kernel.workload
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), np.random.default_rng(seed))
    x[0], x[-1] = wl.precision.activations.least, wl.precision.activations.largest
    return x


def checked(kernel: PoolKernel, x: np.ndarray, text: str) -> np.ndarray:
    """What a text writes over a poison, from a run without findings."""
    out = np.full(kernel.argument("Out").shape, 0x5A5A5A5A, np.uint32)
    words = activation_words(kernel.argument("A"), kernel.workload, x)
    require_clean(run_cuda(text, kernel.launch, {"A": words, "Out": out}))
    return out


@pytest.mark.parametrize(("pooling", "shape", "operand", "layout"), CASES, ids=lambda one: getattr(one, "key", None))
def test_every_value_is_right(pooling: Pooling, shape: tuple[int, ...], operand: str, layout: str) -> None:
    kernel = pooling.kernel(shape, operand=operand, layout=layout)
    x = values_of(kernel)
    right = by_hand(pooling, x)
    given = pooling_reference(
        x, pooling.kind, pooling.size, pooling.stride, pooling.padding, pooling.count_padding, pooling.ceil_mode
    )
    np.testing.assert_array_equal(given, right)
    words = checked(kernel, x, kernel.cuda)
    np.testing.assert_array_equal(kernel.unpack(words), right)
    channels = kernel.workload.padded_filters
    filled = replace(kernel.workload, n=8 * kernel.workload.batch_groups, c=channels, k=channels)
    whole = replace(kernel, plan=replace(kernel.plan, workload=filled)).unpack(words)
    if not kernel.workload.precision.output.zero_point:  # what fills up has the code 0, which is no value 0 then
        assert not whole[shape[0] :].any()
        assert not whole[..., shape[3] :].any()


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (0, "^ (uint)2290649224", "^ (uint)0"),  # signs are compared as they are
        (0, "(larger >> (uint)4)", "(larger >> (uint)3)"),
        (2, "* (uint)2", "* (uint)3"),
        (6, "^ (uint)2155905152", "^ (uint)0"),
        (6, "(larger >> (uint)8)", "(larger >> (uint)7)"),
        (8, ">> (uint)16", ">> (uint)15"),
        (8, "min(3, (7 - ", "min(3, (8 - "),  # what hangs over the padding counts
        (13, "((uint)63 - (count * (uint)6))", "(uint)9"),  # the padding holds the code 0 in place of the zero point's
    ],
)
def test_a_planted_fault_is_noticed(number: int, old: str, new: str) -> None:
    pooling, shape, operand, layout = CASES[number]
    kernel = pooling.kernel(shape, operand=operand, layout=layout)
    assert old in kernel.cuda
    x = values_of(kernel)
    found = kernel.unpack(checked(kernel, x, kernel.cuda.replace(old, new)))
    assert (found != by_hand(pooling, x)).any()


def test_a_read_beyond_the_tensor_is_noticed() -> None:
    pooling, shape, operand, layout = CASES[2]
    kernel = pooling.kernel(shape, operand=operand, layout=layout)
    text = kernel.cuda.replace("< 5)", "< 6)")
    assert text != kernel.cuda
    with pytest.raises(WrongResult):
        checked(kernel, values_of(kernel), text)


def requantized(kernel: subbyte.Kernel, seed: int) -> tuple[np.ndarray, Requantization]:
    _, w, requant = random_operands(kernel, seed)
    assert isinstance(requant, Requantization)
    return w, requant


@pytest.fixture(scope="module")
def chain() -> tuple[Chain, np.ndarray, np.ndarray]:
    """Convolution, max-pooling, a residual block, the mean of the map, a fully connected layer; input and logits."""
    key = config_from_key("brw2-bcw1-wrt2-wct4-ch1-ri0")
    first = subbyte.build("n9h8w6c40k40r3s3p1", key)
    plain = subbyte.build("n9h4w3c40k40r3s3p1", key)
    adding = subbyte.build("n9h4w3c40k40r3s3p1", key, output="int4+addint4")
    last = subbyte.build(linear(9, 40, 33), config_from_key("brw1-bcw1-wrt1-wct1-ch1-ri0"), output="int32")
    drawn = [requantized(kernel, seed) for seed, kernel in enumerate((first, plain, adding))]
    w = random_operands(last, 3)[1]
    made = Chain(
        [first, Pooling("max", 3, 2, 1), plain, adding, Pooling.over(4, 3), last],
        [drawn[0][0], None, drawn[1][0], drawn[2][0], None, w],
        [drawn[0][1], None, drawn[1][1], drawn[2][1], None, None],
        [None, None, None, 1, None, None],
    )
    x = random_operands(first, 7)[0]
    y = drawn[0][1].apply(reference(first.workload, x, drawn[0][0]))
    pooled = by_hand(Pooling("max", 3, 2, 1), y)
    y = drawn[1][1].apply(reference(plain.workload, pooled, drawn[1][0]))
    y = drawn[2][1].apply(reference(adding.workload, y, drawn[2][0]), pooled)
    mean = by_hand(Pooling.over(4, 3), y)
    assert len(np.unique(mean)) > 4
    return made, x, reference(last.workload, mean, w)


def test_a_network_with_pooling_gives_the_reference_every_way(
    chain: tuple[Chain, np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    made, x, right = chain
    np.testing.assert_array_equal(made.run(x, device="emulator"), right)
    np.testing.assert_array_equal(made.on_device("emulator")(x), right)
    loaded = subbyte.load_chain(made.save(tmp_path / "chain.safetensors"))
    assert [one["config"] for one in loaded.layers][1] == "max3x3u2p1"
    np.testing.assert_array_equal(loaded.run(x, device="emulator"), right)


def test_a_chain_pools_bytes(tmp_path: Path) -> None:
    """Behind a layer of 8-bit values; the text of its pooling kernel names it."""
    first = subbyte.build("n9h6w5c20k20r1s1p0:w8a8", config_from_key("brw1-bcw1-wrt2-wct1-ch2-ri0"))
    w, requant = requantized(first, 0)
    pooling = Pooling("average", 2, 2, ceil_mode=True)
    chain = Chain([first, pooling], [w, None], [requant, None])
    x = random_operands(first, 2)[0]
    right = by_hand(pooling, requant.apply(reference(first.workload, x, w)))
    assert right.dtype == np.uint8
    assert len(np.unique(right)) > 100
    np.testing.assert_array_equal(chain.run(x, device="emulator"), right)
    np.testing.assert_array_equal(chain.on_device("emulator")(x), right)
    loaded = subbyte.load_chain(chain.save(tmp_path / "chain.safetensors"))
    np.testing.assert_array_equal(loaded.run(x, device="emulator"), right)
    assert pool_kernel_of(pool_kernel_text(chain.kernels[1])) == chain.kernels[1]


def test_a_map_is_flattened_by_a_kernel_as_large_as_it() -> None:
    layer = linear(3, 40, 10, 4, 3)
    rng = np.random.default_rng(5)
    x = rng.integers(-8, 8, (3, 4, 3, 40), dtype=np.int8)
    w = rng.integers(-8, 8, (10, 4, 3, 40), dtype=np.int8)
    right = x.reshape(3, -1).astype(np.int32) @ w.reshape(10, -1).T.astype(np.int32)
    found = subbyte.build(layer, arch="sm_80", output="int32").run(x, w, device="emulator")
    np.testing.assert_array_equal(found.reshape(3, 10), right)


def test_a_kernel_alone_runs_on_values_and_words() -> None:
    pooling, shape, operand, layout = CASES[0]
    kernel = pooling.kernel(shape, operand=operand, layout=layout)
    x = values_of(kernel)
    np.testing.assert_array_equal(kernel.run(x, device="emulator"), by_hand(pooling, x))
    np.testing.assert_array_equal(kernel.on_device("emulator")(x), by_hand(pooling, x))
    assert kernel.cubin[:4] == b"\x7fELF"
    with pytest.raises(InvalidInput, match=r"x .*-8"):
        kernel.run(x + 9, device="emulator")


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Pooling("mean", 2), InvalidInput, "kind='mean'.*did you mean|allowed"),
        (lambda: Pooling("max", 0), InvalidInput, "window=0: must be an integer >= 1"),
        (lambda: Pooling("max", (2, 3)), InvalidInput, "is not square: give a stride"),
        (lambda: Pooling("max", 3, 2, 2), InvalidInput, "padding=2: at most half of the window 3 x 3"),
        (lambda: Pooling("max", 3, count_padding=1), InvalidInput, "count_padding=1: expected True or False"),
        (lambda: Pooling("max", 3, ceil_mode=None), InvalidInput, "ceil_mode=None: expected True or False"),
        (lambda: Pooling("max", 2).kernel((1, 2, 2)), InvalidInput, "expected 4 values"),
        (lambda: Pooling("max", 9).kernel((1, 2, 2, 8)), InvalidInput, "does not fit"),
        (
            lambda: Pooling("max", 2).kernel((1, 2, 2, 8), operand="int2"),
            Unsupported,
            "take int4, uint4, int8 and uint8",
        ),
        (lambda: Pooling("max", 2).kernel((1, 2, 2, 8), layout="nchw"), InvalidInput, "layout='nchw'"),
        (lambda: Pooling("max", 2).kernel((1, 2, 2, 8), "sm_12"), InvalidInput, "unknown architecture"),
        (lambda: Pooling("max", 65, 1).kernel((1, 65, 65, 8)), Unsupported, "at most 4096; pool in two steps"),
    ],
)
def test_what_cannot_be_pooled_is_said(make: object, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()  # type: ignore[operator]


def test_a_chain_says_what_does_not_fit(chain: tuple[Chain, np.ndarray, np.ndarray]) -> None:
    made = chain[0]
    weights, requants, _ = (list(one) for one in zip(*made.operands, strict=True))
    with pytest.raises(InvalidInput, match=r"layer 0 is .*no layer before it"):
        Chain([Pooling("max", 2)], [None], [None])
    with pytest.raises(InvalidInput, match="layer 1 pools: it has no weights"):
        Chain(made.kernels[:2], [weights[0], weights[0]], requants[:2])
    sums = subbyte.build("n9h8w6c40k40r3s3p1", config_from_key("brw2-bcw1-wrt2-wct4-ch1-ri0"), output="int32")
    with pytest.raises(InvalidInput, match="layer 1 pools, but layer 0 gives int32 sums"):
        Chain([sums, Pooling("max", 2)], [weights[0], None], [None, None])
    with pytest.raises(InvalidInput, match=r"layer 1 gives int4 \[9, 2, 1, 40\]"):
        Chain([made.kernels[0], Pooling("max", 4), made.kernels[2]], weights[:3], requants[:3])
