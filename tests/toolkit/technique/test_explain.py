"""``subbyte explain``: the records as JSON and text, wrong arguments as one message with the allowed values."""

from __future__ import annotations

import json

import pytest

from subbyte.cli.main import main


def _json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main(["explain", *words, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    found: dict[str, object] = json.loads(captured.out)
    assert (found["schema"], found["command"], found["topic"]) == (1, "explain", words[0])
    return found


def test_duplicates_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "duplicates", "resnet50.stage2@8", "--tile", "2x4")
    assert (found["entries"], found["genuine"]) == (72, 24)
    assert found["loads"] == {"none": 72, "width": 36, "full": 24}
    part = _json(capsys, "duplicates", "n8h9w9c32k32r3s3p1", "--tile", "2x4", "--at", "0,0", "--warp", "1/2")
    assert part["entries"] == 36
    assert any(part["padding"])  # type: ignore[arg-type]


def test_packing_json(capsys: pytest.CaptureFixture[str]) -> None:
    for scheme, tiles in (("quad", 4), ("WIDTH8", 8)):
        found = _json(capsys, "packing", "--scheme", scheme)
        assert len(found["values"]) == tiles  # type: ignore[arg-type]
        assert len(found["trace"]["stores"]) == 8 * tiles  # type: ignore[index]
    assert len(_json(capsys, "packing", "--tiles", "1")["values"]) == 1  # type: ignore[arg-type]


def test_tiling_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "tiling", "resnet50.stage2@8", "--set", "warp_col_tiles=2", "--block", "3,1")
    assert found["gemm"] == [25088, 64, 576]
    assert found["config"]["warp_col_tiles"] == 2  # type: ignore[index]
    assert found["block"]["place"] == [0, 0, 3, 1]  # type: ignore[index]
    assert main(["explain", "tiling", "--block", "3,1", "--set", "warp_col_tiles=2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    picture = rows[rows.index(next(row for row in rows if row.startswith("which warp"))) + 1 :]
    assert picture[0].split() == ["32", "40", "48", "56"]  # two warps of two tiles each, from channel 32 on
    assert picture[1].split() == ["(0,0)", "0", "0", "1", "1"]


def test_layout_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, "layout", "--layout", "NHWC", "--set", "warp_row_tiles=8", "DUPLICATE_AWARE=none")
    assert found["layout"] == "nhwc"
    assert found["config"]["duplicate_aware"] == "none"  # type: ignore[index]
    assert found["tile"]["sectors"]["efficiency"] == 0.5  # type: ignore[index]


def test_fragments_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert _json(capsys, "fragments", "--instruction", "m16n8k64.s4")["k"] == 64


@pytest.mark.parametrize(
    ("topic", "shown"),
    [
        ("tiling", "matrix instructions"),
        ("duplicates", "[35]"),
        ("packing", "prmt"),
        ("layout", "sectors"),
        ("fragments", "native"),
    ],
)
def test_text_shows_the_picture(capsys: pytest.CaptureFixture[str], topic: str, shown: str) -> None:
    assert main(["explain", topic]) == 0
    captured = capsys.readouterr()
    assert shown in captured.out
    assert captured.err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["duplicatez"], "duplicates"),
        (["duplicates", "--tile", "four"], "1x4"),
        (["duplicates", "--tile", "0x4"], "integers >= 1"),
        (["duplicates", "--at", "99,0"], "56x56"),
        (["duplicates", "--warp", "0/3"], "3 warps"),
        (["duplicates", "--warp", "2"], "0/2"),
        (["duplicates", "resnet50.stage9@8"], "resnet50.stage"),
        (["packing", "--scheme", "octet"], "quad, width8"),
        (["packing", "--tiles", "9"], "1 to 4"),
        (["packing", "--seed", "x"], "whole number"),
        (["tiling", "--block", "4000,0"], "counted from 0,0"),
        (["tiling", "--set", "warp_col_tiles=16"], "cannot be built: divisibility: "),
        (["layout", "--layout", "nchw"], "nhwc"),
        (["layout", "--set", "chunk=8"], "chunk 8"),
        (["layout", "--set", "chunky=8"], "chunk"),
        (["layout", "--block", "1"], "0,0"),
        (["fragments", "--instruction", "m16n8k16"], "m16n8k32"),
    ],
)
def test_wrong_arguments_name_the_allowed_values(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["explain", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
