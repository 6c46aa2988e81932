"""The shared selection: texts, attaching, coalescing, hidden views, errors in place, and every view's own turn."""

from __future__ import annotations

import threading
import time
from typing import Any

import ipywidgets
import pytest
import traitlets

import subbyte
import subbyte_widgets
from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families.mma.config import MmaConfig
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.kernel.choose import best_known
from subbyte.technique.tiling import tiling
from subbyte.workload import workload
from subbyte_widgets import (
    ConvolutionTiling,
    DuplicateExplorer,
    DuplicateMap,
    FragmentExplorer,
    KernelEditor,
    KernelExplorer,
    KernelLab,
    KernelReader,
    LayoutExplorer,
    LayoutView,
    LiveCurve,
    LoadStepper,
    PackingStepper,
    Selection,
    SpaceExplorer,
    TilingExplorer,
    TuningMonitor,
)
from subbyte_widgets._base import View, picture_in
from subbyte_widgets._selection import Choice, Follower

LAYER = "n8h7w7c64k64r3s3p1"
SMALL = MmaConfig(blk_row_warps=1, blk_col_warps=1, warp_row_tiles=4, warp_col_tiles=2)
OTHER = MmaConfig(blk_row_warps=2, blk_col_warps=1, warp_row_tiles=2, warp_col_tiles=4)
WARPGROUP = PipelineConfig(tile_width=8, segments=7, stages=3, stagger=0)
REFUSED = MmaConfig(warp_col_tiles=16, blk_col_warps=4)


class Slow(View):
    """A view that notes what it was asked for, takes its time, and fails when told to."""

    _esm = "export default { render };"

    def __init__(self, seconds: float = 0.0, **options: Any) -> None:
        self.seen: list[Choice] = []
        self.seconds, self.fails = seconds, ""
        super().__init__(**options)

    def turn_to(self, choice: Choice) -> None:
        self.seen.append(choice)
        time.sleep(self.seconds)
        if self.fails:
            raise RuntimeError(self.fails)


def until(reached: Any) -> None:
    """Wait for what a thread does."""
    deadline = time.monotonic() + 10
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert reached()


def test_texts_and_objects_are_taken() -> None:
    s = Selection()
    assert (s.workload, s.configuration, s.trial, s.arch) == ("resnet50.stage2@8", "", -1, "sm_90a")
    assert s.config == best_known(workload(s.workload), "sm_90a")[0]
    s.workload, s.configuration = workload(LAYER), SMALL
    assert (s.workload, s.configuration) == (LAYER, SMALL.key)
    assert s.config == SMALL
    s.configuration = OTHER.to_dict()
    assert s.configuration == OTHER.key
    s.configuration = {}
    assert s.configuration == ""
    own = workload("n8h7w7c64k64r3s3p1").__class__(8, 7, 7, 64, 64, 3, 3, 1, name="mine")
    s.workload = own
    assert workload(s.workload).spec == own.spec
    assert "mine" not in s.workload


@pytest.mark.parametrize(
    ("name", "value"), [("workload", "resnet50.stage9"), ("configuration", "brw2-x"), ("arch", "sm_61")]
)
def test_what_means_nothing_is_refused(name: str, value: str) -> None:
    s = Selection(LAYER, SMALL)
    before = getattr(s, name)
    with pytest.raises(InvalidInput):
        setattr(s, name, value)
    assert getattr(s, name) == before
    s.set_state({name: value})  # a browser is told, and the kernel goes on
    assert getattr(s, name) == before
    assert s.error
    s.set_state({"trial": 3})
    assert (s.trial, s.error) == (3, "")
    with pytest.raises(InvalidInput, match="did you mean trial"):
        Selection(trail=1)


FOLLOWERS = [one for name in subbyte_widgets.__all__ if isinstance(one := getattr(subbyte_widgets, name), type)
             and issubclass(one, Follower) and one is not subbyte_widgets.ChartChoice]  # fmt: skip
