"""Kernels that find zeros beside dense ones: operands, rounds, the density at which they change places, the text."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key
from subbyte.kernel import Kernel
from subbyte.kernel.build import make_plan
from subbyte.kernel.execute import run_outputs
from subbyte.measure import densities
from subbyte.measure.break_even import break_even, crossing
from subbyte.measure.densities import LIBRARY, DensitiesShape, Side, check_densities, operands_of, strewn, text_of

SPEC = "gemm64x64x256"


def record(gains: dict[float, float], wrong: int = 0, noise: float = 0.0) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    rows = []
    for density, gain in gains.items():
        skips = [10.0 * (1 + noise * float(draw.standard_normal())) for _ in range(7)]
        sides = {
            "cd": {
                "microseconds": 10.0,
                "samples": skips,
                "wrong": wrong,
                "keeps": {"kept": 0.5, "kept_expected": 0.5},
            },
            "wg": {"microseconds": 10.0 * gain, "samples": [10.0 * gain] * 7, "wrong": 0, "keeps": None},
        }
        rows.append({"density": density, "elements": 64, "sides": sides})
    return {
        "schema": 1, "kind": "densities", "date": "2026-11-23", "command": "x", "workload": SPEC,
        "device": {"name": "some GPU", "arch": "sm_90a"}, "skipping": ["cd"], "dense": ["wg"], "rows": rows,
    }  # fmt: skip


def test_the_crossing_lies_between_neighbours_and_straight_in_logarithms():
    assert crossing([0.1, 0.025], [0.5, 2.0]) == pytest.approx(0.05)
    assert crossing([0.02, 0.05, 0.1], [0.9, 0.8, 0.7]) is None
    found = break_even(record({0.3: 0.4, 0.1: 0.5, 0.025: 2.0}, noise=0.01))
    assert found is not None
    assert found["low"] < found["value"] < found["high"]
    assert found["low"] == pytest.approx(0.05, abs=0.005)
    assert found["high"] == pytest.approx(0.05, abs=0.005)
    assert [one["gain"] > 1 for one in found["gains"]] == [False, False, True]


def test_what_is_to_be_taken_is_said():
    between = text_of(record({0.1: 0.5, 0.025: 2.0}, noise=0.01))
    for words in ("break-even: density 0.05", "95 % interval", "above it dense"):
        assert words in between
    assert "dense is faster at every density measured, 1.25 times at 0.02" in text_of(record({0.1: 0.5, 0.02: 0.8}))
    assert "finding zeros is faster at every density" in text_of(record({0.1: 1.5, 0.02: 1.8}))
    assert "WRONG: cd" in text_of(record({0.1: 0.5}, wrong=3))
    assert break_even(record({0.1: 0.5}, wrong=3)) is None


def test_a_record_is_printed_again_and_a_damaged_one_refused(tmp_path, capsys):
    found = record({0.1: 0.5, 0.025: 2.0})
    path = tmp_path / "found.json"
    path.write_text(json.dumps(found))
    assert main(["bench", "--from", str(path)]) == 0
    assert "break-even: density 0.05" in capsys.readouterr().out
    del found["rows"][0]["sides"]["cd"]["samples"]
    path.write_text(json.dumps(found))
    assert main(["bench", "--from", str(path)]) == 2
    assert "damaged" in capsys.readouterr().err


def test_operands_have_the_density_and_the_whole_range():
    workload = subbyte.workload("gemm256x128x512")
    x, w = strewn(workload, 0.25)
    for values in (x, w):
        assert np.mean(values != 0) == pytest.approx(0.25, abs=0.01)
        assert set(np.unique(values)) == set(range(-8, 8))
    assert not strewn(workload, 0.0)[0].any()
    assert strewn(workload, 1.0)[1].all()
    found = operands_of(workload, 0.02)
    assert len(np.unique(found.answer("int4"))) > 4  # of sparse operands too the output uses its range


@pytest.mark.parametrize("given", [[1.5], [-0.1], [], [float("nan")]])
def test_densities_outside_0_to_1_are_refused(given):
    with pytest.raises(InvalidInput, match="densit"):
        check_densities(given)


@pytest.mark.parametrize(("words", "said"), [
    ("bench gemm512 --sparsity condense --densities 0.1,2", "density '2': expected a share from 0"),
    ("bench gemm512 --densities 0.1", "--densities apply to WORKLOADs with --sparsity condense"),
    ("bench gemm512 gemm256 --sparsity condense", "takes one WORKLOAD"),
    ("run gemm512 --sparsity condense --density x", "density 'x': expected a share"),
    ("build gemm512 --sparsity condense --family wgmma", "its kernels find no zeros; those of condense do"),
    ("build resnet50.stage2@8 --sparsity condense", "1x1 layers of stride 1 without padding"),
    ("explain condense gemm512 --density 0.1,x", "expected a share from 0 to 1 such as 0.05, or two"),
])  # fmt: skip
def test_wrong_input_ends_in_one_sentence(words, said, capsys):
    assert main(words.split()) in (2, 3)
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


class Emulated:
    """A kernel on the CPU in the place of one on a GPU; its times are made up."""

    def __init__(self, cubin: bytes, launch: Any, device: Any) -> None:
        self.kernel, self.calls = KERNELS[cubin], 0

    def run(self, buffers: dict[str, Any]) -> dict[str, Any]:
        return run_outputs(self.kernel, dict(buffers), "emulator")

    def time(self, protocol: Any) -> Any:
        return SimpleNamespace(microseconds=2.0 if self.kernel.config.skips_zeros else 3.0)

    def close(self) -> None:
        pass


KERNELS: dict[bytes, Kernel] = {}


def test_all_sides_get_the_same_operands_and_are_compared(monkeypatch):
    monkeypatch.setattr(densities, "GpuKernel", Emulated)
    workload = subbyte.workload(SPEC)
    sides = []
    for key in ("cd-rw1-cw1-pn1-ch2-ct2", "brw1-bcw2-wrt4-wct4-ch1-ri0"):
        kernel = Kernel(make_plan(workload, config_from_key(key), "sm_90a", None, None, "fixed"))
        KERNELS[key.encode()] = kernel
        sides.append(Side(kernel, key.encode()))
    device: Any = SimpleNamespace(info=SimpleNamespace(to_dict=lambda: {"name": "x", "arch": "sm_90a"}, ordinal=0))
    found = densities.measure_densities(workload, sides, device, (0.05, 1), rounds=2)
    msgspec.convert(found, DensitiesShape)
    assert [row["density"] for row in found["rows"]] == [1.0, 0.05]
    assert all(one["wrong"] == 0 for row in found["rows"] for one in row["sides"].values())
    keeps = [row["sides"][sides[0].name]["keeps"] for row in found["rows"]]
    assert keeps[0]["kept"] == 1.0
    assert keeps[1]["kept"] == pytest.approx(keeps[1]["kept_expected"], abs=0.05)
    assert found["break_even"]["always"] == "skipping"
    assert LIBRARY not in found["rows"][0]["sides"]
