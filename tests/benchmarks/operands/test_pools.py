"""Pooling beside the layer before it, on a GPU that is played by the emulator: a right kernel is timed, a wrong one is
named."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.operands import measure, pools
from subbyte.emulator import run_cuda
from subbyte.kernel import Pooling
from subbyte.kernel.pool.text import pool_kernel_of, pool_kernel_text


class Played:
    """A kernel whose machine code is its text."""

    def __init__(self, text, launch, device):
        self.text, self.launch = text, launch

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, buffers):
        out = np.empty(self.launch.arguments[-1].shape, np.uint32)
        run_cuda(self.text, self.launch, {**buffers, "Out": out}, check=False)
        return {"Out": out}

    def time(self, protocol, telemetry):
        return SimpleNamespace(microseconds=2.0, clocks=dict)


@pytest.fixture
def line():
    kernel = Pooling("max", 3, 2, 1).kernel((8, 5, 5, 32))
    return {"side": "pool", "label": "small", "family": "", "pool": pool_kernel_text(kernel), "cuda": kernel.cuda}


@pytest.mark.parametrize(("old", "new", "wrong"), [("", "", 0), ("(larger >> (uint)4)", "(larger >> (uint)3)", None)])
def test_a_pooling_kernel_is_compared_before_it_is_timed(line, old, new, wrong, tmp_path, monkeypatch):
    text = line["cuda"].replace(old, new) if old else line["cuda"]
    monkeypatch.setattr(pools, "GpuKernel", Played)
    monkeypatch.setattr(measure, "Telemetry", lambda _: None)
    monkeypatch.setattr(pools, "all_compiled", lambda lines: [(text, "") for _ in lines])
    monkeypatch.setattr(pools, "CudaDevice", lambda _: SimpleNamespace(info=SimpleNamespace(bus_id="", to_dict=dict)))
    (tmp_path / "texts.jsonl").write_text(json.dumps(line) + "\n")
    code = pools.main([str(tmp_path / "texts.jsonl"), str(tmp_path / "record.json")])
    (side,) = json.loads((tmp_path / "record.json").read_text())["cases"][0]["sides"]
    assert (code, side["wrong"]) == (int(wrong is None), wrong)
    if wrong is None:
        assert "elements differ" in side["reason"]
    else:
        assert side["runs_us"] == [2.0, 2.0]


def test_texts_name_their_kernels():
    for pooling, shape in [(Pooling("average", (2, 3), 1, 1, count_padding=False), (9, 4, 5, 40)),
                           (Pooling("max", 2), (1, 2, 2, 8))]:  # fmt: skip
        kernel = pooling.kernel(shape, "sm_80", "uint4", "nhwc")
        assert pool_kernel_of(pool_kernel_text(kernel)) == kernel


def test_a_record_is_asked_for(tmp_path, capsys):
    assert pools.main([str(tmp_path / "texts.jsonl")]) == 2
    assert "name the record to write" in capsys.readouterr().err
