"""compile(tries=) and the user's own store, on a simulated GPU: what is chosen, remembered and found again."""

from __future__ import annotations

import json
import sqlite3
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import subbyte
from subbyte.cli.main import main
from subbyte.errors import InvalidInput, MissingDependency, WrongResult
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.kernel import Kernel, own
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import best_known, likeliest
from subbyte.kernel.split import SplitKernel
from subbyte.measure import tries
from subbyte.measure.fake import FakeRunner
from subbyte.records.own import own_record
from subbyte.records.result import Failed, Measured
from subbyte.records.store import Store
from subbyte.tune import Study, tune

LAYER = subbyte.workload("n8h5w5c32k32r3s3p1")
SHIPPED = subbyte.workload("resnet50.stage2@8")
DEVICE = {"runner": "cuda", "name": "GPU A", "driver": "580.1", "uuid": "GPU-1", "arch": "sm_90a", "sms": 132}


class SimulatedGpu(FakeRunner):
    """Verified times by the place in ``order``, the later the faster; what ``fails`` names fails."""

    def __init__(self, order=(), fails=(), name="GPU A", base=9.0):
        super().__init__()
        self.device = {**DEVICE, "name": name}
        self.order, self.fails, self.base, self.asked = list(order), fails, base, []
        self.places = {config: place for place, config in enumerate(order)}

    def time_of(self, config):
        return self.base * 0.99 ** self.places.get(config, 0)

    def run(self, workload, configs):
        self.asked += configs
        return [self.result_of(config) for config in configs]

    def result_of(self, config):
        if config in self.fails:
            return Failed("wrong", "an element differs")
        time = self.time_of(config)
        return Measured(time, (time, time * 1.01), verified=True, device=self.device)

    def rematch(self, workload, configs, rounds):
        return [[self.time_of(config)] * rounds for config in configs]


@pytest.fixture
def store(tmp_path, monkeypatch):
    path = tmp_path / "own.sqlite"
    monkeypatch.setenv("SUBBYTE_STORE", str(path))
    return Store(path)


@pytest.fixture
def gpus(monkeypatch):
    """The GPUs of this machine: by default one."""
    found = [SimpleNamespace(ordinal=0, name="GPU A", arch="sm_90a")]
    monkeypatch.setattr("subbyte.gpu.driver.detect", lambda: found)
    return found


@pytest.fixture
def runner(monkeypatch, gpus):
    made = SimulatedGpu(likeliest(LAYER, subbyte.device.arch("sm_90a"), 6))
    monkeypatch.setattr(tries, "_open", lambda device, output, count: made)
    return made


def test_the_fastest_is_taken_stored_and_found_again(store, runner):
    before = subbyte.compile(LAYER)
    assert "estimate" in before.reason
    runner.fails = runner.order[-1:]
    kernel = subbyte.compile(LAYER, tries=6)
    winner = runner.order[-2]
    assert runner.asked == runner.order
    assert before.config == runner.order[0]  # the ranking is that of compile
    assert kernel.config == winner
    assert "fastest of 5 measured now (8.65 us on GPU A, verified, of 6 tried; the first choice" in kernel.reason
    (row,) = store.rows()
    assert (row.record.configuration, row.record.microseconds) == (winner, pytest.approx(9 * 0.99**4))
    assert (row.record.source, row.record.trials, row.record.verified, row.record.driver) == ("tries", 5, True, "580.1")
    again = subbyte.compile(LAYER)
    assert again.config == winner
    assert again.reason.startswith("wgmma family, your own record (8.65 us, spread 0.0%, on GPU A, driver 580.1, 20")
    assert best_known(LAYER) == (again.config, again.reason)
    assert subbyte.compile(LAYER, output="int32").config == winner
    assert "estimate" in subbyte.compile(LAYER, store="off").reason


BATCH = replace(LAYER, n=16)


def times_of_two(monkeypatch, time):
    """What the simulated GPU says of two launches; None for a wrong answer."""

    def timed(self, protocol, device):
        if time is None:
            raise WrongResult("1 of 9 elements differ")
        return SimpleNamespace(microseconds=time, samples=(time - 0.1, time, time + 0.1))

    monkeypatch.setattr(SplitKernel, "time", timed)


@pytest.fixture
def two(runner, monkeypatch):
    """16 images as 8 and 8, which are expected to be faster: 8 us on this GPU, the fastest of one more than 8.5."""
    part = Kernel(make_plan(LAYER, runner.order[0], "sm_90a", None, None, "fixed"))
    made = SplitKernel.joining(BATCH, [part, part])
    monkeypatch.setattr(tries, "two_launches", lambda one, asked: made)
    times_of_two(monkeypatch, 8.0)
    return made


