"""Kernels for few input channels as TVM generates them: clean and exact, and faults in them are found."""

from __future__ import annotations

import pytest
from generated_samples import samples

KERNELS = samples("stem", {
    "the stem, two rows": ("n8h14w20c3k64r7s7p3u2", "stem-rw2-tg2-oc64-co2-sg1-tu1", {}),
    "two phases, four rows, ragged": ("n3h9w13c3k40r3s3p1", "stem-rw4-tg2-oc32-co1-sg1-tu1", {"clip": (0, 7)}),
    "segments, turns, two groups": ("n9h12w37c2k64r3s3p1", "stem-rw2-tg2-oc64-co2-sg2-tu4-bu2", {}),
    "a window an instruction, two phases": ("n9h12w37c3k64r3s3p1", "stem-rw2-tg1-oc64-co2-sg3-tu4-ah1-bu2-be1", {}),
    "turns one after the other, read ahead": ("n9h11w40c3k32r7s7p3u2", "stem-rw1-tg1-oc32-co1-sg1-tu3-ah1", {}),
    "one channel, 96 columns": ("n8h11w9c1k96r5s3p2", "stem-rw1-tg1-oc96-co1-sg1-tu2", {"clip": (-7, 6)}),
    "11x11, stride 4": ("n1h23w31c3k64r11s11p2u4", "stem-rw2-tg1-oc64-co1-sg1-tu1", {}),
    "1x1, eight channels, two slices, sums": (
        "n2h7w7c7k256r1s1p0", "stem-rw2-tg1-oc128-co1-sg1-tu1", {"output": "int32"},
    ),
    "a window an instruction, stride 2": ("n3h9w19c3k32r3s3p1u2", "stem-rw2-tg1-oc32-co1-sg1-tu1-be1", {}),
    "weights in registers, behind": ("n9h10w14c3k64r7s7p3u2", "stem-rw2-tg1-oc64-co1-sg1-tu2-ah1-be1-hw1", {}),
    "weights in registers, two rows, ragged": (
        "n3h15w23c3k120r7s7p3u2", "stem-rw4-tg2-oc64-co2-sg2-tu1-hw1", {"clip": (-5, 6)},
    ),
    "weights in registers, general": (
        "n8h9w20c4k64r5s5p2u2", "stem-rw2-tg2-oc64-co2-sg1-tu1-hw1", {"requant": "general"},
    ),
    "weights in registers, two phases": ("n9h12w37c3k64r3s3p1", "stem-rw2-tg1-oc64-co2-sg2-tu2-hw1", {}),
    "weights in registers, two phases, behind": ("n3h8w37c3k64r3s3p1", "stem-rw2-tg1-oc64-co1-sg3-tu2-be1-hw1", {}),
    "weights in registers, sums": ("n2h7w7c7k128r1s1p0", "stem-rw2-tg1-oc64-co1-sg1-tu1-hw1", {"output": "int32"}),
    "16 pixels, 8 rows, streamed": (
        "n1h15w56c3k64r7s7p3u2", "stem-rw8-tg1-oc64-co1-sg2-tu2-ah1-be1-hw1-wi1-st1", {},
    ),
    "16 pixels, two phases, sums": (
        "n8h8w64c3k64r3s3p1", "stem-rw4-tg1-oc64-co1-sg1-tu2-hw1-wi1", {"output": "int32"},
    ),
    "two channels, general": ("n8h9w20c2k64r5s5p2u2", "stem-rw4-tg2-oc64-co2-sg1-tu1-pdl0", {"requant": "general"}),
    "wider than the image, five channels": ("n8h2w3c5k32r3s9p4", "stem-rw1-tg1-oc32-co1-sg1-tu1", {}),
    "padding beyond the kernel, one row": ("n1h1w1c4k33r1s1p3u3", "stem-rw1-tg1-oc64-co1-sg1-tu3", {"output": "int32"}),
    "what no window reaches": ("n8h10w12c2k32r2s2p0u3", "stem-rw2-tg1-oc32-co1-sg1-tu1", {}),
})  # fmt: skip
"""Between them every way to make strings and both numbers of buffers, each form of the output, and sizes that fill
nothing."""


@pytest.mark.sample("segments, turns, two groups")
@pytest.mark.parametrize("name", KERNELS)
def test_generated_kernels_are_clean_and_exact(name: str) -> None:
    KERNELS[name].require_exact()


FAULTS = {
    "weights of the other phase": ("((tile & 1) * 256)", "((tile & 1) * 0)"),
    "a window in the next string": ("(((tile & 1) * 4) >> 3)", "(((tile & 1) * 8) >> 3)"),
    "pixels further apart": ("upper_word_ptr[0], 16", "upper_word_ptr[0], 32"),
    "strings over those of the other warpgroup": ("(uint)((warp >> 2) * 2)", "(uint)((warp >> 2) * 0)"),
    "even values as odd ones": ("(strip_words_ptr[0] << (uint)4)", "strip_words_ptr[0]"),
    "odd values of other rows": ("strip_words_ptr[1], (uint)25632", "strip_words_ptr[2], (uint)25632"),
    "the last string of a row left out": ("< 25)", "< 19)"),
    "half of the sums begin with nothing": ("if (thread < 64)", "if (thread < 32)"),
    "rows of the other group": ("* 2800)", "* 2600)"),
    "pixels beyond the row": ("< 37", "< 41"),
    "strings that wgmma may not see": ("tvm_builtin_ptx_fence_proxy_proxy_async_shared__cta();", ""),
}
"""In the kernel with segments and turns: what is replaced, and by what."""


@pytest.mark.sample("weights of the other phase", "strings that wgmma may not see")
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    KERNELS["segments, turns, two groups"].require_found(FAULTS[name])


DENSE_FAULTS = {
    "the windows of the other phase": ("(uint)2048) >> (uint)4)", "(uint)2176) >> (uint)4)"),
    "another constant in one of the phases": ("(uint)4042321920) | (uint)127)", "(uint)4042321920) | (uint)126)"),
    "sums that are still added to": ("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 2;"),
}
"""In the kernel with two phases whose windows are an instruction."""


@pytest.mark.deep
@pytest.mark.parametrize("name", DENSE_FAULTS)
def test_planted_faults_in_whole_windows_are_found(name: str) -> None:
    KERNELS["a window an instruction, two phases"].require_found(DENSE_FAULTS[name])


@pytest.mark.deep
def test_machine_code_moves_no_sums_and_spills_nothing() -> None:
    kernel = KERNELS["the stem, two rows"].kernel
    counts = kernel.instructions
    assert sum(count for opcode, count in counts.items() if opcode.startswith("IGMMA.64x64x32.S8.S8")) == 12
    assert counts["FFMA"] == 64  # a sum takes a multiply-add and half of a pack
    assert not any(opcode.startswith(("LDL", "STL", "SHFL.BFLY", "MOVM")) for opcode in counts)
    assert kernel.resources.local_bytes == 0
