"""Where planes lie in a kernel, and what a thread adds up: as the generated kernel does it, line by line."""

import json
import re

import numpy as np
import pytest

from subbyte.cli.main import main
from subbyte.device.arch import arch
from subbyte.emulator.inline_asm import split_outside
from subbyte.emulator.trace import of_kind
from subbyte.errors import InvalidInput
from subbyte.families.bits.config import BitsConfig
from subbyte.families.bits.explain import PlaneComposition, plane_composition
from subbyte.families.bits.space import plan_of
from subbyte.kernel import Kernel
from subbyte.kernel.execute import expected, random_operands
from subbyte.numerics import random_values
from subbyte.technique import bit_sum, explained
from subbyte.workload import workload
from subbyte.workload.precision import SUMS

COUNT = re.compile(r"counts(\d)_ptr\[(\d+)\](?: \* \(uint\)(\d+))?")


def _terms(words):
    return sorted((int(number), int(register), int(factor or 1)) for number, register, factor in COUNT.findall(words))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("spec", "knobs", "pixel"),
    [
        ("n8h3w5c40k40r3s3p1:w2a2", {"channels": 32, "consumers": 1}, 3),
        ("n8h2w9c20k70r3s3p1:w1a3:bipolar.signed", {"channels": 64, "consumers": 1, "doubled": 1}, 0),
    ],
)
def test_a_thread_adds_what_the_kernel_adds(spec, knobs, pixel):
    plan = plan_of(workload(spec), BitsConfig().with_values(knobs), arch("sm_90a"), SUMS)
    kernel = Kernel(plan)
    x, w, _ = random_operands(kernel, 0)
    run, lines = kernel.trace(), kernel.cuda.splitlines()
    stores = of_kind(run.trace, "global_store")
    own = {name: _terms(words) for name, words in re.findall(r"uint (ones\w*) = (.*);", kernel.cuda)}
    values = expected(kernel, x, w, None)
    wl = plan.workload
    for image in (0, 5):
        record = plane_composition(plan, image, pixel, x=x, w=w)
        assert len(record.outputs) == 32
        for one in record.outputs:
            place = (record.at[0] * wl.q + record.at[1]) * wl.filter_blocks + one.channel // wl.precision.output.block
            at = 4 * ((place * 8 + image) * wl.precision.output.block + one.channel % wl.precision.output.block)
            within = one.channel % 4  # of four sums at a time, of which the trace has the first
            (store,) = stores[stores["offset"] == at - 4 * within]
            assert (store["warp"] % 4, store["lane"]) == (record.warp, one.lane)
            assert within or int(np.uint32(store["value"]).view(np.int32)) == one.total
            assert one.total == values[image, *record.at, one.channel]
            call = lines[store["line"] - 1]  # an address, then the sums
            line = split_outside(call[call.index("(") + 1 : call.rindex(")")], ",")[1 + within]
            said = [term for term in one.terms if term.weight_plane >= 0]
            assert _terms(line) == sorted((term.set, term.register, term.factor & 0xFFFFFFFF) for term in said)
            counted = sorted(
                (term.set, term.register, term.factor & 0xFFFFFFFF) for term in one.terms if term not in said
            )
            names = re.findall(r"\bones\w*", line)
            assert (own[names[0]] if names else []) == counted
    assert {*of_kind(run.trace, "wgmma")["size"].tolist()} == {record.columns}


def test_all_counts_are_of_the_values():
    """A pixel in the corner, where padding counts as 0 though no code is: the sum is that of the values."""
    record = explained(PlaneComposition, "n8h3w5c40k40r3s3p1:w1a1", image=2, seed=3)
    wl = record.workload
    assert (record.batch, record.at, record.row, record.warp) == (2, (0, 0), 2, 0)
    rng = np.random.default_rng(3)
    smaller = workload("n3h3w5c40k40r3s3p1:w1a1")
    x = random_values(wl.precision.activations, (3, 3, 5, 40), rng)
    w = random_values(wl.precision.weights, (40, 3, 3, 40), rng)
    for one in record.outputs:
        assert one.total == bit_sum(smaller, (0, 0), 2, one.channel, x=x, w=w).reference
    assert f"= {record.outputs[0].total}" in record.text()


def test_a_matrix_product_has_rows_of_several_groups():
    record = explained(PlaneComposition, "gemm64x128x256:w1a2", pixel=3, image=1)
    assert (record.row, record.warp, record.planes) == (25, 1, 2)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"pixel": 8}, "pixel=8: a tile has pixels 0 to 7"),
        ({"pixel": 6}, "rows have 5 pixels"),
        ({"image": -1}, "image=-1"),
    ],
)
def test_a_pixel_that_is_not_there_is_refused(where, words):
    with pytest.raises(InvalidInput, match=words):
        explained(PlaneComposition, "n8h3w5c40k40r3s3p1:w1a1", **where)


def test_the_command(capsys):
    assert main(["explain", "composition", "n8h3w5c40k40r3s3p1:w2a2", "--pixel", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["planes"], found["weight_planes"], len(found["outputs"])) == (2, 2, 32)
    assert main(["explain", "composition", "n8h3w5c40k40r3s3p1"]) == 2
    assert capsys.readouterr().err