@pytest.mark.parametrize(("time", "taken"), [(8.0, True), (9.0, False), (None, False)])
def test_two_launches_are_timed_beside_the_winner(store, runner, two, monkeypatch, time, taken):
    """They are returned and kept where they are faster than one, which is kept too; a wrong answer of
    theirs (None) leaves the winner."""
    times_of_two(monkeypatch, time)
    kernel = subbyte.compile(BATCH, tries=6)
    assert (len(kernel.parts) == 2) == taken
    assert [row.record.launches for row in store.rows()] == [True, False][not taken :]
    if taken:
        assert kernel.reason.startswith(
            "two launches, of 8 and 8 images, 8.00 us measured now on GPU A, verified; one launch, the fastest of 6"
        )


def test_two_launches_are_found_again(store, runner, two):
    """By compile and the origin view, on this GPU alone; one launch stays for build and conv2d."""
    assert len(subbyte.compile(BATCH, tries=6).parts) == 2
    again = subbyte.compile(BATCH)
    assert again.plan.config == two.plan.config
    assert again.reason.startswith("two launches, of 8 and 8 images, your own record (8.00 us, spread 2.5%, on GPU A, ")
    assert again.reason.endswith("by compile(tries=))")
    record, one = (row.record for row in store.rows())
    assert (record.family, record.samples, record.verified) == ("wgmma", 3, True)
    assert record.configuration == two.plan.config
    assert own_record(record.to_dict()) == record
    assert len(subbyte.compile(BATCH, output="int32").parts) == 2
    assert len(subbyte.compile(BATCH, family="mma").parts) == 1  # these kernels are of another family
    assert len(subbyte.compile(BATCH, store="off").parts) == 1
    assert best_known(BATCH)[0] == one.configuration
    origin = subbyte.origin(BATCH)
    assert (origin.source, origin.microseconds, origin.taken.launches) == ("own", 8.0, (8, 8))
    assert (origin.reason, origin.taken.short) == (again.reason, "8 images + 8 images")
    assert [source.microseconds for source in origin.sources[:2]] == [8.0, one.microseconds]


@pytest.mark.parametrize("change", ["gpu", "text", "verified", "images", "config", "faster"])
def test_two_launches_that_may_not_be_taken(store, runner, two, gpus, change):
    """Another GPU's, another text's and the like come with the reason; so does a record that lies about its parts."""
    subbyte.compile(BATCH, tries=6)
    (row, one) = store.rows()
    key, slower = row.record.config, one.record.microseconds + 0.3
    changed, said = {
        "gpu": ({"gpu": "GPU B"}, "on GPU B of 20"),
        "text": ({"generator": "of another day", "text": "0" * 64}, "of another kernel text, by generator of another"),
        "verified": ({"verified": False}, "was not verified"),
        "images": ({"fields": json.dumps({"launches": key.replace("8:", "16:")})}, "these are not the 16 images"),
        "config": ({"fields": json.dumps({"launches": "8:nothing+8:such"})}, "cannot be built by this version"),
        "faster": (
            {"microseconds": slower, "low": slower - 0.1, "high": slower + 0.1},
            f"your own record ({one.record.microseconds:.2f}",
        ),
    }[change]  # fmt: skip
    store.forget(ids=[row.id])
    store.add(replace(row.record, **changed))
    for made in (subbyte.compile(BATCH), subbyte.origin(BATCH)):
        assert said in made.reason + "; ".join(getattr(made, "left", ()))
    kernel = subbyte.compile(BATCH)
    assert (len(kernel.parts), kernel.config) == (1, one.record.configuration)


def test_two_launches_in_a_file_and_in_words(store, two, tmp_path, capsys):
    """Exported, imported, listed and shown; a store of a version that knows none is read as before."""
    subbyte.compile(BATCH, tries=6)
    file, other = tmp_path / "mine.jsonl", tmp_path / "other.sqlite"
    assert main(["records", "export", str(file)]) == main(["records", "import", str(file), "--store", str(other)]) == 0
    assert [row.record for row in Store(other).rows()] == [row.record for row in store.rows()]
    capsys.readouterr()
    assert main(["records", "show", "--store", str(other), "--id", "1"]) == 0
    said = capsys.readouterr().out
    assert f"launches={two.plan.config.key}" in said
    assert "by compile on this machine" in said
    assert len(subbyte.compile(BATCH, store=other).parts) == 2
    Store(other).forget(ids=[1])
    assert len(subbyte.compile(BATCH, store=other).parts) == 1


