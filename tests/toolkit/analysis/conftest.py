"""A small made-up landscape with failures; the finals of made-up searches."""

from __future__ import annotations

import numpy as np
import pytest

import subbyte
from subbyte.families import space
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape


@pytest.fixture(scope="session")
def recorded() -> Landscape:
    """A small made-up landscape with failures."""
    here = subbyte.space("n8h7w7c64k64r3s3p1")
    results = FakeRunner(noise=0.05, failures={"timeout": 0.1}).run(
        here.workload, [here.config(index) for index in here.valid]
    )
    return Landscape.from_results(here, dict(zip(here.valid, results, strict=True)), {"name": "Some GPU"})


GAINS = {"full": 1.5, "shared": 1.2, "none": 1.0, "rp": 1.1, "sp": 1.0, "nhwcnc": 1.3, "nhwc": 1.0}
NAMES = [f"{a}-{b}-{c}" for a in ("none", "shared", "full") for b in ("sp", "rp") for c in ("nhwc", "nhwcnc")]


def entry(name, time, place=0):
    index = space("resnet50.stage2@8").valid[place]
    samples = [time * factor for factor in (0.99, 1.0, 1.01)]
    return {"switches": name, "index": index, "trials": 500, "microseconds": time, "samples": samples}


def make_finals(left_out=""):
    entries = []
    for name in [name for name in NAMES if name != left_out]:
        time = 10.0 / np.prod([GAINS[part] for part in name.split("-")])
        entries += [entry(name, time * 1.2, 1), entry(name, time)]
    entries.append({**entry("exhaustive", 4.0), "trials": 0})
    return {
        "format": "subbyte-tuned-finals", "schema": 1, "stage": 2, "strategy": "autotvm", "seed": 0, "trials": 500,
        "device": {"name": "Test GPU"}, "entries": entries,
    }  # fmt: skip


@pytest.fixture
def finals():
    """``finals(left_out="")``: the plain data of a finals file with known gains, without one combination."""
    return make_finals