"""All but the one that shows charts it is given, whatever is selected."""


TURNS = {
    "recorded": (("resnet50.stage3@8", ""), ("resnet50.stage5@8", "")),
    "wgmma": (
        ("resnet50.stage3@8", "wgp-tw14-tr1-cm1-sg28-st3-sta0"),
        ("resnet50.stage5@8", "wgp-tw8-tr1-cm1-sg7-st3-sta0"),
    ),
    "bits": (("n8h8w8c64k64r3s3p1:w2a2", ""), ("n8h8w8c64k64r3s3p1:w1a2", "")),
    "built": ((LAYER, SMALL.key), ("n8h7w7c32k64r3s3p1", OTHER.key)),
}  # fmt: skip
"""What a view turns from and to: recorded layers; kernels of the wgmma family; where a view builds, small ones."""
KIND = {
    "PlaneComposition": "bits",
    "StorePath": "wgmma", "TapWindows": "wgmma", "KernelEditor": "built", "KernelExplorer": "built",
    "KernelReader": "built", "LoadStepper": "built", "PackingStepper": "built",
}  # fmt: skip


@pytest.mark.parametrize("view", FOLLOWERS, ids=lambda view: view.__name__)
def test_every_view_follows(view: Any) -> None:
    first, then = TURNS[KIND.get(view.__name__, "recorded")]
    s = Selection(*first)
    one = view(selection=s)
    s.settle()
    before = one.to_svg() if hasattr(one, "to_svg") else one.config.key
    assert not one.error
    s.choose(workload=then[0], configuration=then[1])
    s.settle()
    assert not one.error
    after = one.to_svg() if hasattr(one, "to_svg") else one.config.key
    alike = (
        "FragmentExplorer",
        "PackingStepper",
        "LayoutOrder",
        "LayoutView",
        "LiveCurve",
        "StorePath",
        "TuningMonitor",
    )  # for these two layers
    assert (before != after) or view.__name__ in alike


def test_links_observers_and_interact() -> None:
    s = Selection(LAYER, SMALL)
    menu = ipywidgets.Dropdown(options=[LAYER, "resnet50.stage2@8"], value=LAYER)
    slider = ipywidgets.IntSlider(value=-1, min=-1, max=10)
    ipywidgets.link((menu, "value"), (s, "workload"))
    traitlets.link((slider, "value"), (s, "trial"))
    menu.value, slider.value = "resnet50.stage2@8", 4
    assert (s.workload, s.trial) == ("resnet50.stage2@8", 4)
    s.choose(workload=LAYER, trial=2)
    assert (menu.value, slider.value) == (LAYER, 2)
    heard: list[Any] = []
    s.observe(lambda change: heard.append((change.name, change.new)), ["workload", "configuration"])
    s.choose(workload="resnet50.stage2@8", configuration=OTHER)
    assert heard == [("workload", "resnet50.stage2@8"), ("configuration", OTHER.key)]
    out = ipywidgets.interactive(s.choose, trial=(0, 9))
    out.children[0].value = 7
    assert s.trial == 7
    ipywidgets.jslink((slider, "value"), (s, "trial"))  # both are models of the page
    with pytest.raises(TypeError):
        ipywidgets.jslink((slider, "value"), (s, "config"))  # no trait


def test_a_hidden_view_computes_nothing_and_catches_up() -> None:
    s = Selection(LAYER, SMALL)
    view = Slow(selection=s)
    s.configuration = OTHER
    s.workload = "resnet50.stage2@8"
    time.sleep(0.05)
    assert view.seen == []
    view.set_state({"in_sight": True})
    until(lambda: view.seen == [s.now])
    view.set_state({"in_sight": False})
    s.configuration = SMALL
    s.settle()
    assert view.seen[-1] == s.now
    assert len(view.seen) == 2
    s.trial = 5  # a trial alone changes no picture
    s.settle()
    assert len(view.seen) == 2