def test_stored_launches_are_measured_again_where_others_are_expected(store, runner, two, monkeypatch):
    """The second call expects nothing of two launches, and times those of the store."""
    subbyte.compile(BATCH, tries=6)
    monkeypatch.setattr(tries, "two_launches", lambda one, asked: None)
    times_of_two(monkeypatch, 7.0)
    assert "7.00 us measured now" in subbyte.compile(BATCH, tries=6).reason
    assert store.rows()[0].record.microseconds == 7.0


def test_another_gpus_record_is_never_taken_silently(store, runner, gpus):
    subbyte.compile(LAYER, tries=6)
    gpus[0] = SimpleNamespace(ordinal=0, name="GPU B", arch="sm_90a")
    kernel = subbyte.compile(LAYER)
    assert kernel.config == runner.order[0]
    assert "not measured yet" in kernel.reason
    assert "; not taken from your own store: " in kernel.reason
    assert "us on GPU A of 20" in kernel.reason
    assert "which is not GPU B (gpu='GPU A' (--gpu 'GPU A') takes it)" in kernel.reason
    assert subbyte.compile(LAYER, gpu="GPU A").config == runner.order[-1]
    gpus.clear()
    assert "a GPU of this machine" in best_known(LAYER)[1]


def test_another_generator_counts_only_with_the_same_text(store, runner):
    subbyte.compile(LAYER, tries=6)
    database = sqlite3.connect(store.path, isolation_level=None)
    database.execute("UPDATE records SET generator = 'of another day'")
    assert subbyte.compile(LAYER).config == runner.order[-1]  # the text is the same
    database.execute("UPDATE records SET text = ?", ("0" * 64,))
    kernel = subbyte.compile(LAYER)
    assert kernel.config == runner.order[0]
    assert "of another kernel text, by generator of another day (measure again with tries=16)" in kernel.reason
    database.execute("UPDATE records SET verified = 0")
    assert "was not verified" in best_known(LAYER)[1]


def test_own_then_shipped_unless_shipped_is_faster_on_a_like_gpu(store, gpus):
    config = MmaConfig(chunk=2)
    recorded = best_known(SHIPPED)
    with Study(subbyte.space(SHIPPED, "sm_90a"), "random") as study:
        study.tell(study.space.index(config), Measured(9.0, verified=True, device=DEVICE))
    found, reason = best_known(SHIPPED)
    assert found == config
    assert "your own record (9.00 us" in reason
    assert "by a search of 1 trials" in reason
    assert subbyte.build(SHIPPED).config == config
    assert "your own record" in subbyte.build(SHIPPED).reason
    gpus[0] = SimpleNamespace(ordinal=0, name="NVIDIA H200", arch="sm_90a")
    with Study(subbyte.space(SHIPPED, "sm_90a"), "random") as study:
        study.tell(study.space.index(config), Measured(8.0, verified=True, device={**DEVICE, "name": "NVIDIA H200"}))
    found, reason = best_known(SHIPPED)
    assert found == recorded[0]
    assert f"3.52 us on NVIDIA H200, generator 8458043); your own record needs 8.00 us: {config.key}" in reason
    assert "not taken from your own store" in reason  # that of GPU A
    assert subbyte.build(SHIPPED).config != config


def test_conv2d_takes_the_own_find_of_any_family(store, runner, monkeypatch):
    subbyte.compile(LAYER, tries=6)
    seen = []
    module = sys.modules["subbyte.kernel.conv2d"]
    monkeypatch.setattr(module, "build", lambda *args, **more: seen.append(args[1]) or kernel)
    kernel = SimpleNamespace(run=lambda x, w, requant, device: "ran")
    x, w = np.zeros((8, 5, 5, 32), np.int8), np.zeros((32, 3, 3, 32), np.int8)
    assert subbyte.conv2d(x, w, pad=1, arch="sm_90a") == "ran"
    assert seen == [runner.order[-1]]
    assert isinstance(seen[0], WgmmaConfig)
    assert isinstance(subbyte.build(LAYER).config, MmaConfig)  # of the usual family none was found


def test_a_search_remembers_its_best_and_its_last_word(store, gpus):
    order = [subbyte.space(LAYER, "sm_90a").config(index) for index in subbyte.space(LAYER, "sm_90a").valid[:40]]

    class Changing(SimulatedGpu):
        def rematch(self, workload, configs, rounds):
            return [[7.0 + place] * rounds for place in reversed(range(len(configs)))]

    report = tune(LAYER, Changing(order), "random", trials=12, seed=1)
    (row,) = store.rows()
    winner = report.best[LAYER.label]
    assert row.record.configuration == winner != report.records[0].best_config
    assert (row.record.microseconds, row.record.samples, row.record.trials) == (7.0, 9, 12)
    assert best_known(LAYER)[0] == winner
    tune(LAYER, FakeRunner(), "random", trials=4)
    assert [one.id for one in store.rows()] == [row.id]  # made-up times are no records


