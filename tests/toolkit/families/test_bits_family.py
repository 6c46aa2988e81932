"""Kernels on one-bit products, built and run: clean, and every element what the reference says."""

from __future__ import annotations

import numpy as np
import pytest
from generated_bits import GeneratedBits
from hypothesis import given, settings
from hypothesis import strategies as st

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families.bits.config import BitsConfig
from subbyte.kernel.execute import random_operands
from subbyte.numerics import Requantization, Thresholds, reference
from subbyte.numerics.thresholds import ALWAYS, NEVER
from subbyte.workload import Operand

KERNELS = {
    "zeros beyond the border": ("n8h4w5c128k32r3s3p1:w1a1", {"channels": 32, "consumers": 1, "tile_rows": 2}),
    "minus beyond the border": ("n9h3w4c200k70r3s3p1:w1a1:minus", {"tile_rows": 2}),
    "plus beyond the border": ("n3h7w6c70k40r5s5p2u2:w1a1:plus", {"channels": 32, "consumers": 1, "tile_rows": 3}),
    "nothing beyond the border": ("n1h2w9c130k33r1s3p0:w1a1", {"channels": 32, "tile_rows": 2}),
    "run on, 5x5": ("n8h5w6c96k128r5s5p2:w1a1", {"channels": 128, "tile_rows": 3, "run_on": 1}),
    "512 channels": ("n8h2w3c512k128r3s3p1:w1a1", {"channels": 128, "tile_rows": 2, "consumers": 1}),
    "256 channels of a block": ("n8h1w8c64k256r1s1p0:w1a1:unsigned.unsigned", {"channels": 256, "consumers": 1}),
    "stride 4, 11x11": ("n3h15w12c3k40r11s11p2u4:w1a2", {"channels": 32, "consumers": 1}),
    "7x7": ("n8h7w6c24k64r7s7p3u2:w1a1", {"tile_rows": 1, "consumers": 1}),
    "two planes of activations": ("n8h3w8c64k64r3s3p1:w1a2", {"tile_rows": 3, "consumers": 3}),
    "run on, dilated": ("n8h5w5c128k70r3s3p2d2:w1a2", {"tile_rows": 3, "run_on": 1}),
    "two planes of weights": ("n8h2w7c128k96r1s3p1:w2a1", {"channels": 64, "tile_rows": 3}),
    "two and two, run on": ("n9h3w4c200k70r3s3p1:w2a2", {"tile_rows": 2, "run_on": 1, "consumers": 1}),
    "two and two, doubled": ("n8h3w5c40k128r1s3p1:w2a2", {"doubled": 1, "tile_rows": 3}),
    "two and three": ("n9h4w6c200k70r3s3p1u2:w2a3", {"channels": 32, "tile_rows": 2}),
    "one and four, doubled": ("n8h2w8c64k64r3s3p1:w1a4", {"doubled": 1, "tile_rows": 2}),
    "signed weights": ("n8h2w4c70k64r3s3p1:w2a2:signed.unsigned", {"tile_rows": 2, "consumers": 1}),
    "signed, two sums a register, doubled": (
        "n8h2w4c64k64r3s3p1:w1a2:bipolar.signed.unsigned", {"consumers": 1, "doubled": 1},
    ),
    "signed both": ("n8h2w4c70k32r3s3p1:w2a2:signed.signed.unsigned", {"channels": 32, "consumers": 1, "doubled": 1}),
    "more bits out than in": ("n8h2w4c100k64r3s3p1:w1a1o2", {"consumers": 1}),
    "two rows share a block": ("n9h5w5c40k40r3s3p1:w1a1", {"paired_rows": 1, "tile_rows": 2}),
    "two rows share a block, stride 2": (
        "n8h6w6c64k64r5s5p2u2:w1a2", {"paired_rows": 1, "tile_rows": 3, "consumers": 1},
    ),
    "turns of two rows": ("n3h5w9c70k64r3s3p1:w1a1", {"tile_rows": 4, "turn_rows": 2, "consumers": 3}),
    "turns of two rows that share blocks, in order": (
        "n8h5w12c64k64r3s3p1:w1a2",
        {"paired_rows": 1, "tile_rows": 4, "turn_rows": 2, "doubled": 1, "consumers": 2, "stagger": 1},
    ),
    "turns of two rows, stride 2": (
        "n8h8w6c64k64r5s5p2u2:w1a1", {"paired_rows": 1, "tile_rows": 2, "turn_rows": 2, "consumers": 1},
    ),
    "two of four multiply at a time": ("n8h3w9c130k32r3s3p1:w2a2", {
        "channels": 32, "tile_rows": 3, "consumers": 4, "stagger": 2, "doubled": 1}),
    "rows in two parts": (
        "n9h4w17c64k64r3s3p1:w1a2", {"paired_rows": 1, "tile_rows": 2, "consumers": 2, "row_parts": 2, "doubled": 1},
    ),
    "rows in three parts, stride 2, plus beyond the border": (
        "n3h5w34c70k40r5s5p2u2:w1a1:plus", {"channels": 32, "consumers": 1, "tile_rows": 2, "row_parts": 3},
    ),
    "two rows share an input block": (
        "n8h4w4c64k128r3s3p1:w1a1:minus", {"paired_rows": 1, "channels": 128, "tile_rows": 2},
    ),
}  # fmt: skip
SUMS = {
    "sums of one bit": ("n9h2w4c200k70r3s3p1:w1a1", {"tile_rows": 2}),
    "sums of two": ("n8h3w3c40k160r3s3p1u2:w2a2", {"consumers": 1}),
    "sums of eight bits, doubled": ("n2h1w8c64k32r1s1p0:w1a8", {"channels": 32, "consumers": 1, "doubled": 1}),
}


