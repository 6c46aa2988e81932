"""A workload's name stands in a comment of the exported header: whatever it is, the header compiles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hostile import samples
from hostile.areas import c_headers

from subbyte.kernel.export import LONGEST_STEM, stem_of


@pytest.mark.parametrize("name", ["*/ int evil; /*", "/* /*", "\u202e\u2066*/", "??/\n*/", "\ud800"], ids=ascii)
@pytest.mark.parametrize("language", c_headers.LANGUAGES)
def test_the_header_of_any_name_compiles(name: str, language: str) -> None:
    assert c_headers._compiled(c_headers._named(name), language) == ""


def test_a_long_name_makes_a_file_name_that_can_be_written_and_stays_its_own() -> None:
    long, other = (c_headers._named("layer" * 200 + end) for end in ("1", "2"))
    assert len(stem_of(long)) == LONGEST_STEM
    assert stem_of(long) != stem_of(other)
    assert stem_of(replace(long, workload=samples.named("short"))).startswith("short_sm_80")
