"""Layers measured in turns and twice: runs, what they say together, what goes on where, as far as it goes without a
GPU."""

import json
import random
from contextlib import ExitStack, nullcontext
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.baselines import rounds, rounds_record, rounds_table
from benchmarks.baselines import sides as sides_of_a_layer
from benchmarks.baselines.sides import OURS, Side
from benchmarks.network import chains as layer_chain
from benchmarks.shared import kernel_pack, written
from benchmarks.shared.gpu_case import GpuCase
from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput, WrongResult
from subbyte.families.mma.config import MmaConfig
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.driver import CudaError
from subbyte.gpu.telemetry import Snapshot
from subbyte.measure.case import Case
from subbyte.measure.rounds import RoundProtocol
from subbyte.numerics import to_nhwcnc
from subbyte.workload import ConvWorkload

WORDS = Argument("A", "uint32", (8 * 3 * 3 * 4,), "in", "nhwcnc")
LAUNCH = Launch("k", (1, 1, 1), (128, 1, 1), 0, (WORDS, Argument("Out", "uint32", WORDS.shape, "out", "nhwcnc")))
LAYERS = [ConvWorkload(8, 3 + number, 3, 32, 32, 3, 3, 1, name=f"layer{number}@8") for number in range(3)]
INT8, CUTLASS = "cuDNN int8 to int8, graph API", "CUTLASS int8 to int8"


class Clock:
    """A device whose time is made up; it drifts, and every run (process) is off by a share of its own."""

    def __init__(self, info, drift=1e-4):
        self.info, self.spun_up, self.lost, self.now, self.drift, self.factor = info, True, False, 0.0, drift, 1.0

    activate = flush_buffer = synchronize = lambda self, *_: None

    def flush_l2(self):
        self.spend(50.0)

    def spend(self, microseconds):
        self.now += microseconds * self.factor
        self.factor += self.drift * microseconds / 1e4

    def elapsed_us(self, work, timeout_s=0.0):
        begun = self.now
        work()
        return self.now - begun

    def graph(self, record):
        return nullcontext(record)


@pytest.fixture
def measuring(monkeypatch, tmp_path):
    """Runs the program with sides that are made up: exit status, record, what was measured (run, layer)."""
    info = SimpleNamespace(name="NVIDIA H200", bus_id="0", l2_bytes=100, driver_version="1")
    info.to_dict = lambda: {"name": info.name, "driver_version": "1"}
    pack, found, library = tmp_path / "pack", tmp_path / "found.jsonl", tmp_path / "lib.so"
    if not found.exists():
        library.write_text("tile")
        for layer in LAYERS:
            for side, plan, us in ((INT8, "eng4", 4.2), (CUTLASS, "tile", 4.4)):
                written.append_line(found, {"spec": layer.spec, "side": side, "plan": plan, "plans": 6,
                                            "microseconds": us, "ranking": [[plan, us]]})  # fmt: skip

    def call(
        *words, ours=4.0, theirs=4.2, off=(0.0, 0.0, 0.0), cubin=b"kernel", stop_at=(), torch="2", lost=0, wrong=""
    ):
        kernel_pack.replace(pack, [kernel_pack.Packed(one, "mma", MmaConfig(), "", cubin, LAUNCH) for one in LAYERS])
        measured, noise, crashes = [], np.random.default_rng(4), [lost]

        def side(name, us, run, label):
            clock = Clock(info)
            shift = 1 + (off[run - 1] if label == "layer1@8" else 0) + noise.normal(0, 0.001)

            def launch(factor=1.0):
                clock.spend(us * shift * factor * (1 + noise.normal(0, 0.002)))

            about = {"side": name.partition(", eng")[0].partition(", tile")[0], "plan": name, "counts": {"distinct": 9}}
            return Side(name, about, clock, launch, 99, {"chain": lambda: launch(4 * 0.9)})

        def our_side(stack, kernel, case, device):
            run, label = call.run, kernel.workload.label
            if (run, label) == stop_at:
                raise KeyboardInterrupt
            if crashes[0] and label == "layer1@8":
                crashes[0] -= 1
                raise CudaError("crash", "CUDA_ERROR_LAUNCH_FAILED")
            measured.append((run, label))
            if label == wrong:
                raise WrongResult("7 elements differ")
            return side(OURS, ours, run, label)

        def baseline_sides(stack, case, device, driver, name, plans, chained):
            assert chained
            if name == CUTLASS:
                missing = sides_of_a_layer.baseline_sides(stack, case, device, None, name, plans, chained)
                return ([side(f"{name}, tile", 9.0, call.run, case.workload.label)], []) if driver else missing
            return [side(f"{name}, eng4", theirs, call.run, case.workload.label)], []

        def another_process(words, number, only, end):
            assert words == arguments
            call.run = number
            more = ["--run", str(number), "--seconds", "1e6", *(["--cells", *only] if only else [])]
            return rounds.main([*arguments, *more])

        device = SimpleNamespace(info=info, lost=False)
        torch_device = SimpleNamespace(torch=SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None)))
        for name, value in {
            "CudaDevice": lambda ordinal: device, "TorchDevice": lambda info: torch_device, "our_side": our_side,
            "baseline_sides": baseline_sides, "another_process": another_process, "GpuCase": Case,
            "hold": lambda info: nullcontext(), "Driver": lambda path: SimpleNamespace(names=path.read_text().split()),
            "Telemetry": lambda bus: SimpleNamespace(snapshot=lambda: Snapshot(1980, 3201, 400.0, 40, ())),
        }.items():  # fmt: skip
            monkeypatch.setattr(rounds, name, value)
        monkeypatch.setattr("benchmarks.baselines.plans.versions", lambda: {"torch": torch})
        out = tmp_path / "record.json"
        arguments = ["--pack", str(pack), "--out", str(out), "--found", str(found), "--rounds", "9",
                     "--cells", *(layer.spec for layer in LAYERS), *words]  # fmt: skip
        try:
            status = rounds.main(arguments)
        except KeyboardInterrupt:
            status = None
        return status, json.loads(out.read_text()) if out.exists() else None, measured

    def brief(rounds):
        return RoundProtocol(rounds, launches=4, warmup_ms=0.01, sample_ms=0.05, cold_launches=2)

    brief.rounds = 25
    monkeypatch.setattr("subbyte.measure.interval.DRAWS", 200)
    monkeypatch.setattr(rounds, "RoundProtocol", brief)
    call.library, call.out = ["--cutlass", str(library)], tmp_path / "record.json"
    monkeypatch.setattr(rounds, "cells_of", lambda names: [one for one in LAYERS if {one.spec, one.label} & {*names}])
    return call


