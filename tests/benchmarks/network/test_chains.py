"""Chains of the benchmark: layers that fit, exact outputs of each, and a wrong word noticed."""

import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.network import chains as layer_chain
from benchmarks.shared.kernel_pack import Packed, add, family_of
from subbyte.device.launch import Argument, Launch
from subbyte.emulator import run_cuda
from subbyte.families.mma.config import MmaConfig
from subbyte.gpu.chain import check_chain
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known
from subbyte.workload import workload

RECORD = Path(__file__).parents[3] / "benchmarks/results/warpgroup/chains-h200-2026-11-22.json"
LAUNCH = Launch("k", (1, 1, 1), (128, 1, 1), 0, (Argument("Out", "uint32", (1,), "out", "nhwcnc"),), 1, True)
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
        layer = workload(spec)
        kernel = Kernel(make_plan(layer, best_known(layer)[0], "sm_90a", None, None, "fixed"))
        chain.append(Packed(kernel.workload, family_of(kernel.config), kernel.config, "", b"", kernel.launch))
    check_chain([packed.launch for packed in chain])
    inputs, expected = layer_chain.operands(chain, arrays=np)
    words = None
    for packed, given, wanted in zip(chain, inputs, expected, strict=True):
        kernel = Kernel(make_plan(packed.workload, packed.config, "sm_90a", None, None, "fixed"))
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


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Calls ``measure`` on two chains with times that are made up; what it measured, and the record on the disk."""
    layers = [workload(spec) for spec in SMALL]
    device = SimpleNamespace(
        info=SimpleNamespace(name="NVIDIA H200", to_dict=lambda: {"name": "NVIDIA H200", "sms": 132})
    )

    def call(cubin=b"kernel", stop_at=""):
        folder, asked = tmp_path / "pack", []
        (folder / "kernels.jsonl").unlink(missing_ok=True)
        add(folder, [Packed(layer, "mma", MmaConfig(), "", cubin, LAUNCH) for layer in layers])
        names = {"first": [layers[0].label, layers[1].label], "second": [layers[1].label, layers[2].label]}
        (folder / "chains.json").write_text(json.dumps(names))

        def time_alone(packed, *_):
            asked.append(packed.workload.label)
            return SimpleNamespace(microseconds=1.0, samples=(1.0,), clocks=dict)

        def one(chain, *_):
            name = next(name for name, labels in names.items() if labels[0] == chain[0].workload.label)
            if name == stop_at:
                raise KeyboardInterrupt
            asked.append(name)
            return {"summary": "fine", "wrong": 0}

        monkeypatch.setattr(layer_chain, "time_alone", time_alone)
        monkeypatch.setattr(layer_chain, "one", one)
        with suppress(KeyboardInterrupt):
            layer_chain.measure(folder, device, tmp_path / "record.json")
        record = json.loads((tmp_path / "record.json").read_text())
        return asked, [chain["name"] for chain in record["chains"]], record

    return call


def test_a_stopped_run_goes_on_with_the_chains_it_lacks(measured):
    asked, chains, _ = measured(stop_at="second")
    assert (asked, chains) == ([*SMALL[:2], "first", SMALL[2]], ["first"])
    asked, chains, record = measured()
    assert (asked, chains) == ([SMALL[2], "second"], ["first", "second"])
    assert [layer["layer"] for layer in record["layers"]] == list(SMALL)
    assert len(record["runs"]) == 2
    assert measured()[0] == []
    asked, chains, record = measured(b"another kernel", stop_at="second")
    assert chains == ["first", "second"]
    assert len({chain["kernels"] for chain in record["chains"]}) == 2
    asked, chains, record = measured(b"another kernel")
    assert (asked, chains) == ([SMALL[2], "second"], ["first", "second"])
    assert len({chain["kernels"] for chain in record["chains"]}) == 1
