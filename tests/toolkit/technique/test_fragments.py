"""Fragment maps: the formulas of the PTX ISA, a product through the lanes, and maps the checker must refuse."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subbyte.device.fragments import COLUMNS, INSTRUCTIONS, WARPGROUP_INSTRUCTIONS, Fragments, Map
from subbyte.device.shared_operand import SWIZZLES, SharedOperand
from subbyte.emulator import require_clean, run_cuda
from subbyte.errors import InvalidInput, WrongResult
from subbyte.technique import check_fragments, fragments
from subbyte.technique.mma import execute, execute_warpgroup, gather, scatter

sys.path.append(str(Path(__file__).parents[1] / "emulator"))
from wgmma_cases import RIGHT, SHARED_BYTES, Wgmma

WARPGROUP = (*WARPGROUP_INSTRUCTIONS, "wgmma.m64n24k32.s8")
NAMES = (*INSTRUCTIONS, *WARPGROUP)


def _isa(name: str, operand: str, lane: int, i: int) -> tuple[int, int]:
    """(row, column) of element ``i`` (counted over a lane's registers), transcribed case by case from the PTX ISA."""
    group, thread = lane >> 2, lane % 4
    if name.startswith("wgmma"):
        return _isa_of_a_warpgroup(name, operand, lane, i)
    if operand == "c":
        return group + (8 if i >= 2 else 0), thread * 2 + (i & 1)
    if name == "m8n8k32.s4":
        return (group, thread * 8 + i) if operand == "a" else (thread * 8 + i, group)
    if name == "m8n8k128.b1":
        return (group, thread * 32 + i) if operand == "a" else (thread * 32 + i, group)
    if name == "m16n8k32.s4":
        return (group + (8 if i >= 8 else 0), thread * 8 + (i & 7)) if operand == "a" else (thread * 8 + i, group)
    if name == "m16n8k64.s4":
        if operand == "b":
            return thread * 8 + (i & 7) + (32 if i >= 8 else 0), group
        return group + (0 if i < 8 or 16 <= i < 24 else 8), thread * 8 + (i & 7) + (32 if i >= 16 else 0)
    if name == "m16n8k32.s8":
        if operand == "b":
            return thread * 4 + (i & 3) + (16 if i >= 4 else 0), group
        return group + (0 if i < 4 or 8 <= i < 12 else 8), thread * 4 + (i & 3) + (16 if i >= 8 else 0)
    if operand == "b":
        return thread * 32 + (i & 31) + (128 if i >= 32 else 0), group
    return group + (0 if i < 32 or 64 <= i < 96 else 8), thread * 32 + (i & 31) + (128 if i >= 64 else 0)


def _isa_of_a_warpgroup(name: str, operand: str, thread: int, i: int) -> tuple[int, int]:
    """The same from the figures of the wgmma fragments, which number the warps %warpid % 4; B: pieces of 16 bytes."""
    warp, row, column = thread // 32 % 4, thread % 32 // 4, thread % 4
    if operand == "c":
        return warp * 16 + row + (8 if i % 4 >= 2 else 0), i // 4 * 8 + column * 2 + (i & 1)
    if operand == "b":  # core matrices: eight columns of one half of k, then the other half, then the next columns
        pieces, held = thread, 16 if name.endswith("s8") else 128
        return pieces // 8 % 2 * held + i, pieces // 16 * 8 + pieces % 8
    if name.endswith("s8"):
        return warp * 16 + row + (0 if i < 4 or 8 <= i < 12 else 8), column * 4 + (i & 3) + (16 if i >= 8 else 0)
    return warp * 16 + row + (0 if i < 32 or 64 <= i < 96 else 8), column * 32 + (i & 31) + (128 if i >= 64 else 0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_maps_equal_the_isa_and_go_both_ways(name: str, operand: str) -> None:
    record = fragments(name)
    per = len(record.map(operand)[0][0])
    held = 0
    for lane in range(0, len(record.map(operand)), 3):
        for register in range(len(record.map(operand)[0])):
            for index in range(per):
                place = record.element(operand, lane, register, index)
                assert place == _isa(name, operand, lane, register * per + index)
                if held % 5 == 0:
                    assert record.owner(operand, *place) == (lane, register, index)
                held += 1


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_a_product_through_the_lanes_is_the_product(name: str) -> None:
    record = fragments(name)
    rng = np.random.default_rng(7)
    low, high = (0, 2) if record.bits == 1 else (-(2 ** (record.bits - 1)), 2 ** (record.bits - 1))
    a = rng.integers(low, high, record.shape("a"))
    b = rng.integers(low, high, record.shape("b"))
    c = rng.integers(-9, 9, record.shape("c")).astype(np.int32)
    words = [scatter(record.map(operand), matrix, record.bits) for operand, matrix in (("a", a), ("b", b))]
    d = execute(name, words[0], words[1], scatter(record.c, c, 32).view(np.int32))
    assert np.array_equal(gather(record.c, d, c.shape), a @ b + c)
    if record.dtype == "b1":
        d = execute(name, words[0], words[1], scatter(record.c, c, 32).view(np.int32), "xor.popc")
        differing = (a[:, :, None] != b[None, :, :]).sum(axis=1)
        assert np.array_equal(gather(record.c, d, c.shape), differing + c)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", WARPGROUP)
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_the_emulator_agrees_with_the_maps_of_a_warpgroup(name: str, swizzle: int) -> None:
    """A in the registers, B where the layout says: the instruction run by the emulator gives the product."""
    record = fragments(name)
    case = Wgmma("b1.b1.and.popc" if record.bits == 1 else "s8.s8", record.n, swizzle)
    rng = np.random.default_rng(swizzle)
    low, high = (0, 2) if record.bits == 1 else (-128, 128)
    a, b = (rng.integers(low, high, record.shape(operand)) for operand in "ab")
    c = rng.integers(-999, 999, record.shape("c")).astype(np.int32)
    shared = np.zeros(SHARED_BYTES, np.uint8)
    layout = SharedOperand.of(record.n, swizzle)
    assert case.strides[0] == layout.stride
    for k in range(record.k):
        for n in range(record.n):
            shared[RIGHT + record.address(k, n, swizzle)] |= (int(b[k, n]) & 255) << k * record.bits % 8
    inputs = {"A": scatter(record.a, a, record.bits), "C": scatter(record.c, c, 32), "S": shared.view(np.uint32)}
    out = np.zeros_like(inputs["C"])
    require_clean(run_cuda(case.text(), case.launch(), {**inputs, "Out": out}, max_steps=10_000))
    assert np.array_equal(gather(record.c, out.view(np.int32), c.shape), a @ b + c)
    made = execute_warpgroup(record.dtype, inputs["A"], b, inputs["C"].view(np.int32))
    assert np.array_equal(out.view(np.int32), made)
    assert f"{layout.descriptor() >> 32 << 32 | 8 << 16}ull" in case.text()


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_checker_accepts_every_map(name: str) -> None:
    check_fragments(fragments(name))


def _swapped(map_: Map, one: tuple[int, int, int], two: tuple[int, int, int]) -> Map:
    """A map in which two elements have changed places."""
    table = [[list(elements) for elements in registers] for registers in map_]
    (l1, r1, e1), (l2, r2, e2) = one, two
    table[l1][r1][e1], table[l2][r2][e2] = table[l2][r2][e2], table[l1][r1][e1]
    return tuple(tuple(tuple(elements) for elements in registers) for registers in table)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_the_checker_refuses_swapped_elements(name: str, operand: str) -> None:
    record = fragments(name)
    with pytest.raises(WrongResult, match=name):
        check_fragments(_with(record, operand, _swapped(record.map(operand), (0, 0, 0), (5, 0, 0))))


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_the_checker_refuses_a_layout_that_overlaps(swizzle: int) -> None:
    record = fragments("wgmma.m64n24k32.s8")
    layouts = [replace(layout, stride=128, leading=layout.leading // 2) for layout in record.shared]
    wrong = tuple(w if w.swizzle == swizzle else layout for w, layout in zip(layouts, record.shared, strict=True))
    with pytest.raises(WrongResult, match=rf"swizzle {swizzle}: two elements|piece \d+ of shared"):
        check_fragments(replace(record, shared=wrong))


def test_the_checker_refuses_an_element_held_twice() -> None:
    record = fragments("m16n8k32.s8")
    first = record.a[1][0]
    doubled = ((first, *record.a[0][1:]), *record.a[1:])
    with pytest.raises(WrongResult, match="exactly once"):
        check_fragments(_with(record, "a", doubled))


def test_the_checker_refuses_a_permutation_of_k_that_leaves_products_right() -> None:
    record = fragments("m8n8k32.s4")
    a, b = record.a, record.b
    for group in range(8):
        a = _swapped(a, (4 * group, 0, 0), (4 * group + 1, 0, 0))
        b = _swapped(b, (4 * group, 0, 0), (4 * group + 1, 0, 0))
    with pytest.raises(WrongResult, match="k = 0"):
        check_fragments(replace(record, a=a, b=b))


def _with(record: Fragments, operand: str, map_: Map) -> Fragments:
    maps: dict[str, Any] = {operand: map_}
    return replace(record, **maps)


def test_support_per_architecture() -> None:
    def status(name: str, operation: str = "mma") -> dict[str, str]:
        return {s.arch: s.status for s in fragments(name).support if s.operation == operation}

    assert status("m8n8k32.s4")["sm_75"] == "native"
    assert status("m16n8k64.s4")["sm_75"] == "absent"
    assert {status(name)["sm_90a"] for name in ("m8n8k32.s4", "m16n8k32.s4", "m16n8k64.s4")} == {"emulated"}
    assert status("m16n8k32.s8")["sm_90a"] == "native"
    assert status("m16n8k256.b1", "and.popc")["sm_90a"] == "native"
    assert status("m16n8k256.b1", "xor.popc")["sm_90a"] == "emulated"


def test_support_of_binary_and_warpgroup_instructions() -> None:
    def status(name: str, operation: str) -> list[str]:
        return [s.status for s in fragments(name).support if s.operation == operation]

    assert status("m8n8k128.b1", "xor.popc") == ["native", "native", "native", "native", "emulated"]
    assert status("m8n8k128.b1", "and.popc") == ["absent", "native", "native", "native", "native"]
    for name, operation in (("wgmma.m64n8k32.s8", "mma"), ("wgmma.m64n8k256.b1", "and.popc")):
        assert status(name, operation) == ["absent"] * 4 + ["native"]


def test_widths_and_names_of_warpgroup_instructions() -> None:
    record = fragments("s8.wgmma.m64n224k32")
    assert record == fragments("wgmma.m64n224k32.s8") == fragments("s8.m64n224k32")
    assert (record.warps, record.n, len(record.c[0]), record.name) == (4, 224, 112, "wgmma.m64n224k32.s8")
    assert record.owner("c", 33, 201) == (68, 101, 0)
    assert {fragments(f"wgmma.m64n{n}k32.s8").n for n in COLUMNS} == set(COLUMNS)
    for wrong in ("wgmma.m64n40k32.s8", "wgmma.m64n8k32.b1", "wgmma.m64n8k256.s8", "wgmma.m64n264k32.s8"):
        with pytest.raises(InvalidInput, match=r"n of a wgmma is one of|wgmma\.m64n8k"):
            fragments(wrong)
    with pytest.raises(InvalidInput, match="B lies in registers"):
        fragments("m16n8k32.s8").address(0, 0)
    with pytest.raises(InvalidInput, match="0, 32, 64, 128"):
        record.address(0, 0, 16)
    with pytest.raises(InvalidInput, match="0, 32, 64, 128 bytes"):
        SharedOperand.of(8, 48)
    with pytest.raises(InvalidInput, match="8 rows of 32 bytes"):
        SharedOperand.of(8).address(8, 0)
    assert "128-byte swizzle" in fragments("wgmma.m64n8k32.s8").text()


def test_support_agrees_with_the_architectures() -> None:
    from subbyte.device import ARCHS

    for name in ("m8n8k32.s4", "m16n8k32.s4"):
        found = {s.arch: s.status for s in fragments(name).support}
        assert set(found) == set(ARCHS)
        for target, status in found.items():
            if status != "absent":
                assert (status == "native") == ARCHS[target].native_s4
    for arch in ARCHS.values():
        support = {s.arch: s.status for s in fragments(arch.default_atom).support}
        assert support[arch.name] == "native"


def test_atoms_names_are_accepted() -> None:
    assert fragments("s8.m16n8k32") == fragments("mma.m16n8k32.s8") == fragments("M16N8K32.S8")


@pytest.mark.parametrize("name", ["m16n8k16.s8", "m8n8k32", "", "wmma"])
def test_unknown_instructions_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"m16n8k32\.s8|m8n8k32\.s4"):
        fragments(name)


def test_widths_that_no_warpgroup_instruction_has_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"n of a wgmma is one of 8, 16, .*, 256$"):
        fragments("wgmma.m64n512k32.s8")


def test_places_outside_are_refused() -> None:
    record = fragments("m8n8k32.s4")
    with pytest.raises(InvalidInput, match="8x32"):
        record.owner("a", 8, 0)
    with pytest.raises(InvalidInput, match="32 lanes, 1 registers, 8 elements"):
        record.element("a", 0, 1)
    with pytest.raises(InvalidInput, match="a, b, c, d"):
        record.owner("e", 0, 0)


def test_record_goes_to_json_table_and_text() -> None:
    record = fragments("m16n8k32.s8")
    data = json.loads(record.to_json())
    assert data["a"][5][1][0] == [9, 4]
    assert len(record.to_frame()) == 32 * (4 + 2 + 4)
    assert "sm_90a" in record.text()
