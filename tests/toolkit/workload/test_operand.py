"""Types of operands: ranges, names, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from operand_types import operand_types, precisions

from subbyte.errors import InvalidInput
from subbyte.workload import (
    INT4,
    ConvWorkload,
    Encoding,
    Operand,
    Precision,
    encodings,
    register_encoding,
    unregister_encoding,
    workload,
    workloads,
)

SPEC = "n8h56w56c64k64r3s3p1"


@pytest.mark.parametrize(
    ("operand", "values", "dtype", "name"),
    [
        (Operand(4), (*range(8), *range(-8, 0)), "int8", "int4"),
        (Operand(1, "bipolar"), (-1, 1), "int8", "bipolar1"),
        (Operand(2, "bipolar"), (-3, -1, 1, 3), "int8", "bipolar2"),
        (Operand(2, "unsigned"), (0, 1, 2, 3), "int8", "uint2"),
        (Operand(2, "offset"), (-2, -1, 0, 1), "int8", "offset2"),
        (Operand(2, "offset", 1), (-1, 0, 1, 2), "int8", "offset2-z1"),
        (Operand(2, "signed", -1), (1, 2, -1, 0), "int8", "int2-z-1"),
        (Operand(1), (0, -1), "int8", "int1"),
        (Operand(4, sparsity="2:4"), (*range(8), *range(-8, 0)), "int8", "int4-2of4"),
        (Operand(8, "unsigned"), tuple(range(256)), "uint8", "uint8"),
        (Operand(8, "bipolar"), tuple(range(-255, 256, 2)), "int16", "bipolar8"),
    ],
)
def test_what_codes_mean(operand, values, dtype, name):
    assert operand.values == values
    assert (operand.least, operand.largest) == (min(values), max(values))
    assert operand.magnitude == max(map(abs, values))
    assert (operand.dtype, operand.name, str(operand)) == (dtype, name, name)
    assert Operand.named(name) == operand
    assert operand.contiguous == ("bipolar" not in name)


@given(operand_types())
def test_names_parse_back(operand):
    assert Operand.named(operand.name) == operand
    assert Operand.of_code(operand.bits, operand.code) == operand
    assert len(operand.values) == 1 << operand.bits


def test_a_type_has_one_name():
    assert Operand(4, "unsigned", 8) == Operand(4, "offset") != Operand(4, "unsigned")
    assert Operand(4, "offset", 0) == Operand(4, "unsigned") == Operand(4, "unsigned", 0)
    assert Operand(4, "offset", 0).name == "uint4"
    assert {Operand(2, "offset", 2), Operand(2, "offset")} == {Operand(2, "offset")}


@pytest.mark.parametrize(
    ("bits", "packed", "block", "words"),
    [(1, True, 128, 4), (2, True, 64, 4), (3, False, 128, 12), (4, True, 32, 4), (5, False, 128, 20),
     (6, False, 128, 24), (7, False, 128, 28), (8, True, 16, 4)],
)  # fmt: skip
def test_blocks_follow_from_the_bits(bits, packed, block, words):
    operand = Operand(bits)
    assert (operand.packed, operand.block, operand.block_words) == (packed, block, words)
    assert operand.block * bits == 32 * words


def test_stored_bits():
    assert Operand(4).stored_bits(100) == 400
    assert Operand(3).stored_bits(100) == 300
    assert Operand(4, sparsity="2:4").stored_bits(100) == 300  # half the values, two bits each for where they stand
    assert Operand(4, sparsity="2:4").stored_bits(101) == 51 * 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Operand(0), "operand bits=0: signed operands have 1 to 8 bits"),
        (lambda: Operand(9), "operand bits=9"),
        (lambda: Operand(True), "operand bits=True"),
        (lambda: Operand(4.0), "operand bits=4.0"),
        (lambda: Operand(4, "sined"), "encoding 'sined': did you mean signed"),
        (lambda: Operand(4, 3), "encoding 3"),
        (lambda: Operand(4, "bipolar", 1), "zero point 1: bipolar operands of 4 bits have none"),
        (lambda: Operand(4, "unsigned", 16), "zero point 16: offset operands of 4 bits have an integer from 0 to 15"),
        (lambda: Operand(4, "signed", 8), "an integer from -8 to 7"),
        (lambda: Operand(4, "offset", 1.5), "zero point 1.5"),
        (lambda: Operand(4, sparsity="4:2"), "sparsity '4:2': expected 'dense', N:M"),
        (lambda: Operand(4, sparsity="2:64"), "M <= 32"),
        (lambda: Operand(4, sparsity=None), "sparsity None"),
        (lambda: Operand(1, "bipolar", sparsity="2:4"), "bipolar values are never 0"),
        (lambda: Operand.named("in4"), "did you mean int4"),
        (lambda: Operand.named(4), "operand type 4"),
        (lambda: Operand.of_code(4, "signed-q"), "operand type 'signed-q'"),
        (lambda: Precision(4, Operand(4)), "weights=4: expected an Operand"),
        (lambda: Precision(Operand(4), "int4"), "activations='int4': expected an Operand"),
        (lambda: Precision(Operand(4), Operand(4), padding="one"), "padding='one'"),
        (lambda: Precision.of(4), "operand types 4"),
        (lambda: ConvWorkload(1, 9, 9, 3, 8, 3, 3, precision="w1a2"), "workload precision='w1a2'"),
    ],
)
def test_refused_types(make, words):
    with pytest.raises(InvalidInput) as error:
        make()
    assert words in str(error.value)


@given(precisions())
def test_texts_of_precisions_parse_back(precision):
    assert Precision.of(precision.text) == precision
    assert workload(ConvWorkload(2, 9, 8, 3, 5, 3, 2, 1, 2, precision=precision).spec).precision == precision
    assert (precision.text == "") == (precision == INT4)


@pytest.mark.parametrize(
    ("text", "weights", "activations", "output", "padding"),
    [
        ("", "int4", "int4", "int4", "zero"),
        ("w1a1", "bipolar1", "bipolar1", "bipolar1", "zero"),
        ("w1a2", "bipolar1", "uint2", "uint2", "zero"),
        ("W1A2", "bipolar1", "uint2", "uint2", "zero"),
        ("w2a1", "offset2", "uint1", "uint1", "zero"),
        ("w4a4", "offset4", "uint4", "uint4", "zero"),
        ("w4a4:signed.signed", "int4", "int4", "int4", "zero"),
        ("w2a2:signed.unsigned", "int2", "uint2", "uint2", "zero"),
        ("w1a1:plus", "bipolar1", "bipolar1", "bipolar1", "plus"),
        ("w1a1o2", "bipolar1", "bipolar1", "uint2", "zero"),
        ("w2a2o1", "offset2", "uint2", "uint1", "zero"),
        ("w8a8:signed-2of4.signed-z3", "int8-2of4", "int8-z3", "int8-z3", "zero"),
        ("w4a4:signed-2of4.signed-2of4", "int4-2of4", "int4-2of4", "int4", "zero"),
        ("w2a2o8:signed.unsigned.signed:minus", "int2", "uint2", "int8", "minus"),
    ],
)
def test_texts_of_precisions(text, weights, activations, output, padding):
    found = Precision.of(text)
    assert [found.weights.name, found.activations.name, found.output.name] == [weights, activations, output]
    assert found.padding == padding
    assert Precision.of(found) is found
    assert found.outputs == (output, "int32")


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ("", "expected the types of the operands after the colon, such as w1a2"),
        ("w1", "operand types 'w1': expected the bits of weights and activations"),
        ("int4", "operand types 'int4'"),
        ("a1w2", "expected the bits of weights and activations"),
        ("w0a1", "operand bits=0"),
        ("w9a1", "have 1 to 8 bits"),
        ("w1a1o9", "have 1 to 8 bits"),
        ("w1a2:sined.unsigned", "did you mean signed"),
        ("w1a2:pluss", "did you mean plus"),
        ("w1a2:signed", "with points between"),
        ("w1a2:signed.signed.signed.signed", "with points between"),
        ("w1a2:signed.signed:zero:plus", "too many parts"),
        ("w1a2::plus", "too many parts"),
        ("w4a4:signed-z9.signed", "zero point 9"),
        ("w4a4:signed-4of2.signed", "sparsity '4:2'"),
        ("w1a2@8", "operand types 'w1a2@8'"),
    ],
)
def test_refused_texts(types, words):
    for name in (SPEC, "resnet50.stage2@8", "gemm64x64x64"):
        with pytest.raises(InvalidInput) as error:
            workload(f"{name}:{types}")
        assert words in str(error.value)


def test_int4_is_the_default_and_keeps_its_texts():
    plain = workload(SPEC)
    assert (plain.precision, plain.spec, plain.kind) == (INT4, SPEC, "conv")
    assert workload(f"{SPEC}:w4a4:signed.signed") == plain
    assert workload(f"{SPEC}:w4a4:signed.signed").spec == SPEC
    assert plain.bytes_moved == (8 * 56 * 56 * 64 * 2 + 64 * 9 * 64) // 2


def test_types_are_a_part_of_a_workload():
    plain, bits = workload(SPEC), workload(f"{SPEC}:w1a2")
    assert plain != bits
    assert hash(plain) != hash(bits)
    assert len({plain, bits}) == 2
    assert bits.spec == f"{SPEC}:w1a2"
    assert bits.operations == plain.operations
    assert bits.bytes_moved == (8 * 56 * 56 * 64 * 2 * 2 + 64 * 9 * 64) // 8
    assert (bits.channel_blocks, plain.channel_blocks) == (1, 2)
    for other in ("w1a1", "w1a2:plus", "w1a2:bipolar.unsigned.signed", "w1a2:signed.unsigned", "w1a3", "w1a2o4",
                  "w1a2:bipolar.unsigned-2of4"):  # fmt: skip
        assert workload(f"{SPEC}:{other}") != bits


def test_named_layers_and_networks_take_types():
    stage = workload("ResNet50.Stage2@8:W1A2")
    assert (stage.name, stage.label) == ("resnet50.stage2@8:w1a2",) * 2
    assert workload(stage.label) == stage
    assert workload("resnet50.stage2:w1a2") == stage
    layers = workloads("resnet18@4:w2a2")
    assert {layer.precision.text for layer in layers} == {"w2a2"}
    assert len(workloads(["resnet18@4:w2a2", "resnet18@4"])) == 2 * len(layers)
    assert "bipolar1 x uint2" in stage._repr_html_()
    assert "operands" not in workload("resnet50.stage2@8")._repr_html_()


@given(st.integers(2, 8))
def test_an_encoding_of_ones_own(bits):
    ones = Encoding("ones", lambda code, bits: code.bit_count(), "ones", "how many bits are set")
    register_encoding(ones)
    register_encoding(ones)
    try:
        assert "ones" in encodings()
        found = workload(f"{SPEC}:w{bits}a{bits}:ones.ones-2of4").precision
        assert (found.weights.least, found.weights.largest, found.weights.contiguous) == (0, bits, True)
        assert (found.weights.name, found.activations.name) == (f"ones{bits}", f"ones{bits}-2of4")
        for other in (
            Encoding("ones", lambda code, bits: code, "ones", ""),
            Encoding("others", lambda code, bits: code, "int", ""),
        ):
            with pytest.raises(InvalidInput, match="choose another name"):
                register_encoding(other)
    finally:
        unregister_encoding("ones")
    with pytest.raises(InvalidInput, match="encoding 'ones'"):
        workload(f"{SPEC}:w{bits}a{bits}:ones.ones")
    with pytest.raises(InvalidInput, match="small letters"):
        register_encoding(Encoding("one4", lambda code, bits: code, "one", ""))


def test_bytes_are_those_of_pixels_that_an_output_reads():
    """Against every tap of every output; a count that knows no stride must not pass."""
    rng, differ = np.random.default_rng(7), 0
    for _ in range(400):
        h, w, r, s, stride, dilation, pad = (int(rng.integers(low, high)) for low, high in (
            (1, 20), (1, 20), (1, 6), (1, 6), (1, 6), (1, 7), (0, 9)))  # fmt: skip
        try:
            found = ConvWorkload(1, h, w, 32, 32, r, s, pad, stride, dilation)
        except InvalidInput:
            continue
        rows = {p * stride + tap * dilation - pad for p in range(found.p) for tap in range(r)} & set(range(h))
        columns = {q * stride + tap * dilation - pad for q in range(found.q) for tap in range(s)} & set(range(w))
        assert found.pixels_read == len(rows) * len(columns), found.spec
        differ += found.pixels_read != h * w
    assert differ > 50
    strided = ConvWorkload(8, 56, 56, 256, 512, 1, 1, 0, 2)
    assert strided.bytes_moved == (8 * 28 * 28 * 256 + 512 * 256 + 8 * 28 * 28 * 512) // 2
    long = ConvWorkload(1, 10**9 - 1, 1, 32, 32, 3, 1, 0, 7, 1)
    assert long.pixels_read == 3 * long.p  # at once
