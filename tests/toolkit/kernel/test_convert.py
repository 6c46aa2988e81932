"""Conversions on the device: every word and value against the host's packing, in the emulator with all its checks."""

import numpy as np
import pytest

from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import InvalidInput, Unsupported, WrongResult
from subbyte.kernel.convert import packing, quantizing, unpacking
from subbyte.kernel.convert.build import thresholds
from subbyte.kernel.convert.forms import Shape, word_form
from subbyte.kernel.operands import layout_words
from subbyte.numerics import quantize
from subbyte.workload.operand import UNSIGNED, Operand
from subbyte.workload.precision import INT4

STRIPS = "strips4p3h9w6"
SCALE = 0.37


def _run(conversion, *arrays, text=None):
    """What a conversion writes, over a poison, from a run without findings."""
    source, out = conversion.launch.arguments[:2]
    written = np.full(out.shape, 0x5A, out.dtype)
    buffers = {"A": np.ascontiguousarray(arrays[0]).reshape(-1).view(source.dtype), "Out": written}
    if len(arrays) > 1:
        buffers["Prm"] = arrays[1]
    require_clean(run_cuda(conversion.cuda if text is None else text, conversion.launch, buffers))
    return written


def _values(shape, seed=0):
    return np.random.default_rng(seed).integers(-8, 8, shape, dtype=np.int8)


def _words(form, values):
    return layout_words(form, values, INT4.activations).reshape(-1)


@pytest.mark.parametrize(
    ("form", "shape", "axes"),
    [
        ("nhwcnc", (3, 5, 6, 40), "nhwc"),  # images and channels fill up a group and a block
        ("nhwcnc", (9, 2, 3, 7), "nhwc"),  # one by one
        ("nhwc", (9, 3, 5, 33), "nchw"),
        (STRIPS, (3, 7, 5, 3), "nhwc"),
    ],
)
def test_int8_values_are_packed(form, shape, axes):
    x = _values(shape)
    x.flat[:4] = 8, 127, -9, -128  # beyond the type: the nearest
    given = x if axes == "nhwc" else x.transpose(0, 3, 1, 2)
    found = _run(packing(form, shape, "sm_90a", "int8", axes), given)
    assert np.array_equal(found, _words(form, np.clip(x, -8, 7)))