@pytest.mark.deep
def test_two_runs_hold_the_planted_ratio_and_their_raw_samples(measuring, capsys):
    status, record, measured = measuring(*measuring.library)
    assert status == 0
    assert measured == [(run, layer.label) for run in (1, 2) for layer in LAYERS]
    assert [start["run"] for start in record["starts"]] == [1, 2]
    for cell, result in zip(record["cells"], record["results"], strict=True):
        assert len(cell["runs"]) == 2
        for run in cell["runs"]:
            whats = [(entry["side"], entry["what"]) for entry in run["entries"]]
            assert whats[:3] == [(OURS, "hot"), (OURS, "cold"), (OURS, "chain")]
            assert len(whats) == 9
            assert all(len(entry["samples"]) == 9 for entry in run["entries"])
            assert all(sorted(order) == list(range(9)) for order in run["orders"])
            assert len({tuple(order) for order in run["orders"]}) == 9
            assert run["clocks"]["sm_mhz"] == [1980] * 10
            assert run["clocks"]["power_watts"] == [400.0] * 10
        assert cell["runs"][0]["orders"] != cell["runs"][1]["orders"]
        ratio = result["opponents"][0]["ratio_hot"]
        assert ratio["low"] <= 4.2 / 4.0 <= ratio["high"]
        assert ratio["high"] - ratio["low"] < 0.03
        assert result["ours"]["chain"]["low"] <= 3.6 <= result["ours"]["chain"]["high"]
        assert (result["best"], result["verdict"], result["agree"]) == (f"{INT8}, eng4", "ahead", True)
    assert "x1.05" in capsys.readouterr().out
    assert record["results"] == json.loads(json.dumps(rounds_record.results(record["cells"])))
    assert record["peak"] == {"atom": "s8.wgmma.m64n128k32", "tops": 1944.9}


@pytest.mark.parametrize(("theirs", "verdict"), [(4.0, "even"), (3.8, "behind")])
def test_nobody_is_ahead_within_the_interval(measuring, theirs, verdict):
    _, record, _ = measuring(*measuring.library, theirs=theirs)
    assert [one["verdict"] for one in record["results"]] == [verdict] * 3


