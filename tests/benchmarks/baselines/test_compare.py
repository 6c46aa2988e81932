"""Side by side with cuDNN and CUTLASS, as far as it goes without a GPU."""

import _ctypes
import gzip
import importlib.util
import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.baselines import compare, overlapped, rounds_table, search, table
from benchmarks.baselines import plans as plans_of_sides
from benchmarks.baselines.cutlass_driver import Driver, sizes_of
from benchmarks.shared import kernel_pack, written
from benchmarks.shared.command import program
from benchmarks.shared.gpu_case import GpuCase
from subbyte.device.launch import Argument, Launch
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency, WrongResult
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.timing import TimingProtocol
from subbyte.measure.baselines import BaselineResult
from subbyte.measure.case import Case
from subbyte.numerics import to_nhwcnc
from subbyte.tune.bundle import build_bundle
from subbyte.workload import ConvWorkload, workload

ROOT = Path(__file__).parents[3]
SQUARE = ConvWorkload(8, 3, 3, 32, 32, 3, 3, 1)
WORDS = Argument("A", "uint32", (8 * 3 * 3 * 4,), "in", "nhwcnc")
LAUNCH = Launch(
    "k", (1, 1, 1), (128, 1, 1), 0, (WORDS, Argument("Out", "uint32", WORDS.shape, "out", "nhwcnc")), 1, True
)


@pytest.mark.parametrize(
    "spec",
    [
        "n3h9w9c20k40r3s3p1",
        "n2h11w11c3k8r7s7p3u2",
        "n2h8w8c16k8r1s1p0u2",
        "n2h9w9c16k8r3s3p2d2",
        "n9h4w5c20k33r3s3p1:w1a1",
        "n3h4w5c20k33r3s3p1u2:w2a2",
    ],
)
def test_the_answer_made_on_the_gpu_is_the_reference(spec, monkeypatch):
    monkeypatch.setattr("benchmarks.shared.gpu_case.ELEMENTS_AT_ONCE", 1)  # one image at a time
    plain, other = Case(workload(spec)), GpuCase(workload(spec), arrays=np)
    assert np.array_equal(plain.accumulators, other.accumulators)
    assert np.array_equal(plain.expected, other.expected)
    assert other.expected.dtype == np.int8


def test_sums_that_float32_cannot_hold_are_refused():
    with pytest.raises(InvalidInput, match="not exact in float32"):
        GpuCase(ConvWorkload(1, 7, 7, 30000, 8, 3, 3, 1))
    with pytest.raises(InvalidInput, match="pads with -1"):
        GpuCase(workload("n3h4w5c20k33r3s3p1:w1a1:minus"))


def test_a_pack_comes_back_as_it_was(tmp_path):
    kernels = [
        kernel_pack.Packed(SQUARE, kernel_pack.family_of(config), config, "because", bytes([number]), LAUNCH)
        for number, config in enumerate((PipelineConfig(tile_width=6), MmaConfig(chunk=2)))
    ]
    assert kernel_pack.add(tmp_path, kernels[:1]) == 1
    assert kernel_pack.add(tmp_path, kernels[1:]) == 1
    assert kernel_pack.read(tmp_path) == {SQUARE: kernels}
    assert [kernel.family for kernel in kernels] == ["wgmma", "mma"]


def test_the_best_search_says_which_plans_are_tried_in_which_order():
    line = {"spec": SQUARE.spec, "side": "a", "microseconds": 5.0, "plans": 1, "ranking": [["x", 5.0]]}
    longer = {**line, "microseconds": 4.0, "plans": 7, "ranking": [["y", 4.0], ["x", 5.0], ["z", 6.0]]}
    faster = {**line, "side": "b", "microseconds": 3.0}
    failed = {"spec": SQUARE.spec, "side": "c", "reason": "no"}
    elsewhere = {**line, "spec": "other", "side": "d"}
    known = [line, faster, failed, elsewhere, longer]
    assert compare.ranked(SQUARE, ["a", "b", "c", "d"], known) == [("b", ("x",)), ("a", ("y", "x")), ("d", ())]