def random_sums(rng: np.random.Generator, channels: int) -> np.ndarray:
    """int32 [.., K]: small ones, any, and the extreme ones below the threshold that none passes."""
    small, any_ = rng.integers(-40, 40, (40, channels)), rng.integers(-(1 << 31), NEVER, (40, channels))
    ends = np.array([[-(1 << 31)], [-1], [0], [1], [NEVER - 1]]).repeat(channels, 1)
    return np.concatenate([small, any_, ends]).astype(np.int32)


@pytest.mark.sample("zeros beyond", "one and four", "two rows share a block, stride 2")
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_clean_and_exact(name: str) -> None:
    spec, knobs = KERNELS[name]
    GeneratedBits(spec, **knobs).require_exact(1)


@pytest.mark.sample("sums of two")
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_clean_and_exact(name: str) -> None:
    spec, knobs = SUMS[name]
    GeneratedBits(spec, "int32", **knobs).require_exact(1)


OUTPUTS = [Operand(1, "unsigned"), Operand(2, "unsigned"), Operand(4, "unsigned"), Operand(3), Operand(2, "offset")]


@settings(max_examples=60)
@given(st.sampled_from(OUTPUTS), st.integers(0, 2**31 - 1), st.integers(1, 62), st.integers(-(2**31), 2**31 - 1),
       st.integers(0, 15), st.integers(0, 15), st.integers(0, 99))  # fmt: skip
def test_thresholds_are_a_requantization_exactly(
    output: Operand, multiplier: int, shift: int, bias: int, low: int, high: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = sorted(output.least + end % (1 << output.bits) for end in (low, high))
    columns = [[bias, bias % 100, 0, bias], [multiplier, multiplier % 1000 + 1, 1, 0], [shift, shift % 16 + 1, 1, 5]]
    requant = Requantization(*(np.array(column, np.int32) for column in columns), (ends[0], ends[1]), output=output)
    made = Thresholds.of(requant)
    assert not made.flip.any()
    steps = made.levels[(made.levels > ALWAYS) & (made.levels < NEVER)].astype(np.int64)
    near = (steps[:, None] + [-1, 0]).reshape(-1, 1).repeat(4, 1).clip(ALWAYS, NEVER - 1).astype(np.int32)
    sums = np.concatenate([random_sums(rng, 4), near])
    np.testing.assert_array_equal(made.apply(sums), requant.apply(sums))


@pytest.mark.sample("False")
@pytest.mark.parametrize("even", [True, False])
def test_codes_of_four_bits_come_from_a_line_where_there_is_one(even: bool) -> None:
    kernel = subbyte.build(
        "n3h3w9c70k70r3s3p1:w1a4", BitsConfig(tile_rows=2, channels=64, consumers=1, turn_rows=2, doubled=1)
    )
    rng = np.random.default_rng(4)
    thresholds = Thresholds.random(kernel.workload, rng)
    if even:
        gamma = rng.uniform(0.2, 2, 70) * rng.choice([-1, 1], 70)
        gamma[5] = 0
        thresholds = Thresholds.from_batch_norm(
            gamma, rng.normal(size=70), rng.normal(0, 200, 70), rng.uniform(1e4, 1e5, 70), bits=4, step=0.25
        )
        assert thresholds.flip.any()
    fitting = kernel.for_requantization(thresholds)
    assert fitting.plan.parameter_form == ("line" if even else "thresholds")
    x, w, _ = random_operands(kernel, 1)
    found = kernel.run(x, w, thresholds, device="emulator")
    np.testing.assert_array_equal(found, thresholds.apply(reference(kernel.workload, x, w)))
    if even:
        with pytest.raises(InvalidInput, match="thresholds lie on no line"):
            kernel.pack(x, w, Thresholds.random(kernel.workload, rng))


def test_a_kernel_rounds_as_a_requantization_says() -> None:
    spec, knobs = KERNELS["two planes of activations"]
    kernel, rng = subbyte.build(spec, BitsConfig().with_values(knobs)), np.random.default_rng(3)
    x, w, drawn = random_operands(kernel, 3)
    assert isinstance(drawn, Requantization)
    loud = drawn.multiplier * (rng.random(64) > 0.1) * 2
    requant = Requantization(drawn.bias, loud.astype(np.int32), drawn.shift, (1, 2), output=drawn.output)
    np.testing.assert_array_equal(
        kernel.run(x, w, requant, device="emulator"), requant.apply(reference(kernel.workload, x, w))
    )


def test_a_matrix_product_is_exact() -> None:
    kernel = GeneratedBits(subbyte.gemm(72, 96, 200, "w1a2"), channels=32, consumers=2)
    kernel.require_exact(1)


def test_a_matrix_product_of_several_rows_of_pixels_is_exact() -> None:
    """More pixels than a row holds: they lie in rows below each other."""
    config = BitsConfig(channels=32, consumers=1, tile_rows=2)
    kernel = subbyte.build(subbyte.gemm(1024, 32, 128, "w1a1"), config)
    x, w, requant = random_operands(kernel, 0)
    found = kernel.run(x, w, requant, device="emulator")
    assert requant is not None
    np.testing.assert_array_equal(found, requant.apply(reference(kernel.workload, x, w)))
