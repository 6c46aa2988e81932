"""The kernel reader without a browser: what is sent against the record, controls, edits, refusals."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import traitlets

import subbyte
from subbyte.errors import InvalidInput
from subbyte.measure.atoms import atom_kernel
from subbyte.technique.kernel_reading import CLASSES
from subbyte_widgets import KernelEditor, KernelExplorer, KernelReader
from subbyte_widgets.kernel_reader.picture import LETTERS

LAYER = "n8h7w7c32k32r3s3p1"


@pytest.fixture(scope="module")
def kernels() -> tuple[subbyte.Kernel, subbyte.Kernel]:
    first = subbyte.build(LAYER)
    return first, subbyte.build(LAYER, first.config.with_values({"register_packing": False}))


def test_the_page_gets_every_row(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    view = KernelReader(*kernels)
    assert view.record is not None
    for language, rows in view.record.rows.items():
        lines = view.texts[language].split("\n")
        assert [line[2:] for line in lines] == [row.text for row in rows]
        assert [line[0] for line in lines] == [row.sign for row in rows]
        assert [line[1] for line in lines] == [LETTERS.get(row.kind, " ") for row in rows]
    assert view.facts == [list(row) for row in view.record.table().rows]
    assert len(json.dumps(view.get_state(), default=str)) < 400_000


def test_a_long_text_is_cut_and_says_so(
    kernels: tuple[subbyte.Kernel, subbyte.Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subbyte_widgets.kernel_reader.view.LONGEST", 3000)
    view = KernelReader(kernels[0])
    assert all(len(text) < 3100 for text in view.texts.values())
    assert "more lines are in the kernel's .sass" in view.texts["sass"]


def test_the_layers_of_a_network_fit(tmp_path: Path) -> None:
    view = KernelReader("resnet50.stage2@8")
    assert len(view.to_html(tmp_path / "reader.html")) < 400_000


def test_the_picture_shows_every_instruction(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    view = KernelReader(*kernels)
    assert view.record is not None
    root = ElementTree.fromstring(view.to_svg())
    ticks = [
        (path.get("data-kind"), path.get("d", "").count("v")) for path in root.iter("{http://www.w3.org/2000/svg}path")
    ]
    for kind in CLASSES:
        both = [sum(counts[kind].values()) for counts in (view.record.counts, view.record.other_counts or {})]
        drawn = [count for name, count in ticks if name == kind]
        assert drawn == both
    bundle, _ = view._repr_mimebundle_()
    assert "shuffles from" in bundle["text/html"]
    assert view.alternative in bundle["text/plain"]


def test_what_the_browser_writes_is_kept_inside(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    view = KernelReader(kernels[0])
    view.set_state({"language": "ptx", "line": 10**6, "query": "mma"})
    assert view.record is not None
    assert view.line == len(view.record.rows["ptx"]) - 1
    with pytest.raises(traitlets.TraitError):
        view.language = "c"
    with pytest.raises(InvalidInput, match="did you mean language"):
        KernelReader(languag="ptx")


def test_what_cannot_be_built_is_one_sentence() -> None:
    view = KernelReader("resnet50.stage9@8")
    assert "resnet50.stage9" in view.error
    assert "resnet50.stage9" in view.to_svg()
    view.show(LAYER)
    assert view.error == ""


@pytest.mark.deep
def test_a_technique_is_flipped() -> None:
    panel = KernelExplorer(LAYER)
    alone = panel.wait(120)
    assert alone is not None
    assert alone.other is None
    panel.switches["register_packing"].value = False
    compared = panel.wait(120)
    assert compared is not None
    assert compared.other is not None
    assert compared.other.endswith("rp0")
    assert panel.status.value == ""
    panel.arch.value = "sm_75"
    turing = panel.wait(120)
    assert turing is not None
    assert turing.arch == "sm_75"
    assert turing.counts["copy"] == {}


def test_a_refused_combination_is_said_in_the_view(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = KernelExplorer(LAYER)
    panel.wait(120)

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("subbyte_widgets.kernel_reader.explorer.build", fail)
    panel.switches["layout"].value = "nhwc"
    panel.wait(60)
    assert panel.view.error == "OSError: the disk is full"


def test_an_edit_is_checked_and_read(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    editor = KernelEditor(kernels[0])
    editor.text.value = editor.text.value.replace("4042322160", "4042322144")
    editor.start()
    report = editor.wait(120)
    assert report is not None
    assert not report.ok
    assert "not right" in editor.outcome.value
    assert f"n={report.wrong[0]}" in editor.outcome.value if report.wrong else False
    assert editor.view.record is not None
    assert editor.view.record.hunks["cuda"]
    editor.reset.click()
    editor.button.click()
    again = editor.wait(120)
    assert again is not None
    assert again.ok
    assert len(editor.reports) == 2
    assert "right" in editor._repr_mimebundle_()[0]["text/html"]


def test_an_edit_that_does_not_compile_is_told(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    editor = KernelEditor(kernels[0])
    editor.text.value = editor.text.value.replace("int lane", "intt <lane")
    editor.start()
    editor.wait(120)
    assert "intt" in editor.outcome.value
    assert "&lt;lane" in editor.outcome.value
    assert not editor.button.disabled


@pytest.mark.deep
def test_the_programs_of_instructions_are_read() -> None:
    view = KernelReader(atom_kernel("b1.m16n8k256.and"), atom_kernel("b1.m16n8k256.xor"))
    assert not view.error
    assert "b1, xor (emulated)" in view.alternative
    assert "BMMA" in view.texts["sass"]
    assert view.texts["tir"] == ""
    assert not KernelReader(atom_kernel("b1.wgmma.m64n128k256")).error
