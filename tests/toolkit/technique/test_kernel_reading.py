"""The reading of a kernel: classes and counts against the texts, the difference against both kernels, refusals."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

import subbyte
from subbyte.device import ARCHS
from subbyte.errors import InvalidInput
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.kernel import Kernel
from subbyte.technique.kernel_reading import CLASSES, LANGUAGES, KernelReading, classify, kernel_reading
from subbyte.workload import ConvWorkload

LAYER = "n8h7w7c32k32r3s3p1"


@pytest.fixture(scope="module")
def kernels() -> tuple[subbyte.Kernel, subbyte.Kernel]:
    first = subbyte.build(LAYER)
    return first, subbyte.build(LAYER, first.config.with_values({"register_packing": False}))


@pytest.fixture(scope="module")
def compared(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> KernelReading:
    return kernel_reading(*kernels)


@pytest.mark.parametrize(
    ("language", "line", "kind"),
    [
        ("sass", "  IMMA.16832.S8.S8 R4, R8.ROW, R10.COL, R4", "matrix"),
        ("sass", "  @!P2 LDGSTS.E.BYPASS.128 [R19], desc[UR6][R8.64]", "copy"),
        ("sass", "  LDC R1, c[0x0][0x28]", ""),
        ("sass", "  LDGDEPBAR", "barrier"),
        ("sass", "  @P0 STG.E desc[UR6][R4.64], R0", "store"),
        ("sass", "  IMAD.MOV.U32 R72, RZ, RZ, RZ", ""),
        ("ptx", "  @%p22 ld.shared.u32 %r1, [%r2];", "load"),
        ("ptx", "  ld.param.u64 %rd1, [conv_kernel_param_0];", ""),
        ("ptx", "  shfl.sync.bfly.b32 %r1, %r2, %r3, %r4, %r5;", "shuffle"),
        ("ptx", "  cp.async.wait_group 0;", "barrier"),
        ("cuda", "  tvm_builtin_cuda_cta_sync();", "barrier"),
        ("cuda", "      shared_ptr[((a == 0) ? 1 : 2)] = low;", "store"),
        ("cuda", "  asm volatile(\"mma.sync.aligned\");", ""),
        ("tir", "    words[v] = shared[2560 + s * 4]", "load"),
        ("tir", "    T.ptx.mma(acc[0], a[0])", "matrix"),
        ("sass", "  IGMMA.64x112x32.S8.S8 R24, R92, gdesc[UR12], R24, UP0", "matrix"),
        ("sass", "  BGMMA.64x64x256.AND.POPC R24, R92, gdesc[UR12], R24", "matrix"),
        ("sass", "  @!P0 SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ", "barrier"),
        ("sass", "  UCGABAR_WAIT", "barrier"),
        ("sass", "  @!PT LDS RZ, [RZ]", ""),
        ("sass", "  @!P1 LDS R4, [R2]", "load"),
        ("sass", "  FENCE.VIEW.ASYNC.S", "barrier"),
        ("sass", "  UBLKCP [UR8], [UR4], UR6", "copy"),
        ("sass", "  MOVM.16.MT88 R92, R92", "shuffle"),
        ("ptx", "  { .reg .pred p; setp.ne.b32 p, %r4, 0; wgmma.mma_async.sync.aligned {%r1}; }", "matrix"),
        ("ptx", "  { .reg .pred p; mbarrier.try_wait.parity.b64 p, [%r1], %r2; selp.b32 %r3, 1, 0, p; }", "barrier"),
        ("ptx", "  wgmma.commit_group.sync.aligned;", "barrier"),
        ("ptx", "  mbarrier.arrive.shared.b64 _, [%r975];", "barrier"),
        ("ptx", "  cp.async.bulk.shared::cluster.global [%r1], [%rd1], 64, [%r2];", "copy"),
        ("ptx", "  cp.async.bulk.wait_group 0;", "barrier"),
        ("ptx", "  griddepcontrol.launch_dependents;", ""),
        ("cuda", "  tvm_builtin_ptx_wgmma_int_rs_mma_async_sync_aligned_m64n112k32_s32_s8_s8(acc_ptr[0]);", "matrix"),
        ("cuda", "  tvm_builtin_ptx_wgmma_fence_fence_sync_aligned();", "barrier"),
        ("cuda", "  tvm_builtin_ptx_movmatrix_sync_aligned_m8n8_trans_b16(a_ptr[0], a_ptr[0]);", "shuffle"),
        ("tir", "    T.ptx.wgmma(acc[0], acc[1])", "matrix"),
        ("tir", '    T.ptx.wgmma(1, "wait_group", "sync", "aligned", "")', "barrier"),
        ("tir", '    T.ptx.wgmma("fence", "sync", "aligned", "")', "barrier"),
        ("tir", '    T.ptx.barrier("cluster", "arrive", "release", "aligned", "")', "barrier"),
    ],
)  # fmt: skip
def test_instructions_are_told_apart(language: str, line: str, kind: str) -> None:
    assert classify(language, line) == kind


@pytest.mark.deep
def test_counts_are_those_of_the_disassembly(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    reading = kernel_reading(kernels[0])
    counted = sum(map(Counter, reading.counts.values()), Counter())
    true = {name: number for name, number in kernels[0].instructions.items() if name != "NOP"}
    assert {name: number for name, number in counted.items() if name != "NOP"} == true
    lines = [row.kind for row in reading.rows["sass"]]
    assert all(lines.count(kind) == sum(reading.counts[kind].values()) for kind in CLASSES)
    in_ptx = re.findall(r"^\s*(?:mma\.sync|shfl\.sync)", kernels[0].ptx, re.MULTILINE)
    assert len(in_ptx) == sum(row.kind in ("matrix", "shuffle") for row in reading.rows["ptx"])


@pytest.mark.deep
def test_warpgroup_instructions_are_counted_with_their_shape() -> None:
    config = PipelineConfig(tile_width=14, cluster_split_k=2, segments=14, stages=3)
    kernel = Kernel(WgmmaPlan(ConvWorkload(8, 14, 14, 128, 64, 3, 3, 1), config, ARCHS["sm_90a"]))
    reading = kernel_reading(kernel)
    counted = reading.counts["matrix"]
    assert set(counted) == {"IGMMA.64x112x32.S8.S8"}
    facts = {fact.name: fact.value for fact in reading.facts}
    assert facts["matrix instructions"] == sum(counted.values()) > 0
    assert counted["IGMMA.64x112x32.S8.S8"] == kernel.instructions["IGMMA.64x112x32.S8.S8"]
    in_ptx = len(re.findall(r"wgmma\.mma_async", kernel.ptx))
    assert in_ptx == sum(row.kind == "matrix" for row in reading.rows["ptx"])


@pytest.mark.deep
def test_packing_outside_the_registers_trades_shuffles_for_shared_memory(compared: KernelReading) -> None:
    facts = {fact.name: fact for fact in compared.facts}
    assert facts["shuffles"].value > 0 == facts["shuffles"].other
    assert facts["shared stores"].value == 0 < (facts["shared stores"].other or 0)
    assert facts["matrix instructions"].value == facts["matrix instructions"].other


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rows_give_back_both_texts(
    language: str, compared: KernelReading, kernels: tuple[subbyte.Kernel, subbyte.Kernel]
) -> None:
    for sign, kernel in zip("-+", kernels, strict=True):
        alone = kernel_reading(kernel).rows[language]
        rows = [row for row in compared.rows[language] if row.sign in (" ", sign)]
        assert [row.kind for row in rows] == [row.kind for row in alone]
        if sign == "-":
            assert [row.text for row in rows] == [row.text for row in alone]
    changed = {i for begin, end in compared.hunks[language] for i in range(begin, end)}
    assert changed == {i for i, row in enumerate(compared.rows[language]) if row.sign != " "}
    assert changed


def test_a_kernel_does_not_differ_from_itself(kernels: tuple[subbyte.Kernel, subbyte.Kernel]) -> None:
    same = kernel_reading(kernels[0], kernels[0])
    assert not any(same.hunks.values())
    assert all(fact.value == fact.other for fact in same.facts)


def test_finding_and_refusing(compared: KernelReading) -> None:
    places = compared.find("sass", "imma")
    assert len(places) >= compared.facts[0].value
    assert all("IMMA" in compared.rows["sass"][place].text for place in places)
    assert compared.find("sass", "") == ()
    with pytest.raises(InvalidInput, match="did you mean sass"):
        compared.find("sas", "IMMA")


def test_it_prints_and_goes_to_json(compared: KernelReading) -> None:
    assert "shuffles" in str(compared)
    assert json.loads(compared.to_json())["hunks"]["cuda"]
    assert "<table>" in compared._repr_html_()