def test_a_resumed_search_does_not_forget_what_is_better(store, gpus, tmp_path):
    order = [subbyte.space(LAYER, "sm_90a").config(index) for index in subbyte.space(LAYER, "sm_90a").valid]
    log = tmp_path / "study.jsonl"
    tune(LAYER, SimulatedGpu(order), "random", 6, 1, log, top_k=0)
    before = store.rows()
    assert before[0].record.log == str(log)
    slower = SimulatedGpu(base=50.0)
    tune(LAYER, slower, "random", 12, 1, log, True, top_k=0)
    assert store.rows() == before


@pytest.mark.parametrize("place", ["locked", "folder", "damaged"])
def test_a_store_that_fails_costs_a_notice_and_no_result(store, runner, tmp_path, monkeypatch, place):
    monkeypatch.setattr("subbyte.records.store.PATIENCE_S", 0.1)
    monkeypatch.setattr(Store.__init__, "__defaults__", (0.1,))
    if place == "locked":
        store.add_all([])
        holder = sqlite3.connect(store.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
    elif place == "folder":
        store.path.mkdir()
    else:
        store.path.write_bytes(b"no database, but a text that is long enough " * 40)
    said = r"what this search finds is not remembered: store .*own\.sqlite"
    if place == "locked":
        with pytest.warns(UserWarning, match=said):
            kernel = subbyte.compile(LAYER, tries=6)
        assert kernel.config == runner.order[-1]
    with pytest.warns(UserWarning, match=said):
        report = tune(LAYER, SimulatedGpu(), "random", trials=4, seed=1)
    assert len(report.records[0].trials) == 4
    if place != "locked":
        with pytest.warns(UserWarning, match="its records are not taken now"):
            assert "estimate" in best_known(LAYER)[1]
        with pytest.raises(InvalidInput, match=r"own\.sqlite"):
            best_known(LAYER, store=store.path)


def test_nothing_is_measured_where_it_cannot_be(store, gpus, monkeypatch):
    with pytest.raises(MissingDependency, match=r"GPU 0 \(GPU A\), which is sm_90a, .* for sm_80: give arch='sm_90a'"):
        subbyte.compile(LAYER, "sm_80", tries=16)
    with pytest.raises(MissingDependency, match="device=3: no such GPU of sm_90a is here; found: cuda:0 GPU A"):
        subbyte.compile(LAYER, tries=16, device=3)
    with pytest.raises(InvalidInput, match="tries=-1"):
        subbyte.compile(LAYER, tries=-1)
    with pytest.raises(InvalidInput, match="a fused layer"):
        subbyte.compile("n8h8w8c64k64r3s3p1:w1a1", output="bipolar1+pool2", tries=4)
    with pytest.raises(InvalidInput, match="random operands say nothing"):
        subbyte.compile("gemm4096", sparsity="condense", tries=4)
    monkeypatch.undo()
    said = r"tries=16 measures on a GPU, and there is none here \(.*\): without tries"
    with pytest.raises(MissingDependency, match=said):
        subbyte.compile(LAYER, tries=16)


def test_when_nothing_could_be_measured_the_usual_kernel_comes_with_the_reason(store, runner):
    runner.fails = runner.order
    kernel = subbyte.compile(LAYER, tries=6)
    assert kernel.config == runner.order[0]
    assert kernel.reason.endswith("; none of 6 could be measured: an element differs")
    assert store.rows() == []


def test_what_others_measured_with_no_longer_known_knobs(store, runner):
    subbyte.compile(LAYER, tries=6)
    (row,) = store.rows()
    old = replace(
        row.record, fields=json.dumps({"no_such_knob": 1}), text="1" * 64, microseconds=1.0, low=1.0, search=""
    )
    store.add(old)
    config, reason = best_known(LAYER)
    assert config == runner.order[-1]
    assert "cannot be built by this version" in reason
    assert own.own_records(LAYER, subbyte.device.arch("sm_90a")).taken == (row.record,)


@pytest.mark.parametrize(("family", "asked"), [("auto", True), ("wgmma", True), ("mma", False)])
def test_builders_begin_before_all_is_in_order(store, runner, family, asked):
    """With kernels that are tried later, too; fewer than are tried."""
    ahead = []
    runner.build_ahead = lambda workload, configs: ahead.append(list(configs))
    tried = likeliest(LAYER, subbyte.device.arch("sm_90a"), 6, family)
    subbyte.compile(LAYER, tries=6, family=family)
    early, everything = ahead
    assert everything == tried
    assert (len(early), set(early) <= set(tried)) == (3 if asked else 0, True)
