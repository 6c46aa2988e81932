"""Chains of the benchmark: layers that fit, exact outputs of each, and a wrong word noticed."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import subbyte
from subbyte.emulator import run_cuda
from subbyte.measure.chain import check_chain
from subbyte.workload import workload

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import layer_chain
from kernel_pack import Packed, family_of

RECORD = Path(__file__).parents[2] / "benchmarks/results/warpgroup/chains-h200-2026-11-20.json"
SMALL = ("n8h6w6c32k64r1s1p0", "n8h6w6c64k64r3s3p1", "n8h6w6c64k96r3s3p1u2")


@pytest.mark.parametrize("batch", [1, 8])
def test_each_layer_takes_what_the_one_before_gives(batch):
    chains = layer_chain.chains(batch)
    assert [len(layers) for layers in chains.values()] == [4, 4, 4, 4, 48]
    for layers in chains.values():
        for before, after in pairwise(layers):
            assert (before.n, before.p, before.q, before.k) == (after.n, after.h, after.w, after.c)
    path = chains["resnet50 main path"]
    assert {(layer.r, layer.stride) for layer in path} == {(1, 1), (3, 1), (3, 2)}
    assert (path[0].c, path[-1].k, path[-1].p) == (64, 2048, 7)


def test_outputs_are_compared_layer_by_layer():
    chain = []
    for spec in SMALL:
        kernel = subbyte.compile(workload(spec))
        chain.append(Packed(kernel.workload, family_of(kernel.config), kernel.config, "", b"", kernel.launch))
    check_chain([packed.launch for packed in chain])
    inputs, expected = layer_chain.operands(chain, arrays=np)
    words = None
    for packed, given, wanted in zip(chain, inputs, expected, strict=True):
        kernel = subbyte.build(packed.workload, packed.config)
        out = kernel.argument("Out")
        buffers = {**given, "Out": np.zeros(out.shape, out.dtype)} | ({} if words is None else {"A": words})
        run_cuda(kernel.cuda, kernel.launch, buffers, check=False)
        words = buffers["Out"]
        assert layer_chain.differing(packed, words, wanted) == 0
    words.flat[5] ^= 0x10
    assert layer_chain.differing(chain[-1], words, expected[-1]) == 1
    assert len(np.unique(expected[-1])) >= 12


def test_the_record_holds_exact_chains():
    record = json.loads(RECORD.read_text())
    alone = {layer["layer"]: layer["microseconds"] for layer in record["layers"]}
    assert record["device"]["name"] == "NVIDIA H200"
    assert [chain["name"] for chain in record["chains"]] == [
        f"{name}, batch {batch}" for batch in (8, 64, 256) for name in layer_chain.chains(batch)
    ]
    for chain in record["chains"]:
        assert chain["wrong"] == 0
        assert chain["compared"] == 2 * sum(w.n * w.p * w.q * w.k for w in map(workload, chain["layers"]))
        assert chain["distinct_values_of_last"] >= 8
        assert chain["layers_alone_microseconds"] == pytest.approx(sum(alone[name] for name in chain["layers"]))
        assert min(chain["samples"] + chain["overlapping_samples"]) > 0