def test_many_changes_are_one() -> None:
    s = Selection(LAYER, SMALL)
    first, second = Slow(0.05, selection=s), Slow(0.05, selection=s)
    for view in (first, second):
        view.set_state({"in_sight": True})
    began = time.monotonic()
    for chunk in range(1, 200):
        s.configuration = SMALL.with_values({"chunk": chunk})
    assert time.monotonic() - began < 2  # the cell does not wait for views
    for view in (first, second):
        until(lambda view=view: bool(view.seen) and view.seen[-1] == s.now)
        assert len(view.seen) < 60
    until(lambda: s._worker is None)
    assert not [thread for thread in threading.enumerate() if thread.name == "subbyte-selection"]


def test_views_take_turns() -> None:
    s = Selection(LAYER, SMALL)
    views = [Slow(0.01, selection=s) for _ in range(3)]
    for view in views:
        view.set_state({"in_sight": True})
    stop = time.monotonic() + 0.5
    chunk = 1
    while time.monotonic() < stop:
        chunk += 1
        s.configuration = SMALL.with_values({"chunk": chunk})
        time.sleep(0.002)
    counts = [len(view.seen) for view in views]
    assert min(counts) > 0.6 * max(counts)


def test_an_error_is_said_in_the_view_and_goes_away() -> None:
    s = Selection(LAYER, SMALL)
    view = Slow(selection=s)
    view.fails = "no such thing"
    s.settle()
    assert view.error == "RuntimeError: no such thing"
    view.fails = ""
    s.configuration = OTHER
    s.settle()
    assert view.error == ""
    tiles = ConvolutionTiling(selection=s)
    s.configuration = REFUSED
    s.settle()
    assert "cannot be built" in tiles.error
    s.configuration = SMALL
    s.settle()
    assert tiles.error == ""


def test_attach_detach_and_close() -> None:
    s, other = Selection(LAYER, SMALL), Selection(LAYER, OTHER)
    view = Slow()
    s.attach(view)
    other.attach(view)
    s.configuration = OTHER
    s.settle()
    assert view.seen == []
    other.settle()
    assert view.seen == [other.now]
    other.detach(view)
    other.configuration = SMALL
    other.settle()
    assert len(view.seen) == 1
    s.attach(view)
    view.close()
    s.settle()
    assert len(view.seen) == 1
    view.open()  # as when it is displayed again
    s.settle()
    assert view.seen[-1] == s.now
    with pytest.raises(InvalidInput):
        Slow(selection="resnet50")


@pytest.mark.deep
def test_every_view_turns_to_the_selected_kernel() -> None:
    s = Selection(LAYER, SMALL)
    cut = tiling(LAYER, OTHER)
    tiles, explorer, pixels = ConvolutionTiling(selection=s), TilingExplorer(selection=s), DuplicateMap(selection=s)
    controls, layout, walk = DuplicateExplorer(selection=s), LayoutView(selection=s), LayoutExplorer(selection=s)
    load, packing, lab = LoadStepper(selection=s), PackingStepper(selection=s), KernelLab(selection=s)
    reader, fragments = KernelReader(selection=s), FragmentExplorer("m8n8k32.s4", selection=s)
    compare, editor = KernelExplorer(selection=s), KernelEditor(LAYER, selection=s)
    assert tiles.record is None
    assert layout.records == {}
    assert load.record is None
    s.configuration = OTHER
    assert (lab.workload.spec, lab.config) == (LAYER, OTHER)  # controls are never behind
    s.settle()
    assert tiles.record == explorer.view.record == cut
    assert {name: knob.value for name, knob in explorer.knobs.items()}["warp_col_tiles"] == 4
    assert pixels.record is not None
    assert controls.view.record is not None
    assert pixels.record.tile == controls.view.record.tile == cut.tile
    assert layout.records["nhwc"] == subbyte.accesses(LAYER, OTHER, "nhwc")
    assert layout.data_layout == OTHER.layout
    assert walk.controls["warp"].max == len(cut.warps) - 1
    assert load.record is not None
    assert load.record.config == OTHER.key
    assert packing.trace is not None
    assert packing.trace.tiles == 4
    assert reader.configs == compare.view.configs == [OTHER.key]
    assert fragments.instruction == "m16n8k32.s8"
    assert editor.kernel.config == OTHER
    views = (tiles, explorer, pixels, controls, layout, walk, load, packing, lab, reader, fragments, compare, editor)
    assert not any(view.error for view in views)


