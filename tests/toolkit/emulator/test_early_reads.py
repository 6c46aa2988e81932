"""What blocks with bulk weights may do earlier or later than at first: weights read from shared memory some fragments
ahead, requantization parameters asked for behind the first row, or ahead of it and added first, rows that meet at one
barrier. Clean and exact in any order, and faults are found."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from generated import Generated, plan_of

from subbyte.families.wgmma.check import why_not

SHAPES = {
    "stage 2": ("n8h3w56c64k64r3s3p1", "wgs-tw14-tr1-cm1-cn2-sg3-mc2-if2"),
    "stage 3": ("n8h4w28c128k64r3s3p1", "wgs-tw14-tr1-cm1-sg4-mc4-un2-if3"),
    "stage 4, 8 columns": ("n8h2w14c256k64r3s3p1", "wgs-tw8-tr1-cm1-sg2-mc2-un4-if3"),
    "odd rows": ("n9h5w7c64k128r3s3p1", "wgs-tw8-tr1-cm1-sg5-mc2-if2"),
    "odd rows and split": ("n8h3w7c128k256r3s3p1", "wgs-tw8-tr1-cm1-sg3-sk2-mc2-if2-pdl0"),
    "pair and split": ("n8h4w7c128k96r3s3p1", "wgs-tw8-tr1-cm1-sg4-sk2-mc2-if2-pdl0"),
    "four column tiles": ("n3h6w7c64k40r3s3p1", "wgs-tw4-tr1-cm1-sg6-mc4"),
    "two rows, two tiles of channels": ("n8h4w6c128k128r3s3p1", "wgs-tw6-tr2-cm2-sg2-mc1-un2-if3-nhwc"),
    "stride": ("n8h8w8c64k64r3s3p1u2", "wgs-tw4-tr1-cm1-sg4-mc4"),
    "one chunk": ("n8h3w8c64k64r1s3p0", "wgs-tw6-tr1-cm1-sg3-mc1-if2"),
}
CASES = [  # every shape once, and each pair of these options
    ("stage 2", "wa3-pa2-es1"), ("stage 3", "wa6-pa1"), ("stage 4, 8 columns", "wa6-pa2-es2"), ("odd rows", "wa1-pa1"),
    ("odd rows and split", "es1"), ("pair and split", "wa2-pa1-es1"), ("four column tiles", "wa3-pa2"),
    ("two rows, two tiles of channels", "wa5-pa1"), ("stride", "pa2"), ("one chunk", "pa2-es1"),
]  # fmt: skip
FAULTS = [
    ("the chunk before is waited for", "(next_chunk * (uint)8)), (uint)0)", "(chunk * (uint)8)), (uint)0)", {"race"}),
    ("nobody waits for what is multiplied", "wgmma.wait_group.sync.aligned 2;", "wgmma.wait_group.sync.aligned 7;",
     {"register_in_flight"}),
    ("words go where a multiplication reads", "fetched_ptr[2], fetched_ptr[3], weights_at_2)",
     "operand_ptr[2], operand_ptr[3], weights_at_2)", {"register_in_flight"}),
]  # fmt: skip
_SYNC = "tvm_builtin_ptx_bar_sync_count_sync((uint){}, (uint){});"
START_FAULTS = [
    ("rows are multiplied that another warpgroup stores", "stage 2", "wa3-pa2-es1", _SYNC.format(7, 256), "", {"race"}),
    ("the consumer does not wait for the producer's share", "stage 4, 8 columns", "wa6-es2", _SYNC.format(6, 256),
     _SYNC.format(7, 128), {"race"}),
    ("weights are waited for at a barrier that may not be there", "stage 4, 8 columns", "wa6-es1",
     _SYNC.format(4, 256), "", {"bad_mbarrier"}),
]  # fmt: skip
WRONG = [
    ("a fragment twice", "fetched_ptr[7], (weights_at_2 + (uint)2048))", "fetched_ptr[7], weights_at_2)"),
    ("no shifts", "(own_parameters_ptr[4], own_parameters_ptr[5],", "(own_parameters_ptr[2], own_parameters_ptr[3],"),
]


@cache
def _kernel(shape: str, more: str, **given: Any) -> Generated:
    spec, key = SHAPES[shape]
    return Generated(spec, f"{key}-{more}", **given)


@pytest.mark.sample("pair and split")
@pytest.mark.parametrize(("shape", "more"), CASES)
def test_generated_kernels_are_clean_and_exact(shape: str, more: str) -> None:
    _kernel(shape, more).require_exact(1)


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("shape", "more", "given"),
    [
        ("pair and split", "wa3-pa1", {"output": "int32"}),
        ("odd rows", "pa2", {"requant": "general"}), ("odd rows", "pa2", {"clip": (0, 7)}),
    ],
)  # fmt: skip
def test_every_form_of_output_is_exact(shape: str, more: str, given: dict[str, Any]) -> None:
    _kernel(shape, more, **given).require_exact(1)


@pytest.mark.deep
@pytest.mark.parametrize(("old", "new", "found"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_faults_in_generated_kernels_are_found(old: str, new: str, found: set[str]) -> None:
    _kernel("odd rows", "wa2-pa1").require_found(old, new, *found)


@pytest.mark.deep
@pytest.mark.sample("the producer's share")
@pytest.mark.parametrize("fault", START_FAULTS, ids=[fault[0] for fault in START_FAULTS])
def test_faults_of_the_start_are_found(fault: tuple[str, str, str, str, str, set[str]]) -> None:
    shape, more, old, new, found = fault[1:]
    _kernel(shape, more).require_found(old, new, *found)


@pytest.mark.sample("wa2-pa1-no shifts")
@pytest.mark.parametrize(("old", "new"), [fault[1:] for fault in WRONG], ids=[fault[0] for fault in WRONG])
@pytest.mark.parametrize("more", ["wa2-pa1", pytest.param("wa2-pa2", marks=pytest.mark.deep)])
def test_wrong_words_are_wrong_results(old: str, new: str, more: str) -> None:
    generated = _kernel("odd rows", more)
    assert generated.text.count(old) == 1
    assert generated.run(0, generated.text.replace(old, new))[1] > 0


@pytest.mark.deep
def test_what_sums_begin_with_is_in_the_result() -> None:
    """A first multiplication that begins anew would forget it."""
    generated = _kernel("odd rows", "pa2")
    begun, anew = "started_ptr[0] = (uint)1;", "started_ptr[0] = (uint)0;"
    assert generated.run(0, generated.text.replace(begun, anew, 1))[1] > 0


REFUSED = [
    ("n8h6w6c64k64r3s3p1", "wgs-tw6-tr1-cm1-sg6-mc1-wa4", "weights_ahead 4 of the 3 fragments"),
    ("n8h3w7c128k96r3s3p1", "wgs-tw8-tr1-cm1-sg3-sk2-mc1-pa2", "leave parameters at 0"),
    ("n8h3w56c64k64r3s3p1", "wgs-tw14-tr1-cm1-cn2-sg3-mc2-if2-es2", "divides the row of one consumer"),
]


@pytest.mark.parametrize(("spec", "key", "reason"), REFUSED)
def test_what_cannot_be_built_is_refused_with_a_reason(spec: str, key: str, reason: str) -> None:
    assert reason in (why_not(plan_of(spec, key)) or "")
