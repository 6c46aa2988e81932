import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch, launch_from_dict
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.weights import prepare_weights
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure import bundle as module
from subbyte.measure.bundle import main, measure_bundle, read_measurements, to_landscape
from subbyte.measure.case import Case, Evaluator
from subbyte.numerics import from_nhwc_words, from_nhwcnc, reference, to_nhwc_words, to_nhwcnc
from subbyte.records.describe import describe_space, describe_workload
from subbyte.records.landscape import make_header
from subbyte.records.result import Failed, Measured
from subbyte.workload import ConvWorkload

QUICK = TimingProtocol(
    launches=2, min_total_ms=0.1, repeats=3, cold_launches=1, cold_repeats=1, spin_up_ms=0, timeout_s=1
)
WORKLOAD = ConvWorkload(3, 4, 3, 40, 20, 3, 3, pad=1)  # padding of images, channels and filters


def _launch(workload, layout="nhwcnc"):
    blocks, groups, wl = workload.filter_blocks, workload.batch_groups, workload
    arguments = (
        Argument("A", "uint32", (groups * 8 * wl.h * wl.w * wl.channel_blocks * 4,), "in", layout),
        Argument("Out", "uint32", (groups * 8 * wl.p * wl.q * blocks * 4,), "out", layout),
        Argument("Prm", "int32", (3 * blocks * 32,), "in", "general"),
        Argument("Wt", "uint32", (wl.channel_blocks * wl.r * wl.s * blocks * 32 * 4,), "in", "4"),
    )
    return Launch("conv_kernel", (1, 1, 1), (32, 1, 1), 0, arguments)


def _convolution(fake, case, layout="nhwcnc", broken=None):
    """A kernel that computes the convolution from its packed inputs the slow way round."""
    wl = case.workload
    given, made = None, None

    @fake.kernel(4)
    def body(arrays):
        nonlocal given, made
        words, out, params, weights = arrays
        now = tuple(array.tobytes() for array in (words, params, weights))
        if given != now:  # a launch on the same inputs writes the same again
            given, made = now, computed(words, params, weights)
        out[:] = made

    def computed(words, params, weights):
        nhwcnc = layout == "nhwcnc"
        if nhwcnc:
            x = from_nhwcnc(words.reshape(wl.batch_groups, wl.h, wl.w, wl.channel_blocks, 8, 4), wl.n, wl.c)
        else:
            x = from_nhwc_words(words.reshape(wl.batch_groups * 8, wl.h, wl.w, -1), wl.n, wl.c)
        assert (weights == prepare_weights(case.w, 4).ravel()).all()
        assert (params.view(np.int32).reshape(3, -1)[1, : wl.k] == case.requant.multiplier).all()
        y = case.requant.apply(reference(wl, x, case.w))
        if broken is not None:
            broken(y)
        out = (to_nhwcnc if nhwcnc else to_nhwc_words)(y).ravel()
        out[-4:] |= np.uint32(0 if wl.n % 8 == 0 else 0x77)  # padding images hold anything
        return out

    return body


@pytest.mark.parametrize("layout", ["nhwcnc", "nhwc"])
def test_right_kernel_is_measured(fake, layout):
    case = Case(WORKLOAD, seed=3)
    device = CudaDevice(0, fake.Driver({b"cubin": _convolution(fake, case, layout)}))
    evaluator = Evaluator(device, case, QUICK)
    result = evaluator.evaluate(b"cubin", _launch(WORKLOAD, layout))
    assert isinstance(result, Measured), result
    assert result.verified
    assert result.microseconds == pytest.approx(4.0)
    assert result.cold_microseconds == pytest.approx(6.5)
    assert result.device["name"] == "Fake GPU"
    assert result.seconds["measure"] > 0
    evaluator.close()
    assert len(device.api.memory) <= 1  # the flush buffer


@pytest.mark.parametrize("place", [(0, 0, 0, 0), (2, 3, 2, 19)])
def test_one_wrong_element_fails_with_its_place(fake, place):
    case = Case(WORKLOAD)

    def broken(y):
        y[place] ^= 1

    device = CudaDevice(0, fake.Driver({b"cubin": _convolution(fake, case, broken=broken)}))
    result = Evaluator(device, case, QUICK).evaluate(b"cubin", _launch(WORKLOAD))
    n, p, q, k = place
    assert result.kind == "wrong"
    assert f"1 of {case.expected.size} elements" in result.reason
    assert f"(n={n}, p={p}, q={q}, k={k})" in result.reason


def test_raw_accumulators_are_checked():
    case, argument = Case(WORKLOAD), Argument("Out", "int32", (8 * 4 * 3 * 32,), "out", "nhwc")
    output = np.zeros((8, 4, 3, 32), np.int32)
    output[:3, ..., :20] = case.accumulators
    assert case.check(output.ravel(), argument).ok
    output[2, 3, 2, 19] += 1
    assert case.check(output.ravel(), argument).first == (2, 3, 2, 19)


