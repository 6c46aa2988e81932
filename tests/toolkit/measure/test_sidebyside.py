import json
import time
from contextlib import nullcontext
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.device.launch import Argument, Launch
from subbyte.device.peaks import measured_peaks
from subbyte.errors import InvalidInput, MissingDependency, WrongResult
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.sparse.config import SparseConfig
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol, time_launch
from subbyte.measure import baselines, cudnn_graph, sidebyside
from subbyte.measure.baselines import BaselineResult
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import FORMS, check_graph
from subbyte.measure.sidebyside import Candidate, Row, from_bundles, ours, side_by_side, text_of
from subbyte.records.describe import describe_space, describe_workload
from subbyte.workload import ConvWorkload

HOW = TimingProtocol(launches=2, min_total_ms=0.1, repeats=3, cold_launches=1, cold_repeats=1, spin_up_ms=0)
WORKLOAD = ConvWorkload(8, 2, 2, 32, 32, 1, 1)
LAUNCH = Launch(
    "conv_kernel", (1, 1, 1), (32, 1, 1), 0,
    (Argument("A", "uint32", (128,), "in", "nhwc"), Argument("Out", "uint32", (128,), "out", "nhwc")),
)  # fmt: skip


@pytest.fixture
def device(fake):
    case = Case(WORKLOAD)
    from subbyte.numerics import to_nhwc_words

    answer = to_nhwc_words(case.expected).ravel()

    @fake.kernel(2)
    def right(arrays):
        arrays[1][:] = answer

    @fake.kernel(2)
    def wrong(arrays):
        arrays[1][:] = answer ^ 1

    return CudaDevice(0, fake.Driver({b"right": right, b"wrong": wrong}))


def _candidates(*cubins):
    return [Candidate(MmaConfig(chunk=i + 1), cubin, LAUNCH) for i, cubin in enumerate(cubins)]


def test_only_right_kernels_count(device):
    row = ours(Case(WORKLOAD), _candidates(b"wrong", b"right"), device, HOW)
    assert row.config["chunk"] == 2
    assert row.plans == 1
    assert row.microseconds == pytest.approx(4.0)
    assert row.tops == pytest.approx(WORKLOAD.operations / 4.0 / 1e6)
    assert row.share_of_peak is None  # no peak is known of this GPU
    with pytest.raises(InvalidInput, match=r"no kernel of .*differ from the reference"):
        ours(Case(WORKLOAD), _candidates(b"wrong"), device, HOW)
    with pytest.raises(InvalidInput, match="none was given"):
        ours(Case(WORKLOAD), [], device, HOW)


@pytest.fixture
def stand_ins(monkeypatch, device):
    """cuDNN's sides without PyTorch: float16 works, bfloat16 is wrong, the graph API is not installed."""

    def through_torch(case, torch_device, dtype, protocol):
        if dtype == "bfloat16":
            raise WrongResult("relative error nan")
        timing = time_launch(device, lambda: device.call("cuCtxSynchronize") or _advance(device), protocol)
        return BaselineResult("cuDNN float16, PyTorch", "float16", "none", "chosen by PyTorch", 1, 2e-4, timing)

    def through_graph(*_):
        raise MissingDependency("pip install nvidia-cudnn-frontend")

    monkeypatch.setattr(baselines, "TorchDevice", lambda info: SimpleNamespace(info=info))
    monkeypatch.setattr(baselines, "versions", lambda: {"torch": "2"})
    monkeypatch.setattr(baselines, "through_torch", through_torch)
    monkeypatch.setattr(cudnn_graph, "through_graph", through_graph)


def _advance(device):
    def work():
        device.api.clock += 10.0

    return device.api._enqueue(work)


def test_sides_that_fail_are_named_and_the_others_go_on(stand_ins, device):
    said = []
    record = side_by_side({WORKLOAD: _candidates(b"right")}, device, HOW, say=said.append)
    record = json.loads(json.dumps(record))
    assert [row["side"] for row in record["rows"]] == ["subbyte int4", "cuDNN float16, PyTorch"]
    assert record["rows"][1]["verified"] == "relative error 2.0e-04"
    assert {entry["side"] for entry in record["missing"]} == {"cuDNN bfloat16, PyTorch", *(form.side for form in FORMS)}
    assert record["gpu"]["name"] == "Fake GPU"
    assert record["date"].startswith("20")
    assert len(said) == 3 + len(FORMS)
    assert "not measured: pip install nvidia-cudnn-frontend" in text_of(record)


