"""Records of bit networks: one sum, planes in memory, a batch normalization folded; their commands."""

import json

import numpy as np
import pytest

from subbyte import Thresholds
from subbyte.cli.main import main
from subbyte.errors import InvalidInput
from subbyte.numerics import encode, pack_planes, random_values, reference
from subbyte.technique import bit_sum, folding, planes
from subbyte.workload import workload

PRECISIONS = ["w1a1", "w1a1:minus", "w1a1:plus", "w1a2", "w2a2", "w2a3:signed.bipolar", "w3a3:bipolar.bipolar", "w4a4"]


@pytest.mark.parametrize("types", PRECISIONS)
def test_a_sum_is_that_of_the_reference(types):
    wl = workload(f"n2h4w5c40k3r3s3p1u2:{types}")
    rng = np.random.default_rng(4)
    x = random_values(wl.precision.activations, (2, 4, 5, 40), rng)
    w = random_values(wl.precision.weights, (3, 3, 3, 40), rng)
    y, words = reference(wl, x, w), pack_planes(x, wl.precision.activations, "nhwc").words
    for at in np.ndindex(wl.p, wl.q):
        found = bit_sum(wl, at, image=1, channel=2, x=x, w=w)
        assert found.total == found.reference == y[(1, *at, 2)]
        middle = found.taps[4]
        assert middle.inside
        assert np.array_equal(middle.activations, words[:, 1, 2 * at[0], 2 * at[1]])
        assert found.parts[3] == 40 * (sum(tap.inside for tap in found.taps) if found.border == "classes" else 9)
        assert f"= {found.total}; by the values" in found.text()
    drawn = bit_sum(wl, seed=1)
    assert drawn.total == drawn.reference
    assert drawn != bit_sum(wl, seed=2)
    assert drawn.table().columns[:3] == ("r", "s", "inside")


def test_a_sum_that_does_not_exist_is_refused():
    wl = "n2h4w5c40k3r3s3p1:w1a1"
    for given, words in (
        ({"at": (4, 0)}, "output row=4: must be an integer from 0 to 3"),
        ({"at": (0, 5)}, "output column=5"),
        ({"image": 2}, "image=2"),
        ({"channel": 3}, "output channel=3"),
        ({"x": np.zeros((2, 4, 5, 40), np.int8)}, "x holds the value 0"),
        ({"w": np.ones((3, 3, 3, 41), np.int8)}, "w is int8 [3, 3, 3, 41]"),
    ):
        with pytest.raises(InvalidInput) as error:
            bit_sum(wl, **given)
        assert words in str(error.value)


def test_planes_have_the_sizes_of_packed_words():
    wl = workload("n9h5w4c64k70r3s3p1:w3a2:bipolar.signed")
    found = planes(wl)
    assert [(one.what, one.alpha, one.weights, one.zeta) for one in found.planes] == [
        ("activations", 1, (1, -2), 0), ("weights", 2, (1, 2, 4), 7), ("output", 1, (1, -2), 0),
    ]  # fmt: skip
    shapes = {"activations": (9, 5, 4, 64), "weights": (70, 3, 3, 64), "output": (9, 5, 4, 70)}
    types = wl.precision
    operands = {"activations": types.activations, "weights": types.weights, "output": types.output}
    for one in found.layouts:
        shape, operand = shapes[one.what], operands[one.what]
        words = pack_planes(random_values(operand, shape, np.random.default_rng(0)), operand, one.layout).words
        assert (words.shape, words.nbytes) == (one.shape, one.bytes)
        assert one.used == pytest.approx(operand.bits * np.prod(shape) / (8 * words.nbytes))
    assert [one.layout for one in found.layouts] == ["nhwc", "nb8", "nb8r", "fsb", "nhwc", "fsb", "nhwc", "nb8", "fsb"]
    assert "weights (bipolar3): value = 2 (b0 + 2 b1 + 4 b2) - 7" in found.text()
    assert "activations (int2): value = b0 - 2 b1" in found.text()


@pytest.mark.parametrize("types", PRECISIONS)
@pytest.mark.parametrize("gamma", [-1.5, 0, 0.75])
def test_folding_says_which_sums_give_which_value(types, gamma):
    wl = workload(f"n1h5w5c20k4r3s3p1:{types}")
    found = folding(wl, gamma=gamma, beta=0.5, step=0.5)
    thresholds = Thresholds.from_batch_norm(
        [gamma], 0.5, [found.mean], found.variance, step=0.5, output=wl.precision.output
    )
    sums = np.arange(found.least, found.most + 1, dtype=np.int32)
    values = thresholds.apply(sums[:, None])[:, 0]
    said = [one.value for one in found.ranges for _ in range(one.least, one.most + 1)]
    assert said == values.tolist()
    assert [one.code for one in found.ranges] == encode(
        np.array([one.value for one in found.ranges], wl.precision.output.dtype), wl.precision.output
    ).tolist()
    assert found.flip == (gamma < 0)
    assert ("turned over" in found.text()) == found.flip
    assert len(found.ranges) == 1 or gamma != 0


def test_sums_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInput, match="do not fit 32 bits"):
        folding("n1h1w1c80000k1r1s1:w8a8")
    with pytest.raises(InvalidInput, match="variance"):
        folding("n1h1w1c8k1r1s1:w1a1", variance=-1.0)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["bits", "n1h4w4c40k3r3s3p1:w1a1", "--at", "1,1"], "formula", "4 U - 2 S - 2 P + n"),
        (["planes", "n1h4w4c40k3r3s3p1:w1a2"], "workload", "n1h4w4c40k3r3s3p1:w1a2"),
        (["thresholds", "n1h4w4c40k3r3s3p1:w1a1", "--gamma=-1", "--mean", "3"], "levels", [4]),
    ],
)
def test_commands(capsys, words, field, value):
    assert main(["explain", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["topic"], found[field]) == (words[0], value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bits", "--at", "3"], "--at '3': expected an output pixel such as 0,0"),
        (["bits", "--at", "56,0"], "output row=56"),
        (["bits", "n1h4w4c40k3r3s3p1:w1"], "operand types 'w1'"),
        (["thresholds", "--gamma", "x"], "--gamma 'x': expected a number such as 0.5"),
        (["thresholds", "--step", "0"], "step=0.0"),
        (["thresholds", "--eps", "nan"], "--eps 'nan'"),
    ],
)
def test_wrong_commands_are_refused(capsys, words, message):
    assert main(["explain", *words]) == 2
    assert message in capsys.readouterr().err