def test_what_a_view_cannot_show_is_said() -> None:
    s = Selection(LAYER, OTHER.with_values({"register_packing": False}))
    packing, editor = PackingStepper(selection=s), KernelEditor(LAYER, selection=s)
    editor.text.value += "// mine"
    s.settle()
    assert "through shared memory" in packing.error
    assert "undo the changes" in editor.error
    assert "through shared memory" in packing.to_svg()
    s.configuration = OTHER
    s.settle()
    assert packing.error == ""
    assert editor.error
    editor.reset.click()
    s.configuration = SMALL
    s.settle()
    assert editor.error == ""


def test_views_of_one_family_name_the_other() -> None:
    s = Selection(LAYER, WARPGROUP)
    tiles, layout, duplicates = ConvolutionTiling(selection=s), LayoutView(selection=s), DuplicateMap(selection=s)
    lab = KernelLab(selection=s)
    s.settle()
    assert (duplicates.error, lab.error, lab.config) == ("", "", WARPGROUP)
    for view in (tiles, layout):
        assert "only kernels of the mma family" in view.error
        assert WARPGROUP.key in view.error
    s.configuration = OTHER
    s.settle()
    assert not tiles.error
    assert not layout.error


@pytest.mark.deep
def test_the_other_family_is_shown_or_named() -> None:
    s = Selection(LAYER, WARPGROUP)
    assert s.configuration == WARPGROUP.key
    assert s.config == WARPGROUP
    reader, fragments, editor = (
        KernelReader(selection=s),
        FragmentExplorer(selection=s),
        KernelEditor(LAYER, selection=s),
    )
    compare = KernelExplorer(selection=s)
    of_warps = (
        ConvolutionTiling(selection=s), TilingExplorer(selection=s), LayoutView(selection=s),
        LayoutExplorer(selection=s), LoadStepper(selection=s), PackingStepper(selection=s),
    )  # fmt: skip
    lab = KernelLab(selection=s)
    duplicates = (DuplicateMap(selection=s), DuplicateExplorer(selection=s))
    s.settle()
    assert not any(view.error for view in (reader, fragments, editor, compare))
    assert fragments.instruction == "wgmma.m64n8k32.s8"
    assert reader.configs == compare.view.configs == [WARPGROUP.key]
    assert editor.kernel.config == WARPGROUP
    tile = f"output tile {WARPGROUP.tile_rows}x{min(WARPGROUP.tile_width, s.now.workload.q)}"
    assert all(not view.error and tile in view.alternative for view in duplicates)
    for view in of_warps:
        assert "only kernels of the mma family" in view.error, view
        assert WARPGROUP.key in view.error
    assert (lab.error, lab.config) == ("", WARPGROUP)
    compare.switches["duplicate_aware"].value = "none"
    assert "wgmma" in compare.wait().title()
    assert len(compare.view.configs) == 2
    s.configuration = OTHER
    s.settle()
    assert not any(view.error for view in of_warps)
    assert "shared" in compare.switches["duplicate_aware"].options


def test_pictures_and_pages_are_of_what_is_selected() -> None:
    s = Selection(LAYER, SMALL)
    view = ConvolutionTiling(selection=s)
    assert view.record is None
    data, _ = view._repr_mimebundle_()
    assert view.record == tiling(LAYER, SMALL)
    assert SMALL.key in picture_in(data) or "7 x 7" in data["text/plain"] or "7" in picture_in(data)
    s.configuration = OTHER
    assert "4 pixels" in view.to_svg() or view.record == tiling(LAYER, OTHER)
    view.to_svg()
    assert view.record == tiling(LAYER, OTHER)
    s.configuration = SMALL
    view.to_html()
    assert view.record == tiling(LAYER, SMALL)