def test_bench_prints_one_object_and_writes_the_record(stand_ins, device, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sidebyside, "build_candidates", lambda workload, arch: _candidates(b"right"))
    monkeypatch.setattr("subbyte.gpu.device.CudaDevice", lambda ordinal: device)
    out = tmp_path / "results" / "r.json"
    assert main(["bench", WORKLOAD.spec, "--json", "--out", str(out), "--no-graph-api"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["schema"], shown["command"]) == (1, "bench")
    assert shown["rows"] == json.loads(out.read_text())["rows"]


def test_without_a_bundle_what_compile_takes_comes_first():
    workload = ConvWorkload(8, 5, 5, 32, 32, 3, 3, 1)
    (candidate,) = sidebyside.build_candidates(workload, "sm_90a")
    kernel = subbyte.compile(workload)
    assert (candidate.config, candidate.cubin) == (kernel.config, kernel.cubin)


def test_a_kernel_that_skips_zeros_stands_beside_its_dense_twin(monkeypatch):
    named = [Candidate(kind(), b"", None) for kind in (SparseConfig, PipelineConfig, PipelineConfig)]
    asked = []
    monkeypatch.setattr(sidebyside, "ours", lambda case, found, device, how, more="": asked.append((len(found), more)))
    case = SimpleNamespace(workload=subbyte.workload("n8h5w5c64k32r3s3p1:w4a4:signed-2of4.signed"))
    for side, measure in list(sidebyside._sides(case, named, None, None, None, 1.0, False))[:2]:
        asked.append(side)
        measure()
    label = "subbyte w4a4:signed-2of4.signed"
    assert asked == [label, (1, ""), f"{label}, dense twin", (2, ", dense twin")]


def test_a_2of4_kernel_is_printed_beside_what_its_instruction_allows():
    workload = subbyte.workload("resnet50.stage3@256:w4a4:signed-2of4.signed")

    def row(config, side):
        what = (workload.label, workload.spec, workload.operations, side, "int4", "", config.key, 1, "")
        return asdict(Row(*what, 24.82, None, [24.82], None, 0.0, None, {}, config.to_dict()))

    rows = [row(SparseConfig(), "subbyte w4a4"), row(PipelineConfig(), "subbyte w4a4, dense twin")]
    record = {"gpu": {"name": "NVIDIA H200"}, "rows": rows, "missing": []}
    peak = max(measured_peaks("NVIDIA H200").sparse_tops.values())
    least = workload.operations / peak / 1e6
    (said,) = text_of(record).splitlines()[2:]  # the dense twin has no line of its own
    assert f"alone takes {least:.2f} us at 3,848 TOPS" in said
    assert f"80% of that rate {least / 0.8:.2f} us; this kernel {least / 24.82:.0%}" in said
    elsewhere = text_of({**record, "gpu": {"name": "another"}}).splitlines()[-1]
    assert "2:4 instructions were not measured on another: `subbyte bench atoms wgmma.sp`" in elsewhere


@pytest.mark.parametrize("arguments", [[], ["resnet50.stage2@8", "--bundle", "x"]])
def test_bench_needs_workloads_or_bundles(arguments, capsys):
    assert main(["bench", *arguments]) == 2
    assert "bench needs WORKLOADs" in capsys.readouterr().err


def test_bundles_are_read_by_workload(tmp_path):
    (tmp_path / "cubins").mkdir()
    (tmp_path / "cubins" / "a.cubin").write_bytes(b"right")
    lines = [
        {
            "format": "subbyte-bundle",
            "schema": 1,
            "workload": describe_workload(WORKLOAD),
            "space": describe_space(space(WORKLOAD)),
        },
        {"index": 0, "config": MmaConfig().to_dict(), "cubin": "cubins/a.cubin", "launch": LAUNCH.to_dict()},
        {"index": 1, "config": MmaConfig().to_dict(), "failed": {"ok": False, "kind": "build", "reason": "no"}},
    ]
    (tmp_path / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ((workload, candidates),) = from_bundles([tmp_path]).items()
    assert workload == WORKLOAD
    assert candidates == [Candidate(MmaConfig(), b"right", LAUNCH)]


class Frontend:
    """Records how cuDNN's graph is described."""

    class data_type:
        HALF, BFLOAT16, INT8, INT32, FLOAT = "half", "bfloat16", "int8", "int32", "float"
        FP8_E4M3 = "fp8"

    class heur_mode:
        A, B, FALLBACK = "a", "b", "fallback"

    def __init__(self):
        self.made = {}

    def pygraph(self, **options):
        self.made["options"] = options
        return self

    def tensor(self, **options):
        return _Tensor(options)

    def conv_fprop(self, x, w, **options):
        self.made["conv"] = options
        return _Tensor({"name": "conv"})

    def mul(self, **options):
        self.made["mul"] = options
        return _Tensor({"name": "mul"})

    def create_execution_plans(self, modes):
        self.made["modes"] = modes

    def validate(self):
        pass

    build_operation_graph = check_support = validate


class _Tensor:
    def __init__(self, options):
        self.options, self.is_output, self.type = options, False, None

    def set_output(self, value):
        self.is_output = value
        return self

    def set_data_type(self, value):
        self.type = value
        return self

    def set_dim(self, value):
        assert value == [1, 2, 3, 4]
        return self

    def set_stride(self, value):
        assert value == [24, 1, 8, 2]
        return self


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.side)
def test_the_cudnn_graph_is_described_with_the_right_types(form):
    frontend = Frontend()
    array = SimpleNamespace(shape=(1, 2, 3, 4), stride=lambda: (24, 1, 8, 2))
    workload = ConvWorkload(1, 9, 9, 2, 2, 3, 3, pad=1, stride=2)
    _, tensors = cudnn_graph._graph(frontend, "handle", workload, form, array, array, array)
    (output,) = [tensor for tensor in tensors.values() if isinstance(tensor, _Tensor) and tensor.is_output]
    assert output is tensors["Y"]
    assert output.type == getattr(Frontend.data_type, cudnn_graph._NAMES[form.output])
    assert frontend.made["conv"]["compute_data_type"] == ("int32" if form.operand == "int8" else "float")
    assert frontend.made["conv"]["stride"] == [2, 2]
    assert frontend.made["modes"] == ["a", "b", "fallback"]
    assert ("mul" in frontend.made) == form.scaled
    assert ("S" in tensors) == form.scaled


class Opened:
    """A graph whose plans are made up: ``slow`` seconds to build one, some wrong, one name twice."""

    form, padding = FORMS[0], ""

    def __init__(self, names, wrong=(), slow=0.0):
        self.names, self.wrong, self.slow = names, wrong, slow

    def build(self, index):
        time.sleep(self.slow)

    def launcher(self, index):
        return lambda: self.names[index]

    def checked(self, launch, case):
        if launch() in self.wrong:
            raise WrongResult("off")
        return 0.0


@pytest.mark.parametrize(
    ("opened", "limit", "only", "counts"),
    [
        (Opened(["a", "b", "a", "c"]), 9.0, (), (4, 3, 3, 0, 0)),
        (Opened(["a", "b", "c"], wrong=("b",)), 9.0, (), (3, 3, 3, 1, 0)),
        (Opened(["a", "b", "a", "c"], slow=0.02), 0.01, (), (4, 3, 1, 0, 2)),
        (Opened(["a", "b", "a", "c"]), 9.0, ("c",), (4, 3, 1, 0, 0)),
    ],
)
def test_a_search_says_how_many_plans_it_was_offered_tried_and_cut(opened, limit, only, counts, monkeypatch):
    timing = SimpleNamespace(microseconds=3.0)
    monkeypatch.setattr(cudnn_graph, "time_launch", lambda *_: timing)
    device = SimpleNamespace(turn=nullcontext(), elapsed_us=lambda launch: 3.0)
    found = cudnn_graph._fastest_plan(opened, None, device, TimingProtocol(), limit, only)
    assert tuple(found.counts.to_dict().values()) == counts
    assert found.plans == counts[2] - counts[3]


def test_wrong_answers_of_cudnn_are_refused():
    case = Case(WORKLOAD)

    exact = case.accumulators.astype(np.float64)
    integers, scaled, halves, eighths = FORMS[2], FORMS[3], FORMS[0], FORMS[5]
    assert check_graph(exact, exact, integers) == 0.0
    with pytest.raises(WrongResult, match="1 elements"):
        check_graph(np.where(np.arange(exact.size).reshape(exact.shape) == 5, 0, exact), exact, integers)
    bytes_ = np.clip(np.rint(exact / 64), -128, 127)
    assert check_graph(bytes_, exact, scaled) == 0.0
    with pytest.raises(WrongResult, match="scaled reference"):
        check_graph(bytes_ // 2, exact, scaled)
    assert check_graph(exact, exact, halves) == 0.0
    assert 0 < check_graph(exact / 64 * 1.01, exact, eighths) < 0.02
    for wrong in (exact * 1.01, np.full(exact.shape, np.nan)):
        with pytest.raises(WrongResult, match="relative error"):
            check_graph(wrong, exact, halves)
    with pytest.raises(WrongResult, match="relative error"):
        check_graph(exact / 64 * 1.1, exact, eighths)
