"""Ensembles on two GPUs: the real kernels' CUDA text behind a driver in Python, votes compared with the reference."""

from __future__ import annotations

from functools import partialmethod

import numpy as np
import pytest

from benchmarks.bits import ensembles as benchmark
from subbyte.errors import InvalidInput, MissingDependency, WrongResult
from subbyte.gpu import device as devices
from subbyte.gpu import together
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.kernel.execute import EMULATOR, resolve_devices, run_outputs
from subbyte.networks import perceptron
from subbyte.networks.ensemble import Ensemble, random_ensemble, where_they_ran
from subbyte.networks.ensemble_gpus import GpuEnsemble
from subbyte.networks.layer import pixel_values

QUICK = TimingProtocol(launches=2, warmup_ms=0.01, min_total_ms=0.01, repeats=2, cold=False, spin_up_ms=0.0)


@pytest.fixture(scope="module")
def members():
    found = perceptron("digits", "w1a1", widths=(24,))
    ensemble = random_ensemble(found, 3)
    kernels = found.compile().kernels
    for number, one in enumerate(kernels):
        one.kernel.__dict__["_machine_code"] = f"cubin {number}".encode(), one.kernel.resources
    first = found.compile()
    return ensemble, [type(first)(found, each, first.arch, kernels) for each in ensemble.parameters]


@pytest.fixture
def driver(fake, members):
    """Two GPUs whose kernels are the emulator's runs of the members' CUDA texts."""
    _, compiled = members
    return fake.Driver({one.kernel.cubin: emulated(fake, one.kernel) for one in compiled[0].kernels}, devices=2)


def emulated(fake, kernel):
    arguments = kernel.launch.arguments

    @fake.kernel(len(arguments))
    def body(arrays):
        words = {
            argument.name: array.view(argument.dtype)[: int(np.prod(argument.shape))].reshape(argument.shape)
            for argument, array in zip(arguments, arrays, strict=True)
        }
        given = {argument.name: words[argument.name] for argument in arguments if argument.role == "in"}
        for name, found in run_outputs(kernel, given, EMULATOR).items():
            words[name][...] = found

    return body


def test_members_on_two_gpus_vote_as_the_reference(driver, members):
    ensemble, compiled = members
    found = ensemble.network
    images, others = found.random_images(1), found.random_images(2)
    gpus = [CudaDevice(0, driver), CudaDevice(1, driver)]
    with GpuEnsemble(compiled, images, gpus) as running:
        assert [gpus.index(chain.device) for chain in running.chains] == [0, 1, 0]
        np.testing.assert_array_equal(running.run(), ensemble.reference(images).members)
        running.give(others)
        np.testing.assert_array_equal(running.run(), ensemble.reference(others).members)
        timing = running.time(QUICK)
        assert len(timing.samples) == 2
        assert timing.to_dict()["microseconds"] == timing.microseconds > 0
        assert len(timing.before) == 2
        seen = []
        assert len(running.time_votes(seen.append, runs=3)) == len(seen) == 3
        np.testing.assert_array_equal(seen[-1], ensemble.reference(others).members)
    assert not driver.pinned
    assert not driver.loaded


def test_logits_that_never_come_are_noticed(driver, members, monkeypatch):
    _, compiled = members
    images = compiled[0].network.random_images(1)
    with GpuEnsemble(compiled, images, [CudaDevice(0, driver), CudaDevice(1, driver)]) as running:
        right = running.run()
        monkeypatch.setattr(together.PinnedCopy, "enqueue", lambda *_: None)
        assert (running.run() != right).any()


def test_a_part_of_a_buffer_lies_within_it(driver, members):
    device = CudaDevice(0, driver)
    buffer = device.alloc(64)
    part = buffer.part(16, 16)
    part.upload(np.arange(4, dtype=np.int32))
    assert buffer.download((16,), np.int32)[4:8].tolist() == [0, 1, 2, 3]
    with pytest.raises(InvalidInput, match="bytes 60 to 68 of a device buffer of 64"):
        buffer.part(60, 8)
    _, compiled = members
    images = pixel_values(compiled[0].network.random_images(1))
    with pytest.raises(InvalidInput, match="out has 16 bytes"):
        compiled[0].chain().on_gpu(images, device, part)
    buffer.free()
    assert not driver.memory