@pytest.fixture(scope="module")
def study() -> Any:
    found = subbyte.landscape("resnet50.stage2@8")
    report = subbyte.tune("resnet50.stage2@8", runner="replay", landscape=found, trials=40, top_k=0)
    return report.records[0]


def test_a_trial_opens_everywhere(study: Any) -> None:
    s = Selection()
    monitor, space, lab = TuningMonitor(study, selection=s), SpaceExplorer(selection=s), KernelLab(selection=s)
    tiles, curve = ConvolutionTiling(selection=s), LiveCurve(study, selection=s)
    assert space.landscape is not None
    for place in (7, 31):
        monitor.set_state({"selected": place})
        config = study.trials[place].config
        assert (s.workload, s.configuration, s.trial) == ("resnet50.stage2@8", config.key, place)
        assert space.config == lab.config == config
        assert curve.selected == place
        assert monitor.selected == place
        s.settle()
        assert tiles.record is not None
        assert tiles.record.config == config
    curve.set_state({"selected": 3})
    assert (monitor.selected, s.configuration) == (3, study.trials[3].config.key)


def test_a_point_of_the_space_opens_its_trial_or_none(study: Any) -> None:
    s = Selection()
    monitor, space = TuningMonitor(study, selection=s), SpaceExplorer("resnet50.stage2@8", selection=s)
    assert space.landscape is not None
    tried = {trial.config: trial.number for trial in study.trials}
    place = 12
    space.set_state({"selected": space.landscape.by_config[study.trials[place].config]})
    assert (monitor.selected, s.trial) == (place, place)
    free = next(i for i in space.landscape.results if space.landscape.config(i) not in tried)
    space.set_state({"selected": free})
    assert (monitor.selected, s.trial, s.configuration) == (-1, -1, space.landscape.config(free).key)
    s.trial = 5  # a trial alone, as from a slider
    assert (monitor.selected, s.configuration) == (5, study.trials[5].config.key)
    assert space.config == study.trials[5].config


def test_another_workload(study: Any) -> None:
    s = Selection()
    monitor, space, lab = TuningMonitor(study, selection=s), SpaceExplorer(selection=s), KernelLab(selection=s)
    monitor.set_state({"selected": 4})
    s.workload = "resnet50.stage4@8"
    assert (monitor.selected, s.trial) == (-1, -1)
    assert space.landscape is not None
    assert space.landscape.workload.label == "resnet50.stage4@8"
    assert lab.workload.label == "resnet50.stage4@8"
    assert s.configuration == study.trials[4].config.key  # the same configuration, on another layer
    s.workload = LAYER
    assert "no landscape of n8h7w7c64k64r3s3p1 is shipped" in space.error
    s.workload = "resnet50.stage2@8"
    assert space.error == ""
    assert monitor.selected == 4


def test_controls_write_the_selection() -> None:
    s = Selection(LAYER, OTHER)
    lab, explorer = KernelLab(LAYER, selection=s), TilingExplorer(LAYER, selection=s)
    for knob in (*lab.knobs.values(), *explorer.knobs.values()):
        assert knob.label == str(knob.value).lower()  # the menu shows what it means
    lab.knobs["chunk"].set_state({"index": lab.knobs["chunk"].index + 1})  # as a browser does
    assert s.config == OTHER.with_values({"chunk": 2})
    s.settle()
    assert explorer.knobs["chunk"].value == 2
    explorer.knobs["chunk"].set_state({"index": 0})
    assert s.config == lab.config == OTHER
    lab.knobs["warp_col_tiles"].value = 16
    assert lab.status.value.startswith("Refused")
    s.settle()
    assert "Refused" in explorer.note
    with pytest.raises(SubbyteError):
        tiling(LAYER, s.config)
