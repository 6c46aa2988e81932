"""Bundles measured in turns: kernels of a schedule one after the other, and nothing lost when the program is killed."""

import importlib.util
import json
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.paper import measure as measure_together
from subbyte.device.launch import Argument, Launch
from subbyte.families import space
from subbyte.gpu.device import CudaDevice
from subbyte.measure.case import Case, Evaluator
from subbyte.records.manifest import open_bundle
from subbyte.records.measurements import read_results
from subbyte.records.result import Measured
from subbyte.workload import ConvWorkload

ROOT = Path(__file__).parents[3]
LAYER = ConvWorkload(8, 3, 3, 32, 32, 3, 3, 1)
LAUNCH = Launch("k", (1, 1, 1), (128, 1, 1), 0, (Argument("Out", "uint32", (1,), "out", "nhwcnc"),), 1, True)
SCHEDULES = 4


class Counting(Evaluator):
    """Times that are made up; ends like a killed process at one of them."""

    def __init__(self, device, case, stop_at):
        super().__init__(device, case)
        self.asked, self.stop_at = [], stop_at

    def evaluate(self, cubin, launch):
        if len(self.asked) == self.stop_at:
            raise KeyboardInterrupt
        self.asked.append(cubin)
        return Measured(float(len(self.asked)), verified=True)


@pytest.fixture
def device():
    place = importlib.util.spec_from_file_location(
        "fake_gpu", ROOT / "tests" / "toolkit" / "measure" / "fake_driver.py"
    )
    fake = importlib.util.module_from_spec(place)
    place.loader.exec_module(fake)
    return CudaDevice(0, fake.FakeDriver({}))


@pytest.fixture
def bundles(device, tmp_path):
    """Two bundles of the same schedules; each kernel's machine code names both."""
    found = {}
    for name in ("one", "two"):
        folder = tmp_path / name
        here = space(LAYER, device.info.arch)
        open_bundle(here, folder)
        indices = here.valid[:SCHEDULES]
        (folder / "cubins").mkdir()
        with open(folder / "manifest.jsonl", "a", encoding="utf-8") as manifest:
            for index in indices:
                (folder / f"cubins/{index}").write_bytes(f"{index} {name}".encode())
                entry = {"index": index, "config": {}, "cubin": f"cubins/{index}", "program": f"{index} {name}",
                         "launch": LAUNCH.to_dict(), "seconds": 1.0}  # fmt: skip
                manifest.write(json.dumps(entry) + "\n")
        found[folder] = set(indices)
    return found


def run(device, bundles, out, stop_at=None):
    evaluator = Counting(device, Case(LAYER), stop_at)
    out.mkdir(exist_ok=True)
    with suppress(KeyboardInterrupt):
        measure_together.in_turns(evaluator, bundles, out)
    return [cubin.decode().split() for cubin in evaluator.asked]


def test_kernels_of_a_schedule_follow_each_other_and_a_killed_run_goes_on(device, bundles, tmp_path):
    out = tmp_path / "out"
    whole = run(device, bundles, tmp_path / "whole")
    assert len(whole) == 2 * SCHEDULES
    assert all(one[0] == two[0] and one[1] != two[1] for one, two in zip(whole[::2], whole[1::2], strict=True))
    first = run(device, bundles, out, stop_at=5)
    with open(out / "one.jsonl", "a", encoding="utf-8") as file:
        file.write('{"index": 3, "micro')  # killed while writing
    rest = run(device, bundles, out)
    assert [*first, *rest] == whole
    assert run(device, bundles, out) == []
    for name in ("one", "two"):
        assert len(read_results(out / f"{name}.jsonl").results) == SCHEDULES
