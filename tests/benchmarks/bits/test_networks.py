"""Whole networks: packed for another machine, and compared with a direct convolution of values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.bits import networks
from benchmarks.bits.networks import differing, direct, packed, unpacked
from subbyte.errors import WrongResult
from subbyte.networks import Network, network
from subbyte.networks.builder import Builder
from subbyte.networks.layer import pixel_values


def test_the_direct_convolution_is_the_reference() -> None:
    for order in ("before", "after"):
        made = Builder(3, (16, 16, 3), "w1a2", order).conv(16, 3, stride=2, name="stem").conv(16, 3, pool=2)
        made.conv(24, 3, name="kept").conv(40, 3, stride=2, residual="kept", name="added").fc(10)
        found = Network("small@3", made.layers, "made up here")
        given, images = found.random_parameters(2), found.random_images(1)
        right = found.reference(images, given)
        for ours, layer in zip(direct(found, given, images, np), right.layers, strict=True):
            np.testing.assert_array_equal(ours[0], layer.sums if layer.values is None else layer.values)
            if layer.sums is not None:
                np.testing.assert_array_equal(ours[1], layer.sums)


class Emulated:
    """What a chain on a GPU wrote, from the kernels' runs on the CPU."""

    def __init__(self, outputs: list[dict[str, Any]]) -> None:
        self.outputs = outputs

    def output(self, layer: int, name: str = "Out") -> Any:
        return self.outputs[layer][name]


@pytest.mark.deep
def test_every_layer_of_a_chain_is_compared() -> None:
    """The layers of tests/toolkit/networks/test_running.py, whose kernels are compiled there."""
    made = Builder(3, (32, 32, 3), "w1a2", "before").conv(32, 3, stride=2, pool=2, name="stem")
    made.conv(32, 3, name="kept").conv(64, 3, stride=2, residual="kept", name="added").fc(10)
    compiled = Network("small@3", made.layers, "made up here").compile()
    images = compiled.network.random_images()
    outputs = compiled.chain().outputs(pixel_values(images))
    names = ["stem", "kept", "added", "fc1"]
    assert list(differing(compiled, Emulated(outputs), images, np)) == [(name, 0) for name in names]  # type: ignore[arg-type]
    outputs[1]["Sum"][0] ^= 1
    outputs[3]["Out"][0] += 1
    counts = dict(differing(compiled, Emulated(outputs), images, np))  # type: ignore[arg-type]
    assert counts == {"stem": 0, "kept": 1, "added": 0, "fc1": 1}


def test_a_pack_is_the_network() -> None:
    found = network("digits.w1a1@8")
    given = packed(found)
    assert [one["output"] for one in given["layers"]] == ["bipolar1", "bipolar1", "int32"]
    back = unpacked(given)
    for one, other in zip(back.kernels, found.compile().kernels, strict=True):
        assert one.kernel.cubin == other.kernel.cubin
        assert one.kernel.plan == other.kernel.plan
        assert one.kernel.resources == other.kernel.resources


def test_a_network_that_fails_leaves_the_others(monkeypatch):
    def fails(given, device, xp):
        raise WrongResult("words differ between two runs")

    monkeypatch.setattr(networks, "measured", fails)
    found = networks.attempted({"name": "tcbnn.mlp@8"}, None, np)
    assert found == {"name": "tcbnn.mlp@8", "failed": "words differ between two runs"}


def test_the_networks_of_the_h100_are_in_the_notes() -> None:
    root = Path(__file__).resolve().parents[3] / "benchmarks"
    path = root / "results" / "bits" / "networks-h100-2026-11-27.json"
    text = (root / "notes" / "bits.md").read_text(encoding="utf-8")
    lines = text[text.index(path.name) :].splitlines()
    lines = lines[lines.index("  | us (images a second) on an H100 | @8 | @64 | @256 | @512 |") :]
    batches = [cell.strip() for cell in lines[0].strip(" |").split("|")][1:]
    said: dict[str, str] = {}
    for line in lines[2 : lines.index("")]:
        name, *cells = (cell.strip() for cell in line.strip(" |").split("|"))
        said |= {name + batch: cell.split()[0] for batch, cell in zip(batches, cells, strict=True) if cell != "-"}
    found = json.loads(path.read_text(encoding="utf-8"))["networks"]
    assert said == {one["name"]: f"{one['microseconds']:,.1f}" for one in found}
    assert not any(one["wrong"] or one["wrong_by_layer"] for one in found)
