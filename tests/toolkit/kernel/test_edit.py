"""An edited CUDA text: right edits pass, wrong ones are shown with their first wrong element, broken ones are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

import subbyte
from subbyte.errors import BuildFailed, InvalidInput, Unsupported
from subbyte.kernel.edit import rebuild, try_edit

LAYER = "n8h7w7c32k32r3s3p1"


@pytest.fixture(scope="module")
def kernel() -> subbyte.Kernel:
    made = subbyte.build(LAYER)
    assert try_edit(made, made.cuda).ok  # what an empty cache lacks takes seconds once
    return made


def test_a_harmless_edit_is_right_and_quick(kernel: subbyte.Kernel) -> None:
    report = try_edit(kernel, kernel.cuda.replace("lane", "laneid"))
    assert report.ok, report.outcome
    assert report.kernel is not None
    assert report.kernel.cuda != kernel.cuda
    assert report.kernel.resources == kernel.resources
    assert report.seconds < 10  # about 0.5 s on an idle machine


def test_a_wrong_mask_is_shown_with_its_first_element(kernel: subbyte.Kernel) -> None:
    report = try_edit(kernel, kernel.cuda.replace("4042322160", "4042322144"))
    assert not report.ok
    assert report.wrong is not None
    assert len(report.wrong) == 4
    assert report.actual != report.expected
    assert "differ from the reference" in report.outcome
    assert report.kernel is not None  # it compiles: it can be read


def test_a_missing_barrier_is_a_hazard(kernel: subbyte.Kernel) -> None:
    report = try_edit(kernel, kernel.cuda.replace("  tvm_builtin_cuda_cta_sync();", ""))
    assert not report.ok
    assert report.findings
    assert "hazard" in report.outcome


def test_an_index_far_outside_does_not_end_the_process(kernel: subbyte.Kernel) -> None:
    report = try_edit(kernel, kernel.cuda.replace("Out_ptr[(", "Out_ptr[(1 << 26) + ("))
    assert not report.ok
    assert report.findings


def test_an_endless_loop_is_stopped(kernel: subbyte.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subbyte.kernel.edit.MOST_SECONDS", 2.0)
    loop = "  int lane = (thread & 31);\n  while (lane >= 0) { acc_ptr[0] += 1; }"
    report = try_edit(kernel, kernel.cuda.replace("  int lane = (thread & 31);", loop))
    assert not report.ok
    assert "endless loop" in report.outcome
    assert try_edit(kernel, kernel.cuda).ok  # nothing is left behind


def test_what_does_not_compile_is_said_in_the_compilers_words(kernel: subbyte.Kernel) -> None:
    broken = kernel.cuda.replace("int lane", "intt lane")
    report = try_edit(kernel, broken)
    assert not report.ok
    assert report.kernel is None
    assert '"intt" is undefined' in report.outcome
    with pytest.raises(BuildFailed, match="intt"):
        rebuild(kernel, broken)


def test_the_entry_point_must_stay(kernel: subbyte.Kernel) -> None:
    with pytest.raises(InvalidInput, match=kernel.launch.entry):
        rebuild(kernel, "int x;")
    assert kernel.launch.entry in try_edit(kernel, "").outcome


def test_an_edited_kernel_keeps_its_text(kernel: subbyte.Kernel) -> None:
    from subbyte.kernel.execute import expected, random_operands

    edited = rebuild(kernel, kernel.cuda + "\n// mine\n")
    x, w, requant = random_operands(edited, 0)
    assert requant is not None
    assert (edited.run(x, w, requant, device="emulator") == expected(edited, x, w, requant)).all()
    with pytest.raises(InvalidInput, match="clip"):
        edited.run(x, w, replace(requant, clip=(0, 7)), device="emulator")
    with pytest.raises(Unsupported, match="CUDA text"):
        _ = edited.tir
