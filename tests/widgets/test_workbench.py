"""The workbench: its controls drive one selection, what is in a closed tab waits, a search is started and watched."""

from __future__ import annotations

import html
import threading

import pytest

import subbyte
from subbyte.errors import InvalidInput
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.kernel.choose import best_known
from subbyte.measure.fake import FakeRunner
from subbyte.workload import workload as parse
from subbyte_widgets import Selection, Workbench, workbench
from subbyte_widgets.workbench_view.controls import in_words

NAME = "resnet50.stage2@8"


@pytest.fixture
def bench() -> Workbench:
    return workbench(NAME)


def test_it_begins_at_the_best_recorded_configuration(bench: Workbench) -> None:
    found = subbyte.landscape(NAME)
    index, best = found.best
    assert bench.selection.config == found.config(index)
    assert bench.choosing["Space"].selected == index
    assert bench.choosing["Laboratory"].config == found.config(index)
    assert f"{best.microseconds:.2f} us on NVIDIA H200, 1.00 times the best" in bench.controls.status.value
    assert bench.following["Kernel"].view.record is None  # its tab is closed
    assert bench.following["Duplicates"].record is None


def test_controls_and_selection_follow_each_other(bench: Workbench) -> None:
    controls, s = bench.controls, bench.selection
    controls.workload.value = "resnet50.stage4@8"
    assert s.workload == "resnet50.stage4@8"
    assert bench.choosing["Space"].landscape.workload.label == "resnet50.stage4@8"
    s.workload = NAME
    assert controls.workload.value == NAME
    controls.arch.value = "sm_80"
    assert s.arch == "sm_80"
    assert "no recorded time here" in controls.status.value
    controls.workload.value = "resnet50.stage12"
    assert "stage12" in controls.status.value
    assert s.workload == NAME
    s.configuration = MmaConfig(warp_col_tiles=16, blk_col_warps=4)
    assert "cannot be built: " in controls.status.value
    controls.best.click()
    assert s.configuration == ""
    assert "best known configuration" in controls.status.value


def test_a_search_is_started_and_its_trials_open(bench: Workbench) -> None:
    bench.controls.strategy.value, bench.controls.trials.value = "random", 30
    bench.controls.tune.click()
    monitor = bench.choosing["Tuning"]
    assert bench.shown[0] is monitor
    (record,) = monitor.wait(30)
    assert len(record.trials) == 30
    monitor.set_state({"selected": 11})
    assert bench.selection.configuration == record.trials[11].config.key
    assert bench.choosing["Space"].config == record.trials[11].config
    for name in ("Kernel", "Tiling"):
        bench.following[name].catch_up()
    assert bench.following["Kernel"].view.configs == [record.trials[11].config.key]
    assert bench.following["Tiling"].view.record.config == record.trials[11].config
    bench.tune("random", 5)
    assert monitor not in bench.upper.children
    bench.choosing["Tuning"].wait(30)


def test_more_trials_than_there_are_configurations_are_refused_in_the_line_below(bench: Workbench) -> None:
    before = bench.choosing["Tuning"]
    assert bench.tune("random", 20_000) is None
    assert bench.choosing["Tuning"] is before
    assert "this space holds" in bench.controls.status.value


def test_a_second_search_ends_the_first_and_none_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def searches() -> int:
        return sum(thread.name == "subbyte-study" for thread in threading.enumerate())

    before = searches()
    small = space("n8h14w14c64k64r3s3p1", "sm_90a")
    runner = FakeRunner(delay=0.03)
    monkeypatch.setattr("subbyte.tune.sources.Sources.of", lambda _self, _workload: (runner, small))
    bench = workbench(NAME)
    first = bench.tune("random", 500)
    second = bench.tune("random", 500)
    assert first is not None
    assert second is not None
    assert not first.running
    assert first.status == "not searched here yet"  # what it searched is not the selected layer: set aside at its end
    assert searches() == before + 1
    monkeypatch.setattr("subbyte_widgets.tuning_monitor.session.Session.ends", lambda _self: False)
    assert bench.tune("random", 5) is None  # a measurement that takes long: the first one stays in sight
    assert bench.choosing["Tuning"] is second
    assert "press Tune again" in bench.controls.status.value
    monkeypatch.undo()
    bench.close()
    assert searches() == before


def test_the_monitor_sets_the_search_of_another_layer_aside(bench: Workbench) -> None:
    monitor = bench.tune("random", 5)
    assert monitor is not None
    monitor.wait(30)
    assert not monitor.note
    searched = monitor.studies
    bench.controls.workload.value = "resnet50.stage4@8"
    assert (monitor.title, monitor.studies) == ("Tuning resnet50.stage4@8", [])
    assert "5 of 5" not in monitor.status + monitor.alternative + monitor.to_svg()
    assert monitor.note == f"The search of {NAME} is kept: select that layer to see it again."
    assert monitor.note in bench.static()["text/html"]
    bench.controls.workload.value = NAME
    assert not monitor.note
    assert monitor.studies == searched
    assert monitor.title == f"Tuning {NAME}"


