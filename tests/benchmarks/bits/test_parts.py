"""Kernels without one of their parts: what is cut from a text is gone from the machine code, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.bits.measure import kernel_of
from benchmarks.bits.parts import WITHOUT, without_comparisons, without_products
from subbyte.errors import InvalidInput
from subbyte.kernel.build import compiled
from subbyte.kernel.disassemble import instruction_counts, sass

CELL, KEY = "n8h4w8c64k64r3s3p1:w1a4", "bits-tr2-oc64-co1-db1-pr1"


def named(text: str) -> Counter[str]:
    """How often machine instructions stand in a text's machine code, by the first part of their name."""
    found: Counter[str] = Counter()
    for name, count in instruction_counts(sass(compiled(text, "sm_90a")[0])).items():
        found[name.partition(".")[0]] += count
    return found


@pytest.mark.deep
def test_parts_are_left_out_of_the_machine_code() -> None:
    text = kernel_of(CELL, KEY).cuda
    whole, cut = named(text), {part: named(change(text)) for part, change in WITHOUT.items()}
    products, comparisons = "BGMMA", "I2IP"
    assert whole[products] and whole[comparisons]  # noqa: PT018
    assert (cut["products"][products], cut["products"][comparisons]) == (0, whole[comparisons])
    assert (cut["comparisons"][products], cut["comparisons"][comparisons]) == (whole[products], 0)
    assert (cut["tables"][products], cut["tables"][comparisons]) == (whole[products], whole[comparisons])
    assert cut["tables"]["LDS"] == whole["LDS"] - 16
    assert cut["neither"][products] == cut["neither"][comparisons] == 0


def test_a_text_of_another_form_is_refused() -> None:
    text = kernel_of(CELL, KEY).cuda
    with pytest.raises(InvalidInput, match="the text has no"):
        without_products(without_products(text))
    with pytest.raises(InvalidInput, match="1 sets of sums and 0 tiles"):
        without_comparisons(text.replace("Out_ptr[", "Other_ptr["))