def test_two_runs_that_disagree_lead_to_a_third(measuring, capsys):
    status, record, measured = measuring(*measuring.library, off=(0.0, 0.05, 0.051))
    assert status == 0
    assert measured[6:] == [(3, "layer1@8")]
    assert [len(cell["runs"]) for cell in record["cells"]] == [2, 3, 2]
    assert "differ by more than 2 %, a third: layer1@8" in capsys.readouterr().out
    result = record["results"][1]
    assert result["agree"]
    assert len(result["ours"]["hot"]["runs"]) == 3
    assert result["ours"]["hot"]["high"] / result["ours"]["hot"]["low"] > 1.05
    assert measuring(*measuring.library)[2] == []  # nothing is left to do
    record["cells"][1]["runs"].pop()
    measuring.out.write_text(json.dumps(record))
    _, record, measured = measuring(*measuring.library, off=(0.0, 0.05, 0.2))
    assert measured == [(3, "layer1@8")]
    assert not record["results"][1]["agree"]
    assert "layer1@8 (runs differ)" in rounds_table.table(record)


def test_a_stopped_start_goes_on_with_the_runs_it_lacks(measuring):
    status, record, measured = measuring(*measuring.library, stop_at=(2, "layer1@8"))
    assert (status, measured[-1]) == (None, (2, "layer0@8"))
    assert [len(cell["runs"]) for cell in record["cells"]] == [2, 1, 1]
    status, record, measured = measuring(*measuring.library)
    assert (status, measured) == (0, [(2, "layer1@8"), (2, "layer2@8")])
    record["cells"][0]["runs"][1]["sides"] = record["cells"][0]["runs"][1]["sides"][:1]  # the GPU was lost behind ours
    measuring.out.write_text(json.dumps(record))
    assert measuring(*measuring.library)[2] == [(2, "layer0@8")]
    assert len(measuring(*measuring.library, cubin=b"other")[2]) == 6


def test_a_lost_gpu_costs_a_process_and_nothing_else(measuring):
    status, _, measured = measuring(*measuring.library, lost=1)
    assert (status, len(measured)) == (0, 6)
    assert measuring(*measuring.library, cubin=b"other", lost=99)[0] == rounds.LOST


def test_a_wrong_kernel_is_absent_and_its_layer_left(measuring, capsys):
    status, record, _ = measuring(*measuring.library, wrong="layer1@8")
    assert status == 1
    assert "left: layer1@8" in capsys.readouterr().out
    assert record["results"][1]["absent"][0]["reason"] == "WrongResult: 7 elements differ"
    assert (record["results"][1]["ours"], record["results"][1]["verdict"]) == ({}, "open")
    assert measuring(*measuring.library)[2] == [(1, "layer1@8"), (2, "layer1@8")]


def test_a_record_of_other_baselines_is_refused(measuring, capsys):
    measuring(*measuring.library)
    there = measuring.out.read_bytes()
    for words, torch, said in (([], "2", "cutlass"), (measuring.library, "3", "versions")):
        status, _, measured = measuring(*words, torch=torch)
        assert (status, measured) == (2, [])
        assert f"record.json holds times beside other baselines (its {said} differ)" in capsys.readouterr().err
    assert measuring.out.read_bytes() == there
    measuring.out.write_text('{"format": "subbyte-opponents", "gpu": {"name": "NVIDIA H200"}, "cells": []}')
    assert measuring(*measuring.library)[0] == 2
    assert "no record of `benchmarks/baselines rounds`" in capsys.readouterr().err


def test_a_baseline_without_its_library_is_recorded_as_absent(measuring, tmp_path):
    status, record, _ = measuring()
    assert status == 0
    result = record["results"][0]
    assert [(one["side"], one["plan"]) for one in result["absent"]] == [(CUTLASS, "tile")]
    assert "--cutlass" in result["absent"][0]["reason"]
    assert [line["side"] for line in result["opponents"]] == [INT8]
    assert (result["verdict"], result["verdict_chain"]) == ("open", "open")
    text = rounds_table.tables(measuring.out)
    assert "Absent: layer0@8, CUTLASS int8 to int8, tile: the library of CUTLASS's instances was not given" in text


