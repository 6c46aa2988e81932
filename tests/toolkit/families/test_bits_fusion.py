"""Layers of bit networks in one kernel: pooling, a residual, sums for a later layer."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from generated_bits import GeneratedBits

import subbyte
from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import BuildFailed, InvalidInput, Unsupported
from subbyte.families.bits.config import BitsConfig
from subbyte.kernel import Chain, Kernel, operands
from subbyte.kernel.build import generated_text
from subbyte.kernel.chain import check_residuals
from subbyte.kernel.execute import expected_layer, random_residual
from subbyte.numerics import Thresholds, from_residual, random_values, to_residual
from subbyte.numerics.bit_layer import layer_reference, pooled
from subbyte.numerics.fusion import Fusion
from subbyte.numerics.residual import LARGEST, WIDE
from subbyte.tirx import instructions as op
from subbyte.tirx.function import named_function

KERNELS = {
    "added and kept": ("n3h5w9c64k64r3s3p1:w1a1", "bipolar1+add64+keep", {"tile_rows": 4, "turn_rows": 2}),
    "added to some of the channels": ("n9h3w4c64k96r3s3p1:w1a2", "uint2+add32", {"tile_rows": 2, "doubled": 1}),
    "the largest of windows added": (
        "n8h8w8c64k128r3s3p1u2:w1a1", "bipolar1+addpool2x64+keep", {"tile_rows": 2, "channels": 128, "consumers": 1},
    ),
    "the largest of windows kept": (
        "n3h9w10c64k64r3s3p1:w1a1", "bipolar1+add64+keeppool2", {"tile_rows": 4, "turn_rows": 2, "consumers": 1},
    ),
    "bytes of a strided first layer": (
        "n9h15w19c3k64r7s7p3u4:w1a8o1:bipolar.signed", "bipolar1+keep",
        {"tile_rows": 2, "consumers": 1, "paired_rows": 1, "whole_values": 1},
    ),
    "bytes of a first layer that pools": (
        "n9h9w9c3k32r3s3p1:w2a8o2:offset.unsigned.unsigned", "uint2+pool2",
        {"tile_rows": 4, "turn_rows": 2, "channels": 32, "consumers": 1, "whole_values": 1},
    ),
    "bytes of one window": (
        "n9h7w7c3k32r7s7p0:w1a8o1:bipolar.signed", "bipolar1", {"channels": 32, "consumers": 1, "whole_values": 1},
    ),
    "added in a matrix product": ("n20h1w1c64k64r1s1p0:w1a1", "bipolar1+add64+keep", {"consumers": 1}),
    "32 bits added and kept": (
        "n3h3w9c64k64r3s3p1:w1a1", "bipolar1+add64b32+keep32", {"tile_rows": 2, "turn_rows": 2, "consumers": 1},
    ),
    "16 bits added to some of the channels, 32 kept": (
        "n9h3w4c64k96r3s3p1:w1a2", "uint2+add32+keep32", {"tile_rows": 2, "channels": 32, "doubled": 1},
    ),
    "the largest of windows of 32 bits added": (
        "n8h8w8c64k128r3s3p1u2:w1a2", "uint2+addpool2x64b32",
        {"tile_rows": 2, "channels": 64, "consumers": 1, "doubled": 1},
    ),
    "added and kept in parts of rows": (
        "n3h5w19c64k64r3s3p1:w1a1", "bipolar1+add64+keep", {"tile_rows": 4, "consumers": 1, "row_parts": 2},
    ),
    "windows kept in parts of rows": (
        "n3h5w18c64k64r3s3p1:w1a1", "bipolar1+add64+keeppool2",
        {"tile_rows": 4, "turn_rows": 2, "consumers": 1, "row_parts": 2},
    ),
    "pooled in parts of rows": (
        "n3h5w19c64k64r3s3p1:w1a1", "bipolar1+pool2",
        {"tile_rows": 4, "turn_rows": 2, "paired_rows": 1, "row_parts": 3},
    ),
    "pooled, then compared": ("n3h7w9c64k70r3s3p1:w1a2", "uint2+pool2", {"tile_rows": 4, "turn_rows": 2, "doubled": 1}),
    "compared, then pooled": ("n8h4w8c64k32r3s3p1:w1a2", "uint2+pool2after", {
        "tile_rows": 4, "turn_rows": 2, "channels": 32, "doubled": 1, "consumers": 1}),
    "pooled into rows that share blocks": ("n8h6w12c64k64r3s3p1:w1a1", "bipolar1+pool2after", {
        "tile_rows": 4, "turn_rows": 2, "paired_rows": 1}),
}  # fmt: skip


def run(kernel: Kernel, text: str | None = None) -> tuple[Any, Any, Any]:
    """What the emulator finds, gives and the reference says, on poisoned outputs."""
    seed = 1
    rng = np.random.default_rng(seed)
    wl = kernel.workload
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    w = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
    thresholds, residual = Thresholds.random(wl, rng), random_residual(kernel, seed)
    outputs = {
        one.name: np.full(one.shape, 0xCDCDCDCD, "uint32") for one in kernel.launch.arguments if one.role == "out"
    }
    found = run_cuda(text or kernel.cuda, kernel.launch, {**kernel.pack(x, w, thresholds, residual), **outputs})
    return found, outputs, expected_layer(kernel, x, w, thresholds, residual)


@pytest.mark.sample("added in a matrix", "pooled, then compared", "16 bits added")
@pytest.mark.parametrize("name", KERNELS)
def test_layers_are_clean_and_exact(name: str) -> None:
    spec, output, knobs = KERNELS[name]
    kernel = Kernel(GeneratedBits(spec, output, **knobs).plan)
    found, outputs, wanted = run(kernel)
    require_clean(found)
    np.testing.assert_array_equal(kernel.unpack(outputs["Out"]), wanted.values)
    full = replace(kernel.workload, n=-(-kernel.workload.n // 8) * 8)
    whole = operands.output_values(kernel.argument("Out"), full, outputs["Out"], kernel.fusion.pool)
    least = kernel.workload.precision.output.values[0]  # images that only fill up: bits 0
    assert (whole[kernel.workload.n :] == least).all()
    if kernel.fusion.keep:
        np.testing.assert_array_equal(operands.kept_sums(outputs["Sum"], kernel.workload, kernel.fusion), wanted.sums)


def test_the_reference_of_a_layer_is_that_of_networks() -> None:
    wl = subbyte.workload("n2h4w6c5k32r3s3p1:w1a1")
    rng = np.random.default_rng(3)
    x = random_values(wl.precision.activations, (2, 4, 6, 5), rng)
    w = random_values(wl.precision.weights, (32, 3, 3, 5), rng)
    thresholds = Thresholds.random(wl, rng)
    residual = rng.integers(-50, 50, (2, 8, 12, 32), np.int32)
    found = Fusion(residual=32, residual_pool=2).reference(wl, x, w, thresholds, residual)
    named = layer_reference(wl, x, w, thresholds, np.ascontiguousarray(pooled(residual, 2)))
    np.testing.assert_array_equal(found.values, named.values)
    for wrong in ({"residual": 32}, {}):
        given = None if wrong else residual
        with pytest.raises(InvalidInput, match="residual: "):
            Fusion(**wrong).reference(wl, x, w, thresholds, given)


@pytest.mark.parametrize("fusion", [
    Fusion(), Fusion(pool=2), Fusion(pool=2, pool_order="after"), Fusion(residual=64, keep=True),
    Fusion(residual=128, residual_pool=2), Fusion(residual=64, residual_pool=2, residual_bits=32, keep=True),
    Fusion(residual=64, keep=True, keep_pool=2), Fusion(keep=True, keep_pool=2, keep_bits=32),
    Fusion(residual=64, keep=True, keep_bits=32), Fusion(residual=64, residual_bits=32, keep=True, keep_bits=32),
])  # fmt: skip
def test_an_output_names_what_is_fused(fusion: Fusion) -> None:
    assert Fusion.of(f"bipolar1{fusion.text}") == fusion


@pytest.mark.parametrize("output", ["bipolar1+", "bipolar1+pool", "bipolar1+add", "bipolar1+add64x2", "bipolar1+max2"])
def test_another_part_of_an_output_is_refused(output: str) -> None:
    with pytest.raises(InvalidInput, match="is none of pool2, pool2after, add64, addpool2x64, keep"):
        subbyte.build("n8h4w4c64k64r3s3p1:w1a1", output=output)


def test_other_families_fuse_nothing() -> None:
    with pytest.raises(Unsupported, match="only kernels of the bits family fuse that"):
        subbyte.build("n8h4w4c64k64r3s3p1", output="int4+pool2")


def test_sums_of_16_bits_go_there_and_back() -> None:
    sums = np.random.default_rng(2).integers(-32768, 32768, (9, 2, 3, 40), np.int32)
    words = to_residual(sums)
    assert words.shape == (2, 2, 3, 2, 8, 32)
    assert words[1, 1, 2, 1, 0, 7] == sums[8, 1, 2, 39]
    np.testing.assert_array_equal(from_residual(words, 9, 40), sums)


def test_sums_of_32_bits_go_there_and_back() -> None:
    sums = np.random.default_rng(2).integers(-LARGEST[WIDE], LARGEST[WIDE] + 1, (9, 2, 3, 40), np.int32)
    words = to_residual(sums, WIDE)
    assert (words.shape, words.dtype) == ((2, 2, 3, 2, 2, 8, 4, 4), np.int32)
    assert words[1, 1, 2, 1, 1, 0, 0, 3] == sums[8, 1, 2, 39]
    assert words[0, 1, 2, 0, 0, 5, 2, 1] == sums[5, 1, 2, 17]
    np.testing.assert_array_equal(from_residual(words, 9, 40), sums)
    with pytest.raises(InvalidInput, match="of 32 bits they go from -536870911 to 536870911"):
        to_residual(np.full((1, 1, 1, 1), 1 << 29, np.int32), WIDE)
    with pytest.raises(InvalidInput, match="bits=17: sums for a later layer have 16 or 32 bits"):
        to_residual(sums, 17)
    for wrong in (17, True, "32"):
        with pytest.raises(InvalidInput, match="keep_bits="):
            Fusion(keep=True, keep_bits=wrong)  # type: ignore[arg-type]


def test_a_residual_that_sums_cannot_hold_is_refused() -> None:
    kernel = Kernel(GeneratedBits(*KERNELS["added and kept"][:2], **KERNELS["added and kept"][2]).plan)
    wl = kernel.workload
    x, w = (np.ones(shape, np.int8) for shape in ((wl.n, wl.h, wl.w, wl.c), (wl.k, 3, 3, wl.c)))
    thresholds = Thresholds.random(wl, np.random.default_rng(1))
    for residual, words in (
        (np.full((3, 5, 9, 64), 32767, np.int32), "kept sums have 16 bits"),
        (np.zeros((3, 5, 9, 32), np.int32), r"residual is int32 \[3, 5, 9, 32\]"),
        (None, "residual missing"),
    ):
        with pytest.raises(InvalidInput, match=words):
            kernel.run_layer(x, w, thresholds, residual, device="emulator")
    with pytest.raises(InvalidInput, match="residual missing"):
        kernel.run(x, w, thresholds, device="emulator")


def chain(residuals: Any) -> tuple[Chain, list[Kernel], Any, Any]:
    """A block of a network: the second layer adds what the first one kept, the third what the second did."""
    specs = ("n8h4w6c64k64r3s3p1:w1a1", "n8h4w6c64k64r3s3p1:w1a1", "n8h4w6c64k64r3s3p1u2:w1a1")
    outputs = ("bipolar1+keep", "bipolar1+add64+keep", "bipolar1")
    kernels = [
        subbyte.build(spec, BitsConfig(tile_rows=2, consumers=1), output=output)
        for spec, output in zip(specs, outputs, strict=True)
    ]
    rng = np.random.default_rng(7)
    weights = [random_values(one.workload.precision.weights, (64, 3, 3, 64), rng) for one in kernels]
    thresholds = [Thresholds.random(one.workload, rng) for one in kernels]
    return Chain(kernels, weights, thresholds, residuals), kernels, weights, thresholds


@pytest.mark.deep
def test_a_chain_hands_on_sums() -> None:
    made, kernels, weights, thresholds = chain([None, 0, None])
    x = random_values(kernels[0].workload.precision.activations, (8, 4, 6, 64), np.random.default_rng(9))
    first = layer_reference(kernels[0].workload, x, weights[0], thresholds[0])
    second = layer_reference(kernels[1].workload, first.values, weights[1], thresholds[1], first.sums)
    third = layer_reference(kernels[2].workload, second.values, weights[2], thresholds[2])
    np.testing.assert_array_equal(made.run(x, device="emulator"), third.values)
    np.testing.assert_array_equal(
        operands.kept_sums(made.outputs(x)[1]["Sum"], kernels[1].workload, kernels[1].fusion), second.sums
    )


@pytest.mark.parametrize(
    ("residuals", "words"),
    [
        ((), "layer 1 .* adds a residual: name the layer that has it"),
        ((None, 0, 1), "layer 2 .* adds none, but layer 1 is named"),
        ((None, 1, None), "layer 1 adds sums of layer 1: name an earlier layer"),
        ((None, 0), "3 kernels, 2 residuals"),
    ],
)
def test_a_chain_refuses_sums_that_nobody_keeps(residuals: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        chain(residuals)


def test_a_chain_refuses_sums_of_other_bits() -> None:
    kernels = [
        subbyte.build("n8h4w6c64k64r3s3p1:w1a1", BitsConfig(tile_rows=2, consumers=1), output=output)
        for output in ("bipolar1+keep", "bipolar1+add64b32+keep32")
    ]
    with pytest.raises(InvalidInput, match="layer 0 keeps sums of 16 bits, layer 1 adds sums of 32"):
        check_residuals(kernels, [None, 0])


def test_sums_that_are_read_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op, "wait_for_previous_launch", lambda: None)
    spec, output, knobs = KERNELS["added to some of the channels"]
    kernel = Kernel(GeneratedBits(spec, output, **knobs).plan)
    found, _, _ = run(kernel, generated_text(kernel.plan))
    assert any(one.kind == "missing_dependency_wait" for one in found.findings)


def test_compile_takes_a_kernel_that_pools() -> None:
    kernel = subbyte.compile("n8h8w8c64k64r3s3p1:w1a1", output="bipolar1+pool2")
    assert kernel.fusion == Fusion(pool=2)


def test_pointers_in_another_order_than_the_texts_are_refused() -> None:
    """On a GPU a kernel would read one buffer as another."""
    kernel = Kernel(GeneratedBits(*KERNELS["added and kept"][:2], **KERNELS["added and kept"][2]).plan)
    names = [argument.name for argument in kernel.launch.arguments]
    assert names == sorted(names)
    launch = replace(kernel.launch, arguments=kernel.launch.arguments[::-1])
    with pytest.raises(BuildFailed, match="in the order of their names"):
        named_function(SimpleNamespace(launch=launch), 1, lambda plan, buffers: None)
