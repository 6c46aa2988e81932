"""Kernels without one of their parts, from the build to the record: the real cut texts behind a driver in Python."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

from benchmarks.bits import measure, parts
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.kernel.execute import EMULATOR, run_outputs

QUICK = TimingProtocol(launches=1, warmup_ms=0.01, min_total_ms=0.01, repeats=1, cold=False, spin_up_ms=0.0)
CELL = "n8h4w4c64k64r3s3p1:w1a1"


@pytest.fixture
def measured(fake, monkeypatch, tmp_path):
    """Measures what was built for a cell and gives (exit status, record); cut kernels write nothing, like real ones."""
    file, out = tmp_path / "parts.json", tmp_path / "record.json"
    assert parts.main(["--build", str(file), CELL]) == 0
    (built,) = json.loads(file.read_text())
    kernel = measure.kernel_of(CELL, built["config"])
    arguments = kernel.launch.arguments

    def run(flipped: int):
        @fake.kernel(len(arguments))
        def whole(arrays):
            words = {a.name: array[: int(np.prod(a.shape))] for a, array in zip(arguments, arrays, strict=True)}
            given = {a.name: words[a.name].view(a.dtype).reshape(a.shape) for a in arguments if a.role == "in"}
            for name, found in run_outputs(kernel, given, EMULATOR).items():
                words[name][...] = found.reshape(-1).view(np.uint32)
                words[name][0] ^= flipped

        cut = fake.kernel(len(arguments))(lambda arrays: None)
        cubins = {part: base64.b64decode(code) for part, code in built["cubins"].items()}
        assert len(set(cubins.values())) == len(cubins)
        driver = fake.Driver({code: whole if part == "whole" else cut for part, code in cubins.items()})
        monkeypatch.setattr("subbyte.gpu.launched.open_device", lambda ordinal: CudaDevice(ordinal, driver))
        monkeypatch.setattr(parts, "PROTOCOL", QUICK)
        status = parts.main(["--measure", str(file), "--out", str(out)])
        (found,) = json.loads(out.read_text())["cells"]
        return status, found

    return run


def test_every_part_is_timed_and_whole_kernels_are_compared(measured):
    status, found = measured(flipped=0)
    assert (status, found["wrong"]) == (0, 0)
    assert set(found["microseconds"]) == {"whole", *parts.WITHOUT}
    assert {len(both) for both in found["samples"].values()} == {2}
    assert found["gpu"] == "Fake GPU"
    status, found = measured(flipped=1)
    assert (status, found["wrong"]) == (1, 2)  # one word in each of two rounds