def test_a_search_that_runs_stays_in_sight(bench: Workbench) -> None:
    monitor = bench.tune("random", 5)
    assert monitor is not None
    monitor.wait(30)
    monitor.running = True
    bench.controls.workload.value = "resnet50.stage4@8"
    assert monitor.note == f"Selected is resnet50.stage4@8; this search is of {NAME}."
    assert monitor.studies
    monitor._end("")
    assert not monitor.studies, "it is set aside when it ends"


@pytest.mark.deep
def test_the_best_known_is_of_all_families_and_views_of_one_say_so(bench: Workbench) -> None:
    bench.controls.best.click()
    best, warp = (best_known(parse(NAME), family=which)[0] for which in ("auto", "mma"))
    assert bench.selection.config == best
    assert isinstance(best, WgmmaConfig)
    assert f"best known configuration {best.key}: " in bench.controls.status.value
    assert "3.52 us" in bench.controls.status.value
    said = f"Shown is the best of the mma family: {warp.key}, "
    for name in ("Tiling", "Load", "Packing", "Layout"):
        view = bench.following[name]
        view.catch_up()
        assert not view.error, name
        assert view.note.startswith(said), name
        assert best.key in view.note
        assert view.note in html.unescape(view.static()["text/html"])
    assert bench.following["Tiling"].view.record.config == warp
    assert bench.choosing["Laboratory"].config == best
    assert bench.choosing["Laboratory"].status.value == "Ready."
    assert bench.choosing["Space"].note.startswith("Marked is the best of this landscape. Best of all: ")
    for name in ("Duplicates", "Taps"):  # both families
        bench.following[name].catch_up()
        assert not bench.following[name].note, name
        assert not bench.following[name].error, name
    bench.selection.configuration = best  # named: no other one is shown in its place
    bench.following["Tiling"].catch_up()
    assert "only kernels of the mma family" in bench.following["Tiling"].error
    assert not bench.following["Tiling"].note


def test_another_workload_starts_at_its_own_best_configuration(bench: Workbench) -> None:
    s = bench.selection
    s.configuration = MmaConfig(4, 4, 8, 2)
    bench.controls.workload.value = "n8h8w8c32k32r1s1"  # written into the field: that configuration does not fit it
    assert (s.workload, s.configuration) == ("n8h8w8c32k32r1s1", "")
    bench.following["Tiling"].catch_up()
    assert not bench.following["Tiling"].view.error
    s.choose(workload=NAME, configuration=MmaConfig(2, 2, 8, 2))  # in code both are named
    assert bench.controls.workload.value == NAME
    assert s.config == MmaConfig(2, 2, 8, 2)


def test_a_search_that_cannot_begin_is_said(bench: Workbench) -> None:
    bench.selection.workload = "n8h5w5c32k32r3s3p1"
    assert bench.tune("random", 5) is None
    assert "nothing can measure n8h5w5c32k32r3s3p1" in html.unescape(bench.controls.status.value)
    assert bench.shown[0] is bench.choosing["Space"]


@pytest.mark.deep
def test_studies_landscape_and_selection_are_taken() -> None:
    found = subbyte.landscape("resnet50.stage5@8")
    record = subbyte.tune("resnet50.stage5@8", runner="replay", landscape=found, trials=10, top_k=0).records[0]
    s = Selection("resnet50.stage5@8", record.trials[3].config)
    bench = Workbench("resnet50.stage5@8", record, landscape=found, selection=s)
    assert bench.selection is s
    assert bench.choosing["Tuning"].selected == s.trial == 3
    assert bench.choosing["Space"].landscape is found
    with pytest.raises(TypeError):
        workbench(NAME, trails=3)
    with pytest.raises(InvalidInput, match="unknown workload"):
        workbench("resnet51.stage2@8")


def test_what_is_kept_without_a_kernel(bench: Workbench) -> None:
    data, _ = bench._repr_mimebundle_()
    assert data["text/html"].count("<img") == 2  # the two open views
    assert data["text/plain"].startswith("<Workbench: resnet50.stage2@8")
    assert bench.following["Kernel"].view.record is None
    bench.close()
    assert all(view.comm is None for view in (*bench.choosing.values(), *bench.following.values()))
    bench.selection.configuration = MmaConfig()
    bench.selection.settle()
    assert bench.following["Kernel"].view.record is None


def test_words_of_a_selection() -> None:
    found = subbyte.landscape(NAME)
    index = sorted(found.results)[5]
    s = Selection(NAME, found.config(index))
    time = found.results[index].microseconds
    assert f": {time:.2f} us on NVIDIA H200, {time / found.best[1].microseconds:.2f} times" in in_words(s, found)
    assert "no recorded time here" in in_words(s, None)
    s.workload = "n1h1w1c32k32r1s1"
    assert in_words(s, found)