def test_a_side_that_fails_becomes_a_line_with_the_reason(tmp_path):
    def fails(case, how, only):
        raise WrongResult("no plan ran")

    line = search.found_line(SimpleNamespace(workload=SQUARE), "cuDNN x", fails)
    assert line["reason"] == "WrongResult: no plan ran"
    written.append_line(tmp_path / "found.jsonl", line)
    with open(tmp_path / "found.jsonl", "a") as file:
        file.write('{"cut')
    (tmp_path / "found.gz").write_bytes(gzip.compress((tmp_path / "found.jsonl").read_bytes()))
    assert plans_of_sides.read_lines([tmp_path / name for name in ("found.jsonl", "none", "found.gz")]) == [
        line,
        line,
    ]
    written.append_line(tmp_path / "found.jsonl", {**line, "side": "the next"})  # not behind what was cut
    assert [one["side"] for one in plans_of_sides.read_lines([tmp_path / "found.jsonl"])] == ["cuDNN x", "the next"]


def test_only_one_process_has_its_turn(tmp_path):
    import fcntl

    turn = search.FileTurn(tmp_path / "lock")
    with turn, open(tmp_path / "lock", "a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(tmp_path / "lock", "a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FakeDevice:
    """Buffers by address, and one kernel: whatever ``compute`` makes of the input's words."""

    def __init__(self, compute):
        self.compute, self.memory, self.overlaps = compute, {}, []

    def load(self, cubin, entry):
        return self

    def allow_shared(self, nbytes):
        pass

    unload = synchronize = lambda self, *_: None

    def alloc(self, nbytes):
        address = len(self.memory) + 1
        self.memory[address] = np.zeros(nbytes // 4, np.uint32)
        return SimpleNamespace(
            pointer=address, fill=lambda byte: None, free=lambda: None,
            download=lambda shape, dtype: self.memory[address].reshape(shape),
        )  # fmt: skip

    def upload(self, array):
        buffer = self.alloc(array.nbytes)
        self.memory[buffer.pointer][:] = array.ravel()
        return buffer

    def launch(self, grid, block, shared, pointers, overlap):
        self.overlaps.append(overlap)
        self.memory[pointers[1]][:] = self.compute(self.memory[pointers[0]])


def chained(wrong=False, monkeypatch=None):
    case = Case(SQUARE)
    following = Case(SQUARE, x=case.expected, w=case.w, requant=case.requant)
    packed = [to_nhwcnc(values).ravel() for values in (case.x, case.expected, following.expected)]

    def compute(words):
        for before, after in pairwise(packed):
            if np.array_equal(words, before):
                return after ^ np.uint32(wrong)
        return words

    device = FakeDevice(compute)
    monkeypatch.setattr(overlapped, "time_launch", lambda device, launch, how: [launch() for _ in range(4)] and how)
    how = overlapped.time_overlapped(b"", LAUNCH, case, following, device, TimingProtocol())
    return device, how


def test_a_chain_reads_what_the_launch_before_wrote(monkeypatch):
    assert overlapped.reads_from(LAUNCH) == overlapped.OWN_OUTPUT
    device, how = chained(monkeypatch=monkeypatch)
    assert how.launches == 40
    assert device.overlaps == [True] * 6
    with pytest.raises(WrongResult, match="overlapping launches"):
        chained(wrong=True, monkeypatch=monkeypatch)


def test_layers_that_do_not_chain_read_the_same_input():
    wider = Argument("Out", "uint32", (2 * WORDS.shape[0],), "out", "nhwcnc")
    assert overlapped.reads_from(Launch("k", (1, 1, 1), (1, 1, 1), 0, (WORDS, wider))) == overlapped.SAME_INPUT


def test_the_cutlass_driver_is_asked_for_by_name(tmp_path):
    with pytest.raises(MissingDependency, match=r"cutlass\.sh"):
        Driver(tmp_path / "none.so")
    with pytest.raises(MissingDependency, match=r"no library of CUTLASS's instances; build it with .*cutlass\.sh"):
        Driver(Path(_ctypes.__file__))
    assert sizes_of(workload("resnet50.conv1@8"), 16) == [8, 224, 224, 16, 64, 7, 7, 3, 2, 1]
    tiles = (ROOT / "benchmarks" / "baselines" / "cutlass" / "tiles.txt").read_text().splitlines()
    assert all(len(line.split()) == 5 for line in tiles)
    assert len(set(tiles)) == len(tiles)


def cell(name, ours, best, **more):
    timing = {"microseconds": ours, "samples": [ours], "date": "2026-11-20T10:00:00", "cold_microseconds": ours + 0.5,
              "clocks": {"after": {"sm_mhz": 1965}}}  # fmt: skip
    own = {**timing, "tops": 1000.0, "family": "warpgroup", "key": "wg-x",
           "chain": {"microseconds": ours - 0.5, "samples": [], "reads": "own output"}}  # fmt: skip
    sides = [{"side": side, "microseconds": us} for side, us in (("cuDNN int8 to int8, graph API", best),
                                                                 ("CUTLASS int8 to int8", best + 1))]  # fmt: skip
    return {"workload": name, "operations": 59_190_000_000, "ours": own, "opponents": sides, "missing": [],
            "copy": {"microseconds": 12.0}, **more}  # fmt: skip


RECORD = {
    "gpu": {"name": "NVIDIA H200", "driver_version": "580.1"}, "versions": {"cudnn": "9"}, "our_epilogue": "everything",
    "cells": [cell("resnet50.stage2@256", 40.0, 80.0), cell("resnet50.stage2@8", 4.0, 6.0, operations=1_850_000_000),
              cell("resnet50.stage3.enter1x1@8", 5.0, 4.0, operations=1_000_000),
              {"workload": "vgg16.conv1_1@8", "opponents": [], "missing": [{"side": "subbyte", "reason": "no time"}]}],
    "missing": [],
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    (tmp_path / "side-by-side-h200.json").write_text(json.dumps(RECORD))
    readme = tmp_path / "README.md"
    readme.write_text("before\n" + "\n".join((*table.MARKERS, *table.ROUNDS)) + "\nafter\n")
    project = tmp_path / "project.md"
    project.write_text("\n".join(table.SUMMARY))
    return ["--readme", str(project), "--tables", str(readme), "--results", str(tmp_path)], readme


def test_the_tables_name_ratio_and_floor(place):
    options, readme = place
    assert table.main([*options, "--check"]) == 1
    assert table.main(options) == 0
    assert (readme.parent / "project.md").read_text().count("enter1x1") == 0
    assert table.main([*options, "--check"]) == 0
    text = readme.read_text()
    assert (
        "| resnet50.stage2@256 | wg-x | 40.00 | 40.50 | 1,000 | 52 % | 39.50 | 80.00 | int8 to int8 | 2.00 | 2.03 | "
        "31.18 arithmetic | 78 % |" in text
    )
    assert text.index("resnet50.stage2@8 | wg-x") < text.index("resnet50.stage2@256 | wg-x")
    assert "enter1x1" not in text
    assert "Nothing has been recorded yet." in text
    assert "Not measured: vgg16.conv1_1@8, subbyte: no time." in text


def test_the_readme_of_the_project_shows_the_stages_of_the_rounds(tmp_path):
    text = table.summary(table.RESULTS / "baselines")
    record = json.loads(rounds_table.newest(rounds_table.FOLDER).read_text())
    one = next(one for one in record["results"] if one["workload"] == "resnet50.stage5@256")
    line = next(line for line in text.splitlines() if line.startswith("| resnet50.stage5@256"))
    assert line.split(" | ")[1].startswith(f"{one['ours']['hot']['value']:.2f} ± ")
    assert sum(line.startswith("| resnet50.stage") for line in text.splitlines()) == 12
    assert "enter1x1" not in text
    ahead = sum(one["verdict"] == "ahead" for one in record["results"])
    assert f"Of the {len(record['results'])} layers measured this way, ours is ahead in {ahead} and" in text
    assert table.summary(tmp_path / "none") == "Nothing has been recorded yet."
    (tmp_path / "rounds-x.json").write_text("{}")
    with pytest.raises(InvalidInput, match="no record of `benchmarks/baselines rounds`"):
        table.summary(tmp_path)


def test_no_record_no_table(tmp_path):
    assert table.tables(tmp_path) == "Nothing has been recorded yet."


def test_the_committed_tables_are_fresh():
    assert table.main(["--check"]) == 0


def test_a_cell_in_one_line():
    line = compare.line_of(RECORD["cells"][0])
    assert "40.00 alone" in line
    assert "x2.00" in line
    assert "!subbyte: no time" in compare.line_of(RECORD["cells"][3])


@pytest.fixture
def gpu(monkeypatch):
    """A device whose kernels know the answers of the case and of the layer behind it; one of them is wrong."""
    place = importlib.util.spec_from_file_location(
        "fake_gpu", ROOT / "tests" / "toolkit" / "measure" / "fake_driver.py"
    )
    fake = importlib.util.module_from_spec(place)
    place.loader.exec_module(fake)
    case = GpuCase(SQUARE, arrays=np)
    following = Case(SQUARE, x=case.expected, w=case.w, requant=case.requant)
    answers = {to_nhwcnc(x).tobytes(): to_nhwcnc(y).ravel()
               for x, y in ((case.x, case.expected), (case.expected, following.expected))}  # fmt: skip

    def right(arrays):
        arrays[1][:] = answers.get(arrays[0].tobytes(), arrays[0])

    def wrong(arrays):
        arrays[1][:] = answers[arrays[0].tobytes()] ^ np.uint32(1)

    right.arguments = wrong.arguments = 2
    monkeypatch.setattr(compare, "GpuCase", lambda *a, **k: GpuCase(*a, **k, arrays=np))
    return CudaDevice(0, fake.FakeDriver({b"right": right, b"wrong": wrong}))


def test_one_cell_has_our_best_kernel_alone_and_in_a_chain(gpu, monkeypatch):
    launch = Launch("conv_kernel", LAUNCH.grid, LAUNCH.block, 0, LAUNCH.arguments)
    kernels = [
        kernel_pack.Packed(SQUARE, "wgmma", PipelineConfig(stages=ring), "because", cubin, launch)
        for ring, cubin in ((3, b"wrong"), (4, b"right"))
    ]
    torch = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))
    monkeypatch.setattr(compare, "copy_of", lambda workload, device: compare.full(kernels[1], Case(SQUARE), gpu))

    def side(case, how, only):
        assert only == ("plan",)
        timing = compare.full(kernels[1], case, gpu)
        return BaselineResult("cuDNN x", "int8", "none", "plan", 1, 0.0, timing)

    def fails(case, how, only):
        raise WrongResult("no plan")

    known = [{"spec": SQUARE.spec, "side": name, "microseconds": us, "ranking": [["plan", us]]}
             for name, us in (("cuDNN x", 1.0), ("y", 2.0))]  # fmt: skip
    ways, args = {"cuDNN x": side, "y": fails}, SimpleNamespace(most=2, every_side=[])
    plans = compare.planned(SQUARE, list(ways), known, args)
    cell = compare.one_cell(SQUARE, kernels, gpu, SimpleNamespace(torch=torch), ways, plans)
    cell = json.loads(json.dumps(cell))
    own = cell["ours"]
    assert (own["family"], own["key"], own["tried"]) == ("wgmma", PipelineConfig(stages=4).key, 1)
    assert own["microseconds"] == pytest.approx(4.0)
    assert own["cold_microseconds"] == pytest.approx(6.5)
    assert own["chain"]["reads"] == overlapped.OWN_OUTPUT
    assert own["chain"]["key"] == own["key"]
    assert [line["side"] for line in cell["opponents"]] == ["cuDNN x"]
    assert cell["missing"] == [{"side": "y", "reason": "WrongResult: no plan"}]
    assert cell["copy"]["microseconds"] == pytest.approx(4.0)
    assert "4.00 alone" in compare.line_of(cell)
    none = compare.one_cell(SQUARE, kernels[:1], gpu, SimpleNamespace(torch=torch), {}, [])
    assert "no kernel was right" in none["missing"][0]["reason"]


# ---- stopped and started again ---------------------------------------------------------------------------------------

LAYERS = [ConvWorkload(8, 3, 3, 32, 32, 3, 3, 1, name=f"layer{number}@8") for number in range(3)]
LAYERS = [ConvWorkload(8, 3 + number, 3, 32, 32, 3, 3, 1, name=layer.name) for number, layer in enumerate(LAYERS)]


@pytest.fixture
def pack(tmp_path):
    """A kernel for each of three layers."""
    return lambda cubin=b"kernel": _packed(tmp_path / "pack", cubin)


def _packed(folder, cubin):
    (folder / "kernels.jsonl").unlink(missing_ok=True)
    kernel_pack.add(folder, [kernel_pack.Packed(layer, "mma", MmaConfig(), "", cubin, LAUNCH) for layer in LAYERS])
    return folder


@pytest.fixture
def comparing(monkeypatch, tmp_path):
    """Calls ``compare`` with cells that are made up; the layers it measured, its exit code and its record."""

    def call(folder, stop_at="", seconds=1e6, gpu="NVIDIA H200", more=(), torch="2"):
        measured = []

        def one_cell(workload, kernels, *_):
            if workload.label == stop_at:
                raise KeyboardInterrupt
            measured.append(workload.label)
            return {"workload": workload.label, "spec": workload.spec, "opponents": [], "missing": [],
                    "ours": {"microseconds": 1.0, "chain": {"microseconds": 1.0}}}  # fmt: skip

        info = SimpleNamespace(name=gpu, to_dict=lambda: {"name": gpu})
        monkeypatch.setattr(compare, "CudaDevice", lambda ordinal: SimpleNamespace(info=info))
        monkeypatch.setattr(compare, "TorchDevice", lambda info: None)
        monkeypatch.setattr("benchmarks.baselines.plans.versions", lambda: {"torch": torch})
        monkeypatch.setattr(compare, "Driver", lambda path: SimpleNamespace(names=path.read_text().split()))
        monkeypatch.setattr(compare, "one_cell", one_cell)
        out = tmp_path / "record.json"
        words = [str(out), "--pack", str(folder), "--seconds", str(seconds), *more]
        try:
            status = compare.main(words)
        except KeyboardInterrupt:
            status = None
        return measured, status, json.loads(out.read_text()) if out.exists() else None

    return call


def test_a_stopped_comparison_goes_on_with_the_layers_it_lacks(comparing, pack, tmp_path):
    measured, status, record = comparing(pack(), stop_at="layer1@8")
    assert (measured, status, len(record["cells"])) == (["layer0@8"], None, 1)
    measured, status, record = comparing(pack())
    assert (measured, status) == (["layer1@8", "layer2@8"], 0)
    assert [one["workload"] for one in record["cells"]] == [layer.label for layer in LAYERS]
    assert len(record["runs"]) == 2
    assert table.processes(record) == "2 processes, each layer in one of them"
    assert comparing(pack())[0] == []
    record["cells"][1]["missing"] = [{"side": "cuDNN", "reason": "the GPU is gone"}]
    (tmp_path / "record.json").write_text(json.dumps(record))
    assert comparing(pack())[0] == ["layer1@8"]
    assert comparing(pack(b"another kernel"))[0] == [layer.label for layer in LAYERS]


def test_a_comparison_with_other_baselines_does_not_go_into_one_record(comparing, pack, tmp_path, capsys):
    (tmp_path / "lib.so").write_text("one two")
    cutlass = ["--cutlass", str(tmp_path / "lib.so")]
    comparing(pack(), stop_at="layer2@8", more=cutlass)
    there = (tmp_path / "record.json").read_bytes()
    for changed in ({}, {"more": cutlass, "torch": "3"}):
        assert comparing(pack(), **changed)[:2] == ([], 2)
        assert (tmp_path / "record.json").read_bytes() == there
    said = capsys.readouterr().err
    assert "record.json holds times beside other baselines (its sides, cutlass differ): name the --cutlass" in said
    assert "(its versions differ)" in said
    (tmp_path / "lib.so").write_text("one three")
    assert comparing(pack(), more=cutlass)[1] == 2
    assert "(its cutlass differ)" in capsys.readouterr().err
    (tmp_path / "lib.so").write_text("one two")
    assert comparing(pack(), more=cutlass)[0] == ["layer2@8"]
    assert comparing(pack(b"another kernel"))[0] == [layer.label for layer in LAYERS]  # nothing to mix with is left


def test_a_layer_is_measured_again_beside_other_plans(comparing, pack, tmp_path, capsys):
    comparing(pack(), more=["--most", "2"])
    more = ["--most", "2", "--every-side", "layer1@8"]
    assert comparing(pack(), more=more)[0] == ["layer1@8"]
    assert "measured again, beside other plans than before: layer1@8\n" in capsys.readouterr().out
    assert comparing(pack(), more=more)[0] == []
    line = {"spec": LAYERS[2].spec, "side": "cuDNN float16, PyTorch", "microseconds": 1.0, "ranking": [["x", 1.0]]}
    written.append_line(tmp_path / "found.jsonl", line)
    assert comparing(pack(), more=[*more, "--found", str(tmp_path / "found.jsonl")])[0] == ["layer2@8"]


def test_what_there_was_no_time_for_is_said_and_comes_next(comparing, pack, capsys):
    measured, status, record = comparing(pack(), seconds=-1)
    assert (measured, status) == ([], 1)
    assert [one["reason"] for one in record["missing"]] == ["no time left"] * 3
    assert "left: layer0@8, layer1@8, layer2@8" in capsys.readouterr().out
    measured, status, record = comparing(pack())
    assert (len(measured), status, record["missing"]) == (3, 0, [])


def test_times_of_two_kinds_of_gpus_do_not_go_into_one_record(comparing, pack, tmp_path, capsys):
    comparing(pack())
    assert comparing(pack(), gpu="NVIDIA H100")[1] == 2
    assert "holds times of NVIDIA H200, this is NVIDIA H100" in capsys.readouterr().err
    (tmp_path / "cut.json").write_text('{"gpu"')
    with pytest.raises(BrokenRecord, match="no record of this program"):
        written.begun(tmp_path / "cut.json", "NVIDIA H200", "cells")
    assert len(written.begun(tmp_path / "record.json", "NVIDIA H200", "cells")["cells"]) == 3
    with pytest.raises(BrokenRecord, match="no record of this program"):  # it would be written over
        written.begun(tmp_path / "record.json", "NVIDIA H200", "chains")
    assert comparing(tmp_path / "nothing")[1] == 2


@pytest.mark.parametrize(
    "words",
    [
        ["baselines", "search", "found.jsonl", "resnet50.stage2@8"],
        ["baselines", "compare", "record.json", "--pack", "pack"],
        ["network", "chains", "--measure", "pack", "--out", "chains.json"],
        [
            "baselines",
            "rounds",
            "--pack",
            "pack",
            "--out",
            "side.json",
            "--cells",
            LAYERS[0].spec,
            "--found",
            "searched.jsonl",
        ],
        ["paper", "measure", "results", "bundle"],
    ],
)
def test_without_a_gpu_one_sentence(words, pack, tmp_path, monkeypatch, capfd):
    (pack() / "chains.json").write_text("{}")
    build_bundle(space(SQUARE), tmp_path / "bundle", 1, [], build=lambda *_: None)
    found = {"microseconds": 1.0, "plans": 1, "plan": "x", "ranking": [["x", 1.0]]}
    line = {"spec": LAYERS[0].spec, "side": "CUTLASS int8 to int8", **found}
    written.append_line(tmp_path / "searched.jsonl", line)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert program(words[0], "", words[1:2], words[1:]) == 3
    told = capfd.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