def test_the_table_shows_intervals_and_the_records_own_peak(measuring, capsys):
    _, record, _ = measuring(*measuring.library)
    record["peak"]["tops"] = 2 * LAYERS[0].operations / record["results"][0]["ours"]["hot"]["value"] / 1e6
    record["cells"][0]["asked"][0]["counts"] = {"offered": 12, "distinct": 9, "tried": 6, "failed": 0, "cut": 3}
    record["cells"][0]["runs"][0]["sides"][1]["fits_l2"] = False
    measuring.out.write_text(json.dumps(record))
    assert rounds_table.main([str(measuring.out)]) == 0
    text = capsys.readouterr().out
    line = next(line for line in text.splitlines() if line.startswith("| layer0@8"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[1].startswith("4.0")
    assert "±" in cells[1]
    assert cells[3] == "50 %"
    assert cells[6] == "int8 to int8"
    assert cells[7].startswith("1.05 (1.0")
    assert cells[8] == "ahead"
    assert "±" in cells[9]
    assert cells[12] == "6 of 9, 3 cut off"
    assert "6 of 9 |" in next(line for line in text.splitlines() if line.startswith("| layer1@8"))
    assert "SM clock 1980 to 1980 MHz" in text
    assert "Larger than the L2, so never hot: layer0@8, int8 to int8." in text
    measuring.out.write_text("{}")
    assert rounds_table.main([str(measuring.out)]) == 2


def test_what_is_wrong_is_said_before_a_gpu_is_touched(measuring, tmp_path, capsys, monkeypatch):
    measuring(stop_at=(1, "layer0@8"))
    monkeypatch.setattr(rounds, "all_runs", lambda *_: pytest.fail("began"))
    pack, out = str(tmp_path / "pack"), str(tmp_path / "new.json")
    (tmp_path / "file").write_text("")
    spec, cells = ConvWorkload(8, 9, 9, 32, 32, 3, 3, 1), ["--cells", LAYERS[0].spec]
    for words, said in (
        (
            ["--pack", str(tmp_path / "none"), "--out", out, *cells],
            "no pack of kernels; `python benchmarks/baselines rounds --build",
        ),
        (["--pack", pack, *cells], "--out: name the file"),
        (["--pack", pack, "--out", str(tmp_path), *cells], "cannot be written (it is a folder)"),
        (["--pack", pack, "--out", str(tmp_path / "file" / "x.json"), *cells], "cannot be written"),
        (["--pack", pack, "--out", out, "--cutlass", "none.so", *cells], "none.so: there is no such file"),
        (
            ["--pack", pack, "--out", out, *cells, "--found"],
            "no search has a baseline of layer0@8, to be measured beside",
        ),
        (["--pack", pack, "--out", out, "--rounds", "0", *cells], "rounds=0"),
    ):
        assert rounds.main(words) == 2
        assert said in capsys.readouterr().err
    monkeypatch.setattr(rounds, "cells_of", lambda names: [spec])
    assert rounds.main(["--pack", pack, "--out", out]) == 2
    assert f"no kernel of {spec.label}" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.probe"))


# ---- sides -----------------------------------------------------------------------------------------------------------


class Device(CudaDevice):
    """Buffers by address, and one kernel that knows the answers: ``steps`` lists words with what follows them."""

    def __init__(self, steps):
        self.steps, self.memory, self.overlaps = steps, {}, []
        self.info = SimpleNamespace(l2_bytes=1 << 20)
        self.attributes = SimpleNamespace(max_threads=1024)
        self.lost = False

    def load(self, cubin, entry):
        return self

    allow_shared = unload = synchronize = activate = lambda self, *_: None

    def alloc(self, nbytes):
        address = len(self.memory) + 1
        self.memory[address] = np.zeros(nbytes // 4, np.uint32)

        def fill(byte):
            self.memory[address][:] = byte

        return SimpleNamespace(pointer=address, nbytes=nbytes, shared=False, fill=fill, free=lambda: None,
                               download=lambda shape, dtype: self.memory[address].reshape(shape).copy())  # fmt: skip

    def upload(self, array):
        buffer = self.alloc(array.nbytes)
        self.memory[buffer.pointer][:] = array.ravel()
        return buffer

    def launch(self, grid, block, shared, pointers, overlap=False):
        self.overlaps.append(overlap)
        found = (after for before, after in self.steps if np.array_equal(before, self.memory[pointers[0]]))
        self.memory[pointers[1]][:] = next(found, 0)


@pytest.mark.parametrize("wrong", [None, 0, 2])
def test_ours_is_compared_alone_and_in_every_layer_of_a_true_chain(monkeypatch, wrong):
    monkeypatch.setattr(layer_chain, "GpuCase", lambda *given, **more: GpuCase(*given, **{**more, "arrays": np}))
    layer = ConvWorkload(8, 3, 3, 32, 32, 3, 3, 1)
    launch = Launch("k", (1, 1, 1), (128, 1, 1), 0, LAUNCH.arguments, 1, True)
    packed = kernel_pack.Packed(layer, "mma", MmaConfig(), "", b"", launch)
    assert sides_of_a_layer.chains_with_itself(packed)
    case = GpuCase(layer, arrays=np)
    _, expected = layer_chain.operands([packed] * 4, first=case)
    words = [to_nhwcnc(values).ravel() for values in (case.x, *expected)]
    steps = list(pairwise(words))
    if wrong is not None:
        steps[wrong] = (words[wrong], words[wrong + 1] ^ np.uint32(1))
    device = Device(steps)
    with ExitStack() as stack:
        if wrong is not None:
            with pytest.raises(WrongResult):
                sides_of_a_layer.our_side(stack, packed, case, device)
            return
        side = sides_of_a_layer.our_side(stack, packed, case, device)
        assert side.to_dict()["chain_how"] == sides_of_a_layer.WITH_OVERLAP
        assert side.to_dict()["fits_l2"]
        for kind, overlaps in (("chain", [False, True, True, True]), ("plain_chain", [False] * 4)):
            device.overlaps.clear()
            side.chains[kind]()
            assert device.overlaps == overlaps


class Tensor:
    """As much of a tensor as chains need."""

    def __init__(self, dtype="int8", shape=(1, 2)):
        self.dtype, self.shape = dtype, shape

    def copy_(self, other):
        self.copied = other


def test_a_baselines_chain_reads_what_was_written_where_the_types_allow_it():
    torch = SimpleNamespace(clone=lambda t: Tensor(t.dtype, t.shape), empty_like=lambda t: Tensor(t.dtype, t.shape))
    device = SimpleNamespace(torch=torch)
    forms = sides_of_a_layer.GRAPH_SIDES
    given, how = sides_of_a_layer.buffers_of(Tensor(), Tensor(), Tensor(), forms[INT8], device)
    assert len(given) == 4
    assert all(after[0] is before[2] for before, after in pairwise(given))
    assert "no programmatic launch; each reads what the one before wrote" in how
    plain = forms["cuDNN float16 to float16, graph API"]
    given, how = sides_of_a_layer.buffers_of(Tensor("float16"), Tensor(), Tensor("float16"), plain, device)
    assert len({id(tensor) for one in given for tensor in one}) == 12
    assert "an input of its own" in how


def test_a_plan_that_is_not_offered_or_wrong_is_absent_with_the_reason(monkeypatch):
    class Opened:
        names, padding, form = ["eng1", "eng4", "eng1"], "", sides_of_a_layer.GRAPH_SIDES[INT8]
        x = w = y = SimpleNamespace(numel=lambda: 10, element_size=lambda: 1)
        build = launcher = lambda self, index: index

        def checked(self, launch, case):
            if launch == 1:
                raise WrongResult("off by one")
            return 0.0

    monkeypatch.setattr(sides_of_a_layer, "open_graph", lambda *_: nullcontext(Opened()))
    stack = SimpleNamespace(enter_context=lambda context: context.__enter__())
    info = SimpleNamespace(info=SimpleNamespace(l2_bytes=29))
    found, absent = sides_of_a_layer.baseline_sides(stack, None, info, None, INT8, ("eng1", "eng4", "eng9"), False)
    assert [side.name for side in found] == [f"{INT8}, eng1"]
    assert found[0].to_dict()["counts"] == {"offered": 3, "distinct": 2}
    assert not found[0].to_dict()["fits_l2"]
    assert [one["reason"] for one in absent] == [
        "WrongResult: off by one", "InvalidInput: cuDNN offers no plan 'eng9' here, of 3",
    ]  # fmt: skip


def test_the_twelve_stages_and_all_layers():
    assert len(rounds.cells_of(["stages"])) == 12
    every = rounds.cells_of(["all"])
    assert (len(every), every[:12]) == (84, rounds.cells_of(["stages"]))
    known = rounds.read_lines(sorted(rounds.FOUND.glob("search-*.jsonl.gz")))
    for cell in every:
        asked = rounds.asked_of(cell, known)
        assert len(asked) == 2
        assert all(
            1 <= len(line["plans"]) <= 2 and not any("padded" in plan for plan in line["plans"]) for line in asked
        )
    with pytest.raises(InvalidInput, match="stage9"):
        rounds.cells_of(["resnet50.stage9@8"])


def test_rows_of_numbers_stand_on_one_line(tmp_path):
    record = {"a": [1.5, -2, None], "b": [[0, 1], [1, 0]], "c": ["x"], "d": random.Random(0).random(), "e": []}
    rounds_record.write_record(tmp_path / "r.json", record)
    text = (tmp_path / "r.json").read_text()
    assert "[ 1.5, -2, null ]" in text
    assert json.loads(text) == record
