"""Faults in kernels on fragments of bit planes, in their generators, their texts and their words: each is found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated_bits import Words
from generated_planes import GeneratedPlanes

from subbyte.families.bmma.emit import multiply
from subbyte.families.bmma.plan import BmmaPlan
from subbyte.families.popc.emit import multiply as software
from subbyte.families.shared.planes.emit import epilogue, stage
from subbyte.kernel.build import generated_text

KERNEL = GeneratedPlanes("bmma", "sm_80", "n9h4w5c128k40r3s3p1:w1a1", blk_col_warps=1)
"""Nine border classes, three kernel rows of an odd number of pieces, an image and channels that only fill up."""
PLANES = GeneratedPlanes("bmma", "sm_90a", "n8h3w4c70k32r3s3p1:w2a2:offset.bipolar.unsigned:plus", blk_col_warps=1)
"""Sums of activation bits, three sets of counts, ones beyond the border."""
SOFTWARE = GeneratedPlanes("popc", "sm_80", "n8h3w4c70k32r3s3p1:w2a2", blk_col_warps=1)
TEXTS = [
    ("copies not waited for", r"(?<=\n)( +)tvm_builtin_ptx_cp_async_wait_group\w+\(\);", r"\1;", "pending_copy"),
    ("a group too many in flight", r"cp\.async\.wait_group 0;", "cp.async.wait_group 1;", "pending_copy"),
    ("no barrier between stages", r"(?<=\n)( +)tvm_builtin_cuda_cta_sync\(\);", r"\1;", "race"),
    ("the next stage into this one's buffer", r"\(\(k \+ 1\) & 1\)", "(k & 1)", ""),
    ("common bits in place of differing ones", r"\.xor\.popc", ".and.popc", ""),
    ("the last piece left out", r"(?<=\n)( +)tvm_builtin_ptx_mma_int_sync_aligned_m16n8k128\w+\(.*;", r"\1;", ""),
]


def border_class_off_by_one(classes: tuple[int, ...], index: Any) -> Any:
    return class_of(classes, index + 1)


def nothing(*given: Any) -> Any:
    return multiply.T.uint32(0)


def other_pixel(block: Any, pixel: Any) -> Any:
    return ones_of(block, (pixel + 1) % block.plan.config.warp_row_tiles)


class_of, ones_of = epilogue.class_of, multiply.ones_of
GENERATORS = [
    ("border class off by one", KERNEL, epilogue, "class_of", border_class_off_by_one),
    ("images that only fill up", KERNEL, epilogue, "_there", lambda *given: True),
    ("bytes not exchanged", KERNEL, epilogue, "exchange_bytes", nothing),
    ("channels that only fill up", KERNEL, epilogue, "_fill_channels", nothing),
    ("zeros beyond the border", PLANES, stage, "fill_word", nothing),
    ("sums of another pixel's bits", PLANES, multiply, "ones_of", other_pixel),
    ("all planes alike", PLANES, BmmaPlan, "set_of", lambda *given: 0),
    ("planes' factors lost", SOFTWARE, software.PopcPlan, "factor", lambda *given: 1),
]


@pytest.mark.sample("barrier")
@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case[0])
def test_faults_in_generated_texts_are_found(case: tuple[str, str, str, str]) -> None:
    _, old, new, found = case
    text, count = re.subn(old, new, KERNEL.text)
    assert count
    run, wrong, _ = KERNEL.run(0, text)
    assert found in {finding.kind for finding in run.findings} if found else wrong or run.problems, str(run)


@pytest.mark.sample("class", "images")
@pytest.mark.parametrize("case", GENERATORS, ids=lambda case: case[0])
def test_faults_of_generators_are_found(
    case: tuple[str, GeneratedPlanes, Any, str, Callable[..., Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kernel, module, name, fault = case
    monkeypatch.setattr(module, name, fault)
    text = generated_text(kernel.plan)
    monkeypatch.undo()
    assert kernel.faulty(text)


def another_entry(words: Words) -> None:
    words["Prm"][:] = np.roll(words["Prm"], 1)


def no_flips(words: Words) -> None:
    table = words["Prm"].reshape(KERNEL.plan.column_blocks, -1)
    assert table[:, -KERNEL.plan.flip_words :].any()
    table[:, -KERNEL.plan.flip_words :] = 0


def other_lanes(words: Words) -> None:
    words["Wt"][:] = words["Wt"].reshape(-1, 32, 4).transpose(0, 2, 1).reshape(-1)


def planes_of_another_layer(words: Words) -> None:
    words["A"][:] = ~words["A"]


@pytest.mark.parametrize("fault", [another_entry, no_flips, other_lanes, planes_of_another_layer])
def test_wrong_words_are_found(fault: Callable[[Words], None]) -> None:
    run, wrong = KERNEL.wrong_with(fault)
    assert not run.problems
    assert wrong > 0
