"""What blocks with bulk weights read early or late is where the text says, in the machine code as well: the assembler
moves loads, and it waits behind every wgmma whose registers it cannot follow."""

from __future__ import annotations

import re
from functools import cache

import pytest

import subbyte
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.kernel import Kernel
from subbyte.kernel.disassemble import sass
from subbyte.kernel.nvrtc import compile_cubin

BEST = {
    "stage 2": ("resnet50.stage2@8", "wgs-tw14-tr1-cm1-cn2-sg56-mc2-if2"),
    "stage 3": ("resnet50.stage3@8", "wgs-tw14-tr1-cm1-sg28-mc4-un2-if3"),
    "stage 4, 8 columns": ("resnet50.stage4@8", "wgs-tw8-tr1-cm1-sg14-mc2-un2-if3"),
}
"""The best configurations at batch 8, one of each kind: columns of blocks, clusters, a narrow tile."""
AHEAD = {"stage 2": 3, "stage 3": 6, "stage 4, 8 columns": 6}
"""Fragments of their loop bodies."""
WORDS = r"LDS\.128 R(\d+), "


@cache
def _kernel(name: str, more: str = "") -> Kernel:
    """A kernel with one of these configurations; build refuses local memory and serialized wgmma."""
    spec, key = BEST[name]
    return subbyte.build(spec, SingleTileConfig.from_key(key + more))


def _lines(text: str) -> list[str]:
    """Instructions and labels in their order."""
    found = re.findall(r"^\s*(\.L_x_\d+:)|^\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", text, re.MULTILINE)
    return [label or instruction for label, instruction in found]


def _behind_the_first_row(text: str) -> bool:
    """A consumer asks for all parameters behind its last fence and its arrival, and ahead of the first wgmma."""
    lines = _lines(text)
    first = next(place for place, line in enumerate(lines) if "IGMMA" in line)
    fence, arrival = (max(_places(lines[:first], name)) for name in (r"MEMBAR\.ALL\.CTA", r"SYNCS\.ARRIVE"))
    asked = _places(lines, r"LDG\S*\.64\S* R")
    assert len(asked) == 3
    return fence < arrival < min(asked) and max(asked) < first


def _places(lines: list[str], pattern: str) -> list[int]:
    return [place for place, line in enumerate(lines) if re.search(pattern, line)]


def distances(text: str) -> list[int]:
    """For each 16 bytes of weights that a thread reads from shared memory among the multiplications: how many wgmma are
    issued from there to the first instruction that uses them, round the loop where there is one."""
    lines = _lines(text)
    labels = {line[:-1]: place for place, line in enumerate(lines) if line.endswith(":")}
    first, last = min(_places(lines, "IGMMA")), max(_places(lines, "IGMMA"))
    ends = [place for place in _places(lines[: last + 8], "BRA") if place > last]
    starts = [labels[re.findall(r"\.L_x_\d+", lines[end])[0]] for end in ends]
    loops = [(start, end) for start, end in zip(starts, ends, strict=True) if start < first]
    start, end = loops[0] if loops else (first, last + 1)
    found = []
    for place in _places(lines[start:end], WORDS):
        after = lines[start + place + 1 : end] + (lines[start : start + place] if loops else [])
        read = int(re.findall(WORDS, lines[start + place])[0])
        words = {f"R{read + i}" for i in range(4)}
        uses = [later for later, line in enumerate(after) if words & set(re.findall(r"\bR\d+\b", line)[1:])]
        if uses:
            found.append(len(_places(after[: uses[0]], "IGMMA")))
    return found


@pytest.mark.deep
@pytest.mark.sample("stage 3")
@pytest.mark.parametrize("name", ["stage 2", "stage 3"])
def test_late_parameters_are_asked_for_behind_the_first_row(name: str) -> None:
    """Without it the first words of a loop body are used with no wgmma issued since; with it, nearly a body's are."""
    usual = _kernel(name).sass
    assert not _behind_the_first_row(usual)
    assert min(distances(usual)) == 0
    assert _arrivals(usual) == 1
    kernel = _kernel(name, f"-wa{AHEAD[name]}-pa1")
    assert kernel.resources.registers <= 200
    assert _behind_the_first_row(kernel.sass)
    assert min(distances(kernel.sass)) >= AHEAD[name]


@pytest.mark.deep
def test_loads_that_are_read_only_for_good_would_not_stay_there() -> None:
    kernel = _kernel("stage 3", "-wa6-pa1")
    text = kernel.cuda.replace("ld.global.L1::no_allocate.v2.b32", "ld.global.nc.v2.b32")
    assert not _behind_the_first_row(sass(compile_cubin(text, "sm_90a")[0]))


def _asked_first(text: str) -> bool:
    """A consumer asks for its parameters ahead of its first row."""
    lines = _lines(text)
    asked = _places(lines, r"LDG\S*\.64\S* R")
    start = max(place for place in _places(lines, r"^\.L_x") if place < min(asked))
    fence = next((place for place in _places(lines, r"MEMBAR\.ALL\.CTA") if place > max(asked)), start)
    rows = [start + place for place in _places(lines[start:fence], r"LDG\S*\.128\S* R")]
    return bool(rows) and max(asked) < min(rows)


def _added(text: str) -> int:
    """Integers that are added behind the multiplications."""
    lines = _lines(text)
    return len(_places(lines[max(_places(lines, "IGMMA")) :], "IADD"))


@pytest.mark.deep
@pytest.mark.parametrize(("name", "start"), [("stage 2", 1), ("stage 4, 8 columns", 2)])
def test_sums_begin_with_parameters_asked_for_first_and_consumers_meet_at_a_named_barrier(
    name: str, start: int
) -> None:
    """The assembler does not move their loads behind the row's, the epilogue adds nothing, and behind its last fence a
    consumer arrives at no barrier in shared memory."""
    usual = _kernel(name).sass
    assert _added(usual) >= 4 * SingleTileConfig.from_key(BEST[name][1]).tile_width
    assert not _asked_first(usual)
    assert _arrivals(usual) == 1
    kernel = _kernel(name, f"-wa{AHEAD[name]}-pa2-es{start}")
    assert _asked_first(kernel.sass)
    assert _added(kernel.sass) < 4
    assert _arrivals(kernel.sass) == 0
    assert kernel.resources.registers <= 200


def _arrivals(text: str) -> int:
    lines = _lines(text)
    first = min(_places(lines, "IGMMA"))
    fence = max(_places(lines[:first], r"MEMBAR\.ALL\.CTA"))
    return len(_places(lines[fence:first], r"SYNCS\.ARRIVE"))


def test_distances_are_counted_round_the_loop() -> None:
    loop = [".L_x_1:", "LDS.128 R4, [R8]", "IGMMA R24, R16", "LOP3.LUT R16, R12, 1", "IGMMA R24, R20",
            "LDS.128 R12, [R8]", "IMAD R20, R4, R9", "@P0 BRA `(.L_x_1)", "EXIT"]  # fmt: skip
    assert distances(_written(loop)) == [2, 1]
    assert distances(_written([*loop[1:3], loop[5], loop[2], loop[3], loop[4]])) == [1]


def _written(lines: list[str]) -> str:
    return "\n".join(line if line.endswith(":") else f"        /*0000*/   {line} ;" for line in lines)