def test_operands_of_another_workload_are_refused(fake):
    case = Case(WORKLOAD)
    with pytest.raises(InvalidInput, match="the kernel takes 7"):
        case.operand(Argument("A", "uint32", (7,), "in", "nhwc"))
    with pytest.raises(InvalidInput, match=r"'Bias'.*takes A, Wt and Prm"):
        case.operand(Argument("Bias", "int32", (7,), "in"))
    device = CudaDevice(0, fake.Driver({b"cubin": _convolution(fake, case)}))
    odd = Launch("conv_kernel", (1, 1, 1), (32, 1, 1), 0, (Argument("Wt", "uint32", (7,), "in", "three"),))
    assert Evaluator(device, case, QUICK).evaluate(b"cubin", odd).kind == "launch"


def test_launch_survives_json():
    launch = _launch(WORKLOAD)
    assert launch_from_dict(json.loads(json.dumps(launch.to_dict()))) == launch
    with pytest.raises(InvalidInput, match="not the record of a launch"):
        launch_from_dict({"entry": "x"})


def _kernels(fake, case):
    @fake.kernel(4)
    def crash(arrays):
        raise fake.Fault("CUDA_ERROR_ILLEGAL_ADDRESS")

    @fake.kernel(4)
    def hang(arrays):
        raise fake.Hang

    @fake.kernel(4)
    def silent(arrays):
        pass

    return {b"good": _convolution(fake, case), b"crash": crash, b"hang": hang, b"silent": silent}


def test_every_failure_is_a_value_and_after_a_hang_each_says_why(fake):
    case = Case(WORKLOAD)
    device = CudaDevice(0, fake.Driver(_kernels(fake, case)))
    how = TimingProtocol(**{**QUICK.to_dict(), "timeout_s": 0.05})
    evaluator = Evaluator(device, case, how)
    results = [evaluator.evaluate(name, _launch(WORKLOAD)) for name in (b"good", b"silent", b"crash", b"good", b"?")]
    assert ["ok" if r.ok else r.kind for r in results] == ["ok", "wrong", "crash", "ok", "launch"]
    lost = [evaluator.evaluate(name, _launch(WORKLOAD)) for name in (b"hang", b"good")]
    assert [r.kind for r in lost] == ["timeout", "crash"]
    assert "new process" in lost[1].reason


def test_kernels_are_timed_side_by_side(fake):
    case = Case(WORKLOAD)
    device = CudaDevice(0, fake.Driver(_kernels(fake, case)))
    times = Evaluator(device, case, QUICK).interleave([(b"good", _launch(WORKLOAD))] * 2, rounds=3)
    assert times == [[pytest.approx(4.0)] * 3] * 2