@pytest.fixture
def two_gpus(driver, members, monkeypatch):
    """The library finds both GPUs of the driver, and the members that are built already."""
    opened = [CudaDevice(0, driver), CudaDevice(1, driver)]
    monkeypatch.setattr(devices, "open_device", opened.__getitem__)
    monkeypatch.setattr("subbyte.gpu.chain.open_device", opened.__getitem__)
    monkeypatch.setattr("subbyte.gpu.driver.detect", lambda: [one.info for one in opened])
    monkeypatch.setattr(Ensemble, "_compiled", lambda self, arch: members[1])
    return opened


def test_votes_of_many_images_come_from_both_gpus(two_gpus, members):
    ensemble, _ = members
    images = ensemble.network.at(20).random_images(3)  # two batches and a half
    result = ensemble.run(images, "cuda:0, cuda:1")
    np.testing.assert_array_equal(result.votes, ensemble.reference(images).votes)
    assert result.label == "the members ran on 2 GPUs"


@pytest.mark.deep
def test_times_say_where_they_are_from(two_gpus, members, monkeypatch):
    ensemble, compiled = members
    right = ensemble.reference(ensemble.network.random_images(0))
    checked = iter(right.members)
    monkeypatch.setattr(type(compiled[0]), "verified", lambda *_: right_of(next(checked)))
    monkeypatch.setattr(GpuEnsemble, "time_votes", partialmethod(GpuEnsemble.time_votes, runs=3))
    monkeypatch.setattr(GpuEnsemble, "time", lambda self: together.time_together(self.shares(), QUICK))
    record = ensemble.time(QUICK, "cuda:0,cuda:1")
    assert record.gpus == ("Fake GPU", "Fake GPU")
    assert [row[0] for row in record.table().rows] == ["1", "2", "2, until the votes are counted", "3"]
    assert "cuda:1 Fake GPU" in record.text()
    assert record.label == where_they_ran(3, 2) == "measured on 2 GPUs; what 3 would take is simulated"
    assert "simulated" not in where_they_ran(2, 2)
    checked = iter([1 - right.members[0], *right.members[1:]])
    with pytest.raises(WrongResult, match="votes on cuda:0,cuda:1 differ"):
        ensemble.time(QUICK, "cuda:0,cuda:1")


class right_of:
    def __init__(self, predictions):
        self.predictions = tuple(predictions.tolist())


@pytest.mark.deep
def test_the_benchmark_compares_and_times_both_ways(driver, members, monkeypatch):
    ensemble, compiled = members
    images = ensemble.network.random_images(1)
    monkeypatch.setattr(GpuChain, "time", lambda self, how: together.time_together([], QUICK))
    monkeypatch.setattr(benchmark, "members_of", lambda given, count: (compiled[:count], images, None))
    monkeypatch.setattr(GpuEnsemble, "time_votes", partialmethod(GpuEnsemble.time_votes, runs=2))
    monkeypatch.setattr(GpuEnsemble, "time", lambda self: together.time_together(self.shares(), QUICK))
    gpus = [CudaDevice(0, driver), CudaDevice(1, driver)]
    found = benchmark.measured({}, [1, 3], gpus, np)
    assert (found["gpus"], found["wrong"], found["logits"]) == (2, 0, 2 * (1 + 3) * images.shape[0] * 10)
    assert found["votes_differing"] == {1: {1: 0, 3: 0}, 2: {1: 0, 3: 0}}
    assert not benchmark.failed(found)
    assert all(set(found[what]) == {1, 2} for what in ("microseconds", "voted", "samples", "clocks"))
    assert set(found["simulated"]) == {4, 8}
    right = [benchmark.expected(one, images, np) for one in compiled]
    right[2] = right[2] + 1
    with GpuEnsemble(compiled, images, gpus) as running:
        benchmark.add(found, running, right, running.run())
    assert found["wrong"] == right[2].size
    assert benchmark.failed(found)


def test_devices_are_named_once_each(two_gpus):
    assert resolve_devices("cuda:0,cuda:1", "sm_90a") == ("cuda:0", "cuda:1")
    assert resolve_devices("emulator", "sm_90a") == ("emulator",)
    with pytest.raises(InvalidInput, match="names a GPU twice"):
        resolve_devices("cuda:1,cuda:1", "sm_90a")
    with pytest.raises(InvalidInput, match="several devices must be GPUs"):
        resolve_devices("cuda:0,emulator", "sm_90a")
    with pytest.raises(MissingDependency, match="no GPU 2"):
        resolve_devices("cuda:0,cuda:2", "sm_90a")
