"""Texts without one kind of instruction: all of the kind go, nothing else does, and only the time is taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import subbyte
from benchmarks.sparse import limits
from benchmarks.sparse.limits import ARITHMETIC, EPILOGUE, LEFT_OUT, MOVES, MULTIPLICATIONS, chosen, without
from subbyte.errors import InvalidInput
from subbyte.families import config_from_key

CELL = "resnet50.stage5@256"
KEY = "wg24-tw7-tr2-cm1-cr2-sg1-cg8-st3-rr3-la1-sta0-ig2-ls1-res0"


@pytest.fixture(scope="module")
def text() -> str:
    return subbyte.build(f"{CELL}", config_from_key(KEY), arch="sm_90a", sparsity="2:4").cuda


@pytest.mark.parametrize("kind", MOVES)
def test_every_instruction_of_a_kind_never_happens(text: str, kind: str) -> None:
    left = without(text, kind)
    lines = [(old, new) for old, new in zip(text.split("\n"), left.split("\n"), strict=True) if old != new]
    assert len(lines) >= len(MOVES[kind])
    for old, new in lines:
        (instruction,) = re.findall(r'asm volatile\("([^"]*)"', old)
        assert re.match("|".join(MOVES[kind]), instruction)
        width = "u64" if ".global" in instruction else "u32"
        assert f"setp.eq.{width} never, " in new
        assert f"@never {instruction}" in new
    for start in MOVES[kind]:
        assert not re.search(rf'asm volatile\("{start}', left)


def test_multiplications_become_empty_statements(text: str) -> None:
    left = without(text, MULTIPLICATIONS)
    assert "wgmma.mma_async" in text
    assert "wgmma.mma_async" not in left
    assert without(text, "") == text
    both = without(text, "loads of pixels, stores of pixels")
    assert both == without(without(text, "loads of pixels"), "stores of pixels")


def test_arithmetic_of_the_epilogue_goes_kind_by_kind(text: str) -> None:
    """Values of sums whose packing is left out are still asked for: else the compiler would leave out all of it."""
    calls = {"additions": r"\) \+ added", "multiply-adds": r"fma\.rn\.f32", "packing": r"cvt_pack\w+\(packed"}
    for kind in ARITHMETIC:
        left = without(text, kind)
        assert {name: bool(re.search(call, left)) for name, call in calls.items()} == {n: n != kind for n in calls}
    packs = len(re.findall(calls["packing"], text))
    assert without(text, "packing").count("@never st.shared.b32") == 2 * packs
    assert all(without(text, kinds) != text for kinds in EPILOGUE if kinds)


def test_all_sums_stay_in_use_behind_one_condition(text: str) -> None:
    """A condition for each would be a jump for each, and the time of the jumps would be taken."""
    packed = set(re.findall(r"cvt_pack\w+\(packed\w+\[\w+\], (\w+), (\w+),", text))
    left = without(text, ", ".join(ARITHMETIC))
    assert packed
    assert "@never st.shared.b32" not in left
    (block,) = re.findall(r"if \(\(unsigned long long\)Wt_ptr >> 60\) \{(.*?) \}", left)
    assert sorted(re.findall(r'st\.shared\.b32[^(]*"r"\((\w+)\)', block)) == sorted(
        one for two in packed for one in two
    )


def test_a_kind_that_is_not_there_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="the text has no loads of weights"):
        without(without(text, "loads of weights"), "loads of weights")


def lines_of(text: str) -> list[str]:
    one = {"cell": CELL, "config": KEY, "dense": False, "live": 0, "output": "int4", "cuda": text}
    return [
        json.dumps(entry) for entry in ({**one, "dense": True}, {**one, "output": "int32"}, one, {**one, "config": 2})
    ]


def test_the_first_kernel_of_a_cell_is_taken(text: str) -> None:
    assert [entry["config"] for entry in chosen(lines_of(text))] == [KEY]


def test_a_text_is_timed_and_never_compared(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of such a kernel are nobody's: whoever runs it instead of timing it gets an error."""

    class Played:
        def __init__(self, cubin: str, launch: Any, device: Any) -> None:
            self.cubin = cubin

        def run(self, buffers: object) -> None:
            raise AssertionError("outputs without an instruction are compared with nothing")

        def time(self, protocol: object, buffers: object = None) -> Any:
            return SimpleNamespace(microseconds=float(len(self.cubin)))

        def close(self) -> None:
            pass

    monkeypatch.setattr(limits, "GpuKernel", Played)
    monkeypatch.setattr(limits, "LEFT_OUT", LEFT_OUT[:3])
    info = SimpleNamespace(to_dict=dict)
    monkeypatch.setattr(limits, "CudaDevice", lambda _: SimpleNamespace(info=info))
    monkeypatch.setattr(limits, "read_resources", lambda *_: SimpleNamespace(local_bytes=0))
    monkeypatch.setattr(limits, "all_compiled", lambda lines: [*[("four", "")] * (len(lines) - 1), "no machine code"])
    plan = SimpleNamespace(arch="sm_90a", launch=SimpleNamespace(block=(1, 1, 1)), shared_bytes=0)
    cell = SimpleNamespace(kernel=lambda _: SimpleNamespace(plan=plan), inputs=lambda _: {})
    monkeypatch.setattr(limits, "Cell", lambda _: cell)
    texts, out = tmp_path / "texts.jsonl", tmp_path / "record.json"
    texts.write_text("\n".join(lines_of(text)) + "\n")
    assert limits.main([str(texts), str(out), "--rounds", "2"]) == 0
    record = json.loads(out.read_text())
    found = {one["without"]: one.get("median", one.get("reason")) for one in record["rows"]}
    assert found == {"": 4.0, MULTIPLICATIONS: 4.0, "loads of weights": "no machine code"}
    assert limits.table(record)[2].endswith(f"`{KEY}` | 4.00 | 4.00 |")