@pytest.fixture
def make_bundle(tmp_path):
    def make(cubins, arch="sm_90a"):
        folder = tmp_path / "bundle"
        (folder / "cubins").mkdir(parents=True, exist_ok=True)
        space = {"kind": "paper", "arch": arch, "hash": "abc", "size": 10, "knobs": {"chunk": list(range(1, 11))},
                 "fixed": {}, "base": MmaConfig().to_dict()}  # fmt: skip
        workload = describe_workload(WORKLOAD)
        lines = [{"format": "subbyte-bundle", "schema": 1, "workload": workload, "space": space, "versions": {}}]
        for index, cubin in enumerate(cubins):
            entry = {"index": index, "config": MmaConfig(chunk=index + 1).to_dict()}
            if cubin is None:
                entry["failed"] = Failed("build", "did not compile").to_dict()
            else:
                name = f"cubins/{hashlib.sha256(cubin).hexdigest()[:20]}.cubin"
                (folder / name).write_bytes(cubin)
                entry |= {"cubin": name, "launch": _launch(WORKLOAD).to_dict(), "resources": {}, "seconds": 0.5}
            lines.append(entry)
        (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return make


def test_bundle_is_measured_and_resumed(fake, make_bundle, tmp_path):
    folder, out = make_bundle([b"good", b"silent", None, b"crash", b"good"]), tmp_path / "out.jsonl"
    seen = []

    def measure(**options):
        device = CudaDevice(0, fake.Driver(_kernels(fake, Case(WORKLOAD))))
        return measure_bundle(folder, out, device=device, protocol=QUICK, **options)

    first = measure(indices=[0, 1])
    assert (first.measured, first.failed, first.kept, first.remaining) == (1, 1, 0, 0)
    out.write_bytes(out.read_bytes() + b'{"index":3,"ok"')  # a crash cut this line
    whole = measure(progress=lambda done, total, index, result: seen.append((done, total, index)))
    assert (whole.measured, whole.failed, whole.kept, whole.lost) == (2, 3, 2, False)
    assert seen == [(3, 5, 2), (4, 5, 3), (5, 5, 4)]
    header, results = read_measurements(out)
    assert header["device"]["arch"] == "sm_90a"
    assert header["protocol"]["repeats"] == 3
    assert [results[i].ok for i in range(5)] == [True, False, False, False, True]
    assert [results[i].kind for i in (1, 2, 3)] == ["wrong", "build", "crash"]
    assert results[0].seconds["build"] == 0.5
    assert not list(tmp_path.glob("*.running"))
    landscape = to_landscape(out)
    assert landscape.best[0] in (0, 4)
    assert len(landscape) == 5


def test_bundles_are_measured_in_turns_with_one_evaluator(fake, make_bundle, tmp_path):
    folder = make_bundle([b"good", b"good"])
    device = CudaDevice(0, fake.Driver(_kernels(fake, Case(WORKLOAD))))
    evaluator = Evaluator(device, Case(WORKLOAD, seed=0), QUICK)
    for index in (0, 1):
        for name in ("a", "b"):
            measure_bundle(folder, tmp_path / name, evaluator=evaluator, indices=[index])
    headers, results = zip(*(read_measurements(tmp_path / name) for name in ("a", "b")), strict=True)
    assert [set(one) for one in results] == [{0, 1}, {0, 1}]
    assert headers[0]["protocol"]["repeats"] == 3
    other = Evaluator(device, Case(ConvWorkload(1, 4, 4, 32, 32, 1, 1)), QUICK)
    with pytest.raises(InvalidInput, match="the evaluator for"):
        measure_bundle(folder, tmp_path / "c", evaluator=other)


def test_bundle_stops_when_the_gpu_is_lost(fake, make_bundle, tmp_path):
    folder, out = make_bundle([b"good", b"hang", b"good"]), tmp_path / "out.jsonl"
    device = CudaDevice(0, fake.Driver(_kernels(fake, Case(WORKLOAD))))
    how = TimingProtocol(launches=2, min_total_ms=0.1, cold=False, spin_up_ms=0, timeout_s=0.05)
    report = measure_bundle(folder, out, device=device, protocol=how)
    assert (report.lost, report.remaining) == (True, 1)
    assert read_measurements(out)[1][1].kind == "timeout"


def test_bundles_that_do_not_fit_are_refused(fake, make_bundle, tmp_path):
    device, out = CudaDevice(0, fake.Driver(_kernels(fake, Case(WORKLOAD)))), tmp_path / "out.jsonl"
    with pytest.raises(InvalidInput, match="built for sm_80, Fake GPU is sm_90a"):
        measure_bundle(make_bundle([b"good"], arch="sm_80"), out, device=device)
    with pytest.raises(InvalidInput, match="holds no bundle"):
        measure_bundle(tmp_path / "nothing", out, device=device)
    folder = make_bundle([b"good"])
    with pytest.raises(InvalidInput, match="no configuration 7"):
        measure_bundle(folder, out, device=device, indices=[7])
    header = json.loads(out.read_text().splitlines()[0])
    header["space"]["hash"] = "other"
    out.write_text(json.dumps(header) + "\n")
    with pytest.raises(InvalidInput, match="another space"):
        measure_bundle(folder, out, device=device)


def header_line():
    made = space("n8h6w6c32k32r3s3p1")
    header = make_header(describe_workload(made.workload), describe_space(made), {"name": "GPU"})
    return json.dumps({**header, "format": "subbyte-measurements", "schema": 1})


def test_damaged_measurements_name_the_line(tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_text(f'{header_line()}\n{{"index":0}}\n')
    with pytest.raises(BrokenRecord, match="line 2"):
        read_measurements(out)
    out.write_text('{"format":"something"}\n')
    with pytest.raises(BrokenRecord, match="line 1"):
        read_measurements(out)
    with pytest.raises(InvalidInput, match="No such file"):
        read_measurements(tmp_path / "none")


def test_children_are_restarted_and_deaths_recorded(monkeypatch, tmp_path):
    out = tmp_path / "out.jsonl"
    statuses = iter([module.DEVICE_LOST, -11, 0])
    commands = []

    def run(command):
        status = next(statuses)
        commands.append(command)
        if status == -11:
            (tmp_path / "out.jsonl.running").write_text("4")
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(module.subprocess, "run", run)
    out.write_text(f"{header_line()}\n")
    assert main(["bundle", str(out)]) == 0
    assert len(commands) == 3
    assert commands[0][-1] == "--child"
    assert read_measurements(out)[1][4] == Failed("crash", "the measuring process died (signal 11)")
    statuses = iter([-9])
    assert main(["bundle", str(out)]) == 1  # died before any kernel: nothing to go on with


def test_bad_folder_exits_2(tmp_path, capsys):
    assert main([str(tmp_path), str(tmp_path / "out"), "--limit", "3", "--child"]) == 2
    assert "holds no bundle" in capsys.readouterr().err
