"""CUDA text beside a picture."""

from __future__ import annotations

from subbyte_widgets._code import folded


def test_registers_in_a_row_are_folded_and_no_others() -> None:
    row = ", ".join(f"acc[{i}]" for i in range(64))
    assert folded(f"  wgmma({row}, a[0], a[1], desc);") == "  wgmma(acc[0], ..., acc[63], a[0], a[1], desc);"
    for line in ("f(a[0], a[1], a[2]);", "f(a[0], a[2], a[4], a[6]);", "f(a[0], b[1], a[2], b[3]);", "a[3] = b[3];"):
        assert folded(line) == line
