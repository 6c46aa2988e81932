"""Faults in kernels on one-bit products, in their generators, their texts and their words: each is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated_bits import GeneratedBits, Words

from subbyte.families.bits.emit import epilogue, kernel, multiply
from subbyte.families.bits.geometry import ONES
from subbyte.kernel.build import generated_text

KERNEL = GeneratedBits("n8h5w5c128k32r3s3p1:w1a1", channels=32, tile_rows=5, consumers=2)
"""An odd number of pieces, nine border classes, rows that come while others are multiplied."""
RUN_ON = GeneratedBits("n8h4w6c96k32r5s5p2:w1a1:minus", channels=32, tile_rows=3, run_on=1, consumers=1)
COUNTED = GeneratedBits("n8h5w5c128k32r3s3p1:w1a1", channels=32, tile_rows=5, consumers=2, counted=1)
Descriptor = Callable[..., Any]
descriptor: Descriptor = multiply.descriptor
class_of = epilogue.class_of
EXPECTED_BYTES = r"(expect_tx\w+\(\(\(base \+ \(uint\)\d+\) \+ \(\(\(uint\)staged\).*\(uint\))\d+\)"
TEXTS = [
    ("more bytes of a row than come", EXPECTED_BYTES, r"\g<1>656)", "deadlock"),
    ("fewer bytes of a row than come", EXPECTED_BYTES, r"\g<1>624)", "deadlock"),
    ("rows beyond the image never arrive", r"tvm_builtin_ptx_mbarrier_arrive_nocount\w+\(\(.*\n", "\n", "deadlock"),
    ("no fence before the products", r"wgmma\.fence\.sync\.aligned;", "", "missing_wgmma_fence"),
    ("no wait for the products", r"wgmma\.wait_group\.sync\.aligned 0;", "wgmma.wait_group.sync.aligned 7;",
     "register_in_flight"),
    ("no fence behind the border", r"fence\.proxy\.async\.shared::cta;", "", "missing_proxy_fence"),
    ("no wait for the launch before", r"griddepcontrol\.wait;", "", "missing_dependency_wait"),
]  # fmt: skip


def swapped(address: Any, offset: int, piece: int, core: int, *nothing: Any) -> Any:
    return descriptor(address, offset, core, piece, *nothing)


def class_off_by_one(classes: tuple[int, ...], index: Any) -> Any:
    return class_of(classes, index + 1)


def no_wait(*given: Any) -> None: ...


def last_row_too_early(block: Any, place: Any, seen: Any) -> None:
    waits(block, type(place)(place.row - 1, *list(vars(place).values())[1:]), seen)


waits = kernel._wait_for_rows
GENERATORS = [
    ("the two distances of a descriptor swapped", multiply, "descriptor", swapped, ""),
    ("border class off by one", epilogue, "class_of", class_off_by_one, ""),
    ("no row is waited for", kernel, "_wait_for_rows", no_wait, "race"),
    ("the last row is not waited for", kernel, "_wait_for_rows", last_row_too_early, "race"),
    ("nothing written beyond the border", kernel, "fill_border", no_wait, "uninitialised_shared"),
]


@pytest.mark.sample("more bytes", "no wait for the products")
@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case[0])
def test_faults_in_generated_texts_are_found(case: tuple[str, str, str, str]) -> None:
    _, old, new, found = case
    text, count = re.subn(old, new, KERNEL.text)
    assert count
    run, *_ = KERNEL.run(0, text)
    assert found in {finding.kind for finding in run.findings}, str(run)


@pytest.mark.sample("border class", "no row")
@pytest.mark.parametrize("case", GENERATORS, ids=lambda case: case[0])
def test_faults_of_generators_are_found(
    case: tuple[str, Any, str, Callable[..., Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, module, name, fault, found = case
    monkeypatch.setattr(module, name, fault)
    run, wrong, _ = KERNEL.run(0, generated_text(KERNEL.plan))
    assert found in {finding.kind for finding in run.findings} if found else wrong or run.problems, str(run)


def test_the_missing_last_piece_is_found() -> None:
    """Nine taps are five instructions; the fifth has one piece and zeros in the place of the other."""
    calls = list(re.finditer(r"\n +tvm_builtin_ptx_wgmma_b1_ss\w+\(.*;", KERNEL.text))
    assert len(calls) == 5
    last = calls[-1]
    run, wrong, _ = KERNEL.run(0, KERNEL.text[: last.start()] + KERNEL.text[last.end() :])
    assert wrong or run.problems


def other_ones(words: Words) -> None:
    n, columns = KERNEL.plan.n, KERNEL.plan.filter_columns
    weights = words["Wt"].reshape(-1, n, 4)
    weights[:, columns : columns + ONES] = weights[:, :1]


def no_last_piece(words: Words) -> None:
    pieces = words["Wt"].reshape(2 * KERNEL.plan.steps, -1)
    assert not pieces[9].any()
    pieces[8] = 0


def entry_off(words: Words) -> None:
    words["Prm"][:-4] = np.roll(words["Prm"][:-4], 1)


def no_flips(words: Words) -> None:
    assert words["Prm"][-4]
    words["Prm"][-4:] = 0


def planes_of_another_layer(words: Words) -> None:
    words["A"][:] = ~words["A"]


@pytest.mark.parametrize("fault", [other_ones, no_last_piece, entry_off, no_flips, planes_of_another_layer])
def test_wrong_words_are_found(fault: Callable[[Words], None]) -> None:
    run, wrong = KERNEL.wrong_with(fault)
    assert not run.problems
    assert wrong > 0


@pytest.mark.deep
def test_a_window_that_reaches_into_a_row_nobody_waited_for_is_found() -> None:
    """Where tiles run on, pixels between two rows read the next row: nobody keeps their results."""
    RUN_ON.require_exact(2)
    needed = r"(uint needed = [^;]*\(column\w* \+ )(\d+)\)"
    text, count = re.subn(needed, lambda found: f"{found[1]}7)", RUN_ON.text)
    assert count
    run, *_ = RUN_ON.run(0, text)
    assert "race" in {finding.kind for finding in run.findings}


def test_windows_that_nobody_waited_for_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warpgroup counts their bits, and the instruction has no columns of ones."""
    assert (KERNEL.plan.n, COUNTED.plan.n) == (48, 32)
    COUNTED.require_exact(1)
    monkeypatch.setattr(kernel, "wait_for_windows", no_wait)
    run, *_ = COUNTED.run(0, generated_text(COUNTED.plan))
    assert "race" in {finding.kind for finding in run.findings}


@pytest.mark.deep
def test_counted_windows_of_several_planes_and_paired_rows() -> None:
    of_pairs = {"tile_rows": 4, "channels": 64, "turn_rows": 2, "doubled": 1, "paired_rows": 1, "counted": 1}
    GeneratedBits("n8h4w10c64k64r3s3p1:w1a2", **of_pairs).require_exact(1)
    GeneratedBits("n9h5w6c200k70r3s3p1u2:w2a3", tile_rows=2, channels=32, counted=1).require_exact(1)
