"""Timing, telemetry, faults and bundles on a real GPU. What may break the context runs in a process of its own."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from subbyte.cli.doctor import examine
from subbyte.gpu.driver import CudaError, detect
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.bundle import measure_bundle, read_measurements
from subbyte.measure.case import Case, Evaluator
from subbyte.numerics import Requantization
from subbyte.records.result import Measured

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]

SHORT = TimingProtocol(min_total_ms=10, repeats=7, cold_repeats=5)


def _python(code, *arguments, timeout=90):
    """Run code in a fresh process with a hang guard; its status and output."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
        env={**os.environ},
    )  # fmt: skip


@pytest.fixture
def case(first):
    drawn = Case(first.workload).requant
    return Case(first.workload, requant=Requantization(drawn.bias, drawn.multiplier, drawn.shift, first.clip))


def test_the_device_is_described(device):
    info = detect()[0]
    assert info.arch.startswith("sm_")
    assert info.sms > 0
    assert info.l2_bytes > 1 << 20
    assert info.memory_bytes > 1 << 30
    assert examine()["gpus"][0]["name"] == info.name


def test_times_are_sane_and_repeat(first, case, device):
    evaluator = Evaluator(device, case, SHORT)
    results = [evaluator.evaluate(first.cubin, first.launch) for _ in range(3)]
    assert all(isinstance(result, Measured) for result in results), results
    times = [result.microseconds for result in results]
    assert 0.3 < min(times) < 1000
    assert max(times) / min(times) < 1.2
    assert all(result.cold_microseconds > 0.8 * result.microseconds for result in results)
    assert all(max(result.samples) < 1.5 * min(result.samples) for result in results)
    assert results[0].clocks["after"]["sm_mhz"] is None or results[0].clocks["after"]["sm_mhz"] > 100
    evaluator.close()


def test_resources_are_read(first, device):
    with GpuKernel(first.cubin, first.launch, device) as kernel:
        assert 0 < kernel.attributes.registers <= 255
        assert kernel.attributes.local_bytes == 0


def test_faulty_requests_are_refused_and_leave_the_device_usable(first, case, device):
    with pytest.raises(CudaError) as caught:
        device.load(b"no cubin at all" + bytes(64), "conv_kernel")
    assert caught.value.kind == "launch"
    with pytest.raises(CudaError) as caught:
        device.load(first.cubin, "no_such_kernel")
    assert caught.value.kind == "launch"
    with pytest.raises(CudaError) as caught:
        device.load(first.cubin, first.launch.entry).allow_shared(1 << 24)
    assert caught.value.kind == "launch"
    with pytest.raises(CudaError) as caught:
        device.alloc(1 << 50)
    assert caught.value.kind == "memory"
    assert Evaluator(device, case, SHORT).evaluate(first.cubin, first.launch).ok


FAULT = """
import sys, os
from subbyte.errors import WrongResult
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError
from subbyte.gpu.launched import GpuKernel
from subbyte.device.launch import Argument, Launch
device = CudaDevice(0)
launch = Launch("conv_kernel", (1, 1, 1), (32, 1, 1), 0, (Argument("Out", "uint32", (64,), "out"),))
try:
    GpuKernel(open(sys.argv[1], "rb").read(), launch, device).run({}, timeout_s=2)
except WrongResult as error:
    print("wrong", error)
except CudaError as error:
    print(error.kind, error)
    if error.kind == "crash":
        try:
            device.reset()
            print("recovered", device.upload(__import__("numpy").ones(4, "i4")).download((4,), "i4").sum())
        except CudaError as lost:
            print("lost", lost)
sys.stdout.flush()
os._exit(0)
"""


def test_a_kernel_that_never_ends_is_given_up(folder):
    done = _python(FAULT, folder / "spin.cubin")
    assert done.stdout.startswith("timeout"), done


def test_a_stray_store_is_a_crash_and_the_context_comes_back(folder):
    done = _python(FAULT, folder / "stray.cubin")
    assert done.stdout.startswith("crash"), done
    assert "recovered 4" in done.stdout or "lost" in done.stdout, done


def test_an_unwritten_output_is_noticed(folder):
    done = _python(FAULT, folder / "silent.cubin")
    assert done.stdout.startswith("wrong"), done
    assert "64 of 64" in done.stdout


def test_a_bundle_is_measured_and_resumed(folder, device, tmp_path):
    out = tmp_path / "out.jsonl"
    indices = sorted(
        json.loads(line)["index"] for line in (folder / "bundle/manifest.jsonl").read_text().split("\n")[1:-1]
    )
    half = measure_bundle(folder / "bundle", out, device=device, protocol=SHORT, indices=indices[:2])
    whole = measure_bundle(folder / "bundle", out, device=device, protocol=SHORT)
    assert (half.measured, whole.measured, whole.kept, whole.failed) == (2, len(indices), 2, 0)
    assert whole.seconds / len(indices) < 1.0
    assert all(result.verified for result in read_measurements(out)[1].values())


def test_a_bundle_goes_on_after_a_kernel_that_hangs(folder, tmp_path):
    broken = tmp_path / "bundle"
    shutil.copytree(folder / "bundle", broken)
    lines = [json.loads(line) for line in (broken / "manifest.jsonl").read_text().splitlines()]
    for line, fault in ((lines[2], "spin"), (lines[3], "stray")):
        shutil.copy(folder / f"{fault}.cubin", broken / "cubins" / f"{fault}.cubin")
        line["cubin"] = f"cubins/{fault}.cubin"
        outs = [a for a in line["launch"]["arguments"] if a["role"] == "out"]
        line["launch"]["arguments"] = outs + [a for a in line["launch"]["arguments"] if a["role"] == "in"]
    (broken / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "subbyte.measure.bundle", broken, out, "--timeout-s", "2", "--no-cold"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done
    results = read_measurements(out)[1]
    kinds = [results[line["index"]].kind if not results[line["index"]].ok else "ok" for line in lines[1:]]
    assert kinds == ["ok", "timeout", "crash", *["ok"] * (len(lines) - 4)]


def test_cudnn_gives_the_same_answer(first, case, device):
    pytest.importorskip("torch")
    from subbyte.measure.baselines import TorchDevice, through_torch
    from subbyte.measure.cudnn_graph import FORMS, load_frontend, through_graph

    torch_device = TorchDevice(device.info)
    result = through_torch(case, torch_device, "float16", SHORT)
    assert result.error < 1e-3
    assert 0.3 < result.timing.microseconds < 1000
    try:
        load_frontend()
    except Exception as error:
        pytest.skip(str(error))
    result = through_graph(case, torch_device, FORMS[0], SHORT, limit_s=20)
    assert result.error < 1e-3
    assert result.plans >= 1