def _real(element, shape):
    """Numbers of a type, as its bits and as float64: random ones, ties, their neighbours, denormal ones, infinities."""
    rng = np.random.default_rng(3)
    real = rng.normal(size=shape) * 3
    ties = (np.arange(-9, 9) + 0.5) * SCALE
    odd = [*ties, 0.0, -0.0, 2.0**-24, -(2.0**-24), 2.0**-16, np.inf, -np.inf, 6e4, -6e4]
    real.flat[: len(odd)] = odd
    if element == "bfloat16":
        bits = (real.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    held = real.astype(element)
    return held, held.astype(np.float64)


@pytest.mark.parametrize(
    ("element", "shape", "axes"),
    [("float16", (3, 2, 3, 40), "nhwc"), ("bfloat16", (2, 3, 3, 5), "nchw"), ("float32", (9, 2, 2, 32), "nhwc")],
)
def test_reals_are_quantized_as_quantize_does(element, shape, axes):
    bits, real = _real(element, shape)
    given = bits if axes == "nhwc" else bits.transpose(0, 3, 1, 2)
    found = _run(quantizing("nhwcnc", shape, "sm_90a", element, axes), given, thresholds(SCALE))
    limited = np.clip(real, -1e30, 1e30)  # quantize refuses infinities; on the device they are clipped
    assert np.array_equal(found, _words("nhwcnc", quantize(limited, SCALE)))


@pytest.mark.parametrize("scale", [1.0, 0.37, 1 / 3, 1e-38, 3e-45, 1e-60, 3e37, 1e300])
def test_thresholds_are_where_quantize_changes(scale):
    found = thresholds(scale)[:15]
    assert (found[1:] >= found[:-1]).all()
    finite = found[np.isfinite(found)]
    with np.errstate(over="ignore"):
        beside = [np.nextafter(finite, np.float32(way)) for way in (-np.inf, np.inf)]
    around = np.concatenate([finite, *beside, np.float32([0, -0.0, 1, -1, 3e38, -3e38])])
    around = around[np.isfinite(around)]
    counted = -8 + (around[:, None] >= found).sum(axis=1)
    assert np.array_equal(counted, quantize(around, scale))


@pytest.mark.parametrize(
    ("form", "shape"), [("nhwcnc", (3, 5, 6, 40)), ("nhwc", (9, 3, 2, 13))], ids=["eight together", "one by one"]
)
def test_words_are_unpacked(form, shape):
    x = _values(shape)
    assert np.array_equal(_run(unpacking(form, shape, "sm_90a"), _words(form, x)).view(np.int8), x.reshape(-1))


@pytest.mark.parametrize("shape", [(3, 2, 3, 40), (2, 2, 3, 5)])
def test_words_of_sums_are_cropped(shape):
    n, h, w, c = shape
    blocks = -(-c // 32)
    sums = np.random.default_rng(1).integers(-(2**31), 2**31, (1, h, w, blocks, 8, 32), dtype=np.int32)
    right = sums.transpose(0, 4, 1, 2, 3, 5).reshape(8, h, w, blocks * 32)[:n, ..., :c]
    found = _run(unpacking("nhwcnc", shape, "sm_90a", "int32"), sums)
    assert np.array_equal(found.view(np.int32), right.reshape(-1))


BYTES = {"int8": Operand(8), "uint8": Operand(8, UNSIGNED)}


def _byte_real(element, shape, scale, operand):
    """Every place where a value changes, and its neighbours, as far as there is room; then whatever else there is."""
    with np.errstate(over="ignore", under="ignore"):
        steps = thresholds(scale, operand)[:255]
        beside = [np.nextafter(steps, np.float32(way)) for way in (-np.inf, np.inf)]
        odd = np.float32([0, -0.0, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38, scale * 1000, -scale * 1000])
        real = np.random.default_rng(3).normal(size=shape).astype(np.float32) * np.float32(60 * scale)
    given = np.concatenate([odd, steps, *beside])[: real.size]
    real.flat[: len(given)] = given
    if element == "bfloat16":
        bits = (real.view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        held = real.astype(element)
    return held, held.astype(np.float64)


@pytest.mark.parametrize(
    ("element", "shape", "axes", "name", "scale"),
    [
        ("float32", (8, 3, 3, 16), "nhwc", "int8", 0.37),
        ("float32", (8, 3, 3, 16), "nhwc", "uint8", 1e-60),
        ("float32", (8, 3, 3, 16), "nhwc", "int8", 3e-45),
        ("float32", (8, 3, 3, 16), "nhwc", "int8", 3e37),
        ("float32", (8, 3, 3, 16), "nhwc", "uint8", 1e300),
        ("float16", (9, 5, 3, 20), "nhwc", "uint8", 0.02),
        ("bfloat16", (3, 5, 7, 11), "nchw", "int8", 1 / 3),
    ],
)
def test_reals_are_quantized_to_bytes_as_quantize_does(element, shape, axes, name, scale):
    operand = BYTES[name]
    bits, real = _byte_real(element, shape, scale, operand)
    given = bits if axes == "nhwc" else bits.transpose(0, 3, 1, 2)
    conversion = quantizing("nhwcnc", shape, "sm_90a", element, axes, operand)
    with np.errstate(over="ignore"):
        found = _run(conversion, given, thresholds(scale, operand))
        values = quantize(np.clip(real, -1e308, 1e308), scale, operand)
    assert np.array_equal(found, layout_words("nhwcnc", values, operand).reshape(-1))


@pytest.mark.parametrize(
    ("before", "after"), [(">= Prm", "> Prm"), ("<< (uint)16", "<< (uint)8"), ("+ -128)", "+ -127)")]
)
def test_faults_of_bytes_are_found(before, after):
    operand, shape = BYTES["int8"], (8, 3, 3, 16)
    bits, real = _byte_real("float32", shape, SCALE, operand)
    conversion = quantizing("nhwcnc", shape, "sm_90a", "float32", operand=operand)
    assert before in conversion.cuda
    found = _run(conversion, bits, thresholds(SCALE, operand), text=conversion.cuda.replace(before, after))
    with np.errstate(over="ignore"):
        values = quantize(np.clip(real, -1e308, 1e308), SCALE, operand)
    assert not np.array_equal(found, layout_words("nhwcnc", values, operand).reshape(-1))


def test_what_is_no_number_becomes_the_least_byte():
    given = np.full((8, 1, 1, 16), np.nan, np.float32)
    for operand in BYTES.values():
        found = _run(quantizing("nhwcnc", given.shape, "sm_90a", "float32", operand=operand), given,
                     thresholds(1.0, operand))  # fmt: skip
        assert (found.view(operand.dtype) == operand.least).all()


FAULTS = {
    "a channel too many": ("(channel < 40)", "(channel < 48)"),
    "an image too many": ("(image < 3)", "(image < 4)"),
    "a value twice": ("<< 16) >> 24", "<< 24) >> 24"),
    "without a sign": ("cvt.pack.sat.s4.s32.b32", "cvt.pack.sat.u4.s32.b32"),
    "a word elsewhere": ("codes_ptr[5], codes_ptr[4]", "codes_ptr[3], codes_ptr[2]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault):
    """The comparison with the host's packing, or the emulator, finds what is wrong with a text."""
    x = _values((3, 5, 6, 40))
    conversion, right = packing("nhwcnc", x.shape, "sm_90a"), _words("nhwcnc", x)
    before, after = FAULTS[fault]
    assert before in conversion.cuda
    try:
        found = _run(conversion, x, text=conversion.cuda.replace(before, after))
    except WrongResult:
        return
    assert not np.array_equal(found, right)


def test_a_tie_that_is_rounded_up_is_found():
    bits, real = _real("float32", (1, 1, 4, 32))
    conversion = quantizing("nhwcnc", (1, 1, 4, 32), "sm_90a", "float32")
    assert ">=" in conversion.cuda
    found = _run(conversion, bits, thresholds(SCALE), text=conversion.cuda.replace(">= steps", "> steps"))
    assert not np.array_equal(found, _words("nhwcnc", quantize(np.clip(real, -1e30, 1e30), SCALE)))


@pytest.mark.parametrize("form", ["nhwcnc", "nhwc", STRIPS])
def test_index_maps_reach_every_word_once(form):
    """On integers: each thread has a word of its own, and a pixel's word is where the host puts it."""
    shape = Shape(9, 3, 4, 3 if form == STRIPS else 40)
    words = word_form(form, shape)
    places = [words.at(thread, False) for thread in range(words.words)]
    assert sorted(place.word for place in places) == list(range(words.words))
    if form != STRIPS:
        again = [words.at(thread, True) for thread in range(words.words)]
        assert sorted(again) == sorted(places)
        assert all(words.word(one.n, one.y, one.x, one.c // 8) == one.word for one in places)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: packing("nb8r", (1, 1, 1, 1), "sm_90a"), Unsupported, "form nb8r: no kernel converts"),
        (
            lambda: packing("nhwc", (1, 1, 1, 1), "sm_90a", "float64"),
            InvalidInput,
            "values of float64: allowed to pack",
        ),
        (lambda: packing("nhwc", (1 << 15, 1 << 9, 1 << 9, 64), "sm_90a"), Unsupported, "at most 2147483519 values"),
        (lambda: unpacking(STRIPS, (1, 1, 1, 4), "sm_90a"), Unsupported, "from nhwc and nhwcnc"),
        (lambda: thresholds(-1.0), InvalidInput, "scale=-1.0: expected a positive"),
    ],
)
def test_what_no_conversion_does_is_said(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_machine_code_is_made_without_spills():
    for conversion in (packing("nhwcnc", (3, 5, 6, 40), "sm_90a"), unpacking("nhwcnc", (3, 5, 6, 40), "sm_75"),
                       quantizing("nhwcnc", (3, 2, 3, 40), "sm_90a", "float16"),
                       quantizing("nhwc", (1, 2, 3, 3), "sm_90a", "bfloat16", "nchw")):  # fmt: skip
        from subbyte.kernel.build import compiled

        cubin, log = compiled(conversion.cuda, conversion.plan.arch)
        assert cubin[:4] == b"\x7fELF"
        assert "0 bytes stack frame, 0 bytes spill stores" in log
