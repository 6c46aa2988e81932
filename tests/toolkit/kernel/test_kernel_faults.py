"""What the compilers did wrong is recognised in their output, whenever a kernel of the wgmma family is built."""

import re

import numpy as np
import pytest

import subbyte
from subbyte.errors import BuildFailed
from subbyte.families.wgmma import faults
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.kernel import nvrtc
from subbyte.kernel.build import machine_code
from subbyte.kernel.disassemble import sass
from subbyte.workload import ConvWorkload

MERGED = re.compile(r"V\w*MNMX\S* R\d+, U?P\d, ")
"""A minimum that also answers a comparison, as the disassembler writes it."""
SMALL = ConvWorkload(8, 6, 6, 64, 64, 3, 3, 1)
CONFIG = PipelineConfig(tile_width=6, stages=6, stagger=0)
WRAPPED = """
	shl.b16 	%rs11, %rs34, 4;
	sub.s16 	%rs12, %rs11, %rs10;
	cvt.u32.u16 	%r1021, %rs12;
"""
"""As NVVM 13.0 wrote it for a producer's loads, with the constant of ``(turn + 2) % 3 * 16`` taken out."""
RIGHT = """
	mul.lo.s16 	%rs31, %rs30, 3;
	sub.s16 	%rs32, %rs21, %rs31;
	shl.b16 	%rs33, %rs32, 4;
"""
MERGING = """extern "C" __global__ void k(int* o, int n) {
    for (int r = 0; r < n; r += 2) {
        int rows = min(2, 7 - r), low = min(max(0 - r, 0), rows), high = max(min(7 - r, rows), 0);
        o[r] = low == 0 && high == 2 ? high : 10 + high;
    }
}"""
SPILLING = """extern "C" __global__ void k(int* o, int n) {
    int kept[64];
    for (int i = 0; i < 64; ++i) kept[o[i]] = i;
    o[n] = kept[o[n]];
}"""


def test_an_index_in_too_few_bits_is_recognised():
    assert faults.wrapped_indices(WRAPPED) == ["sub.s16 %rs12, %rs11, %rs10;"]
    assert faults.wrapped_indices(WRAPPED.replace("%rs11, %rs10", "%rs13, %rs10")) == []
    shifted = WRAPPED.replace("\tsub.s16", "\tadd.s16 \t%rs13, %rs11, 32;\n\tsub.s16").replace(
        "%rs11, %rs10", "%rs13, %rs10"
    )
    assert len(faults.wrapped_indices(shifted)) == 1
    assert faults.wrapped_indices(RIGHT) == []


@pytest.mark.deep
def test_kernels_without_sharing_compute_their_addresses_in_full():
    """Wrong on an H200, and right in the emulator, before their parts were hidden from the compiler."""
    workload = ConvWorkload(8, 28, 28, 128, 64, 3, 3, 1)
    config = PipelineConfig(tile_width=14, segments=28, stages=3, load_ahead=1, in_flight=2, stagger=0,
                            duplicate_aware="none", layout="nhwc")  # fmt: skip  # fmt: skip
    text = subbyte.build(workload, config).cuda
    assert faults.wrapped_indices(nvrtc.compile_ptx(text, "sm_90a")) == []
    shown, hidden = re.subn(
        r"\n\s+tvm_builtin_ptx_mov_b32\w+\((parts\w*)_ptr\[0\], parts\);", r"\n  \1_ptr[0] = parts;", text
    )
    assert hidden == 1
    assert faults.wrapped_indices(nvrtc.compile_ptx(shown, "sm_90a"))


def test_the_machine_code_is_read_as_the_disassembler_reads_it():
    kernel = subbyte.build(SMALL, CONFIG)
    found, listed = faults.counts(kernel.cubin), kernel.instructions
    assert found["IGMMA"] == sum(count for opcode, count in listed.items() if opcode.startswith("IGMMA")) > 0
    assert found["VIMNMX"] == sum(count for opcode, count in listed.items() if re.match(r"VIMNMX(\.|$)", opcode))
    assert (found["LDL"], found["STL"], found["merged"]) == (0, 0, 0)
    assert faults.fault(kernel.cubin) is None


@pytest.mark.sample("STL")
@pytest.mark.parametrize(
    ("text", "name", "pattern"), [(MERGING, "merged", MERGED), (SPILLING, "STL", re.compile("STL"))]
)
def test_faults_of_machine_code_are_counted(text, name, pattern):
    cubin, _ = nvrtc.compile_cubin(text, "sm_90a")
    assert faults.counts(cubin)[name] == len(pattern.findall(sass(cubin))) > 0
    assert "no wgmma" in faults.fault(cubin)


def _with(cubin: bytes, code: int, high: int) -> bytes:
    """The same machine code with its first IGMMA's neighbour replaced by another instruction."""
    words = np.frombuffer(cubin, "<u8").copy()
    kernel = faults._instructions(cubin)
    place = np.flatnonzero((words[:-1] == kernel[0, 0]) & (words[1:] == kernel[0, 1]))[0]
    words[place : place + 2] = code, high
    return words.tobytes()


@pytest.mark.parametrize(
    ("code", "high", "says"),
    [(0x00000002080D7848, 0x000FE40003801100, "merged a comparison"), (0x983, 0, "local memory \\(1 loads, 0 stores"),
     (0x0000001801007387, 0x0045E40000100C00, "local memory \\(0 loads, 1 stores")],
)  # fmt: skip
def test_build_refuses_what_the_compiler_did_wrong(code, high, says, monkeypatch):
    good = subbyte.build(SMALL, CONFIG)
    compiled = (_with(good.cubin, code, high), good.ptx, _report(good))
    monkeypatch.setattr(nvrtc, "compile_both", lambda *_: compiled)
    with pytest.raises(BuildFailed, match=says):
        machine_code(good.plan, f"{good.cuda}// {code}")


def test_build_refuses_wrapped_indices_and_kernels_without_wgmma(monkeypatch):
    good, other = subbyte.build(SMALL, CONFIG), subbyte.build("n8h6w6c32k32r3s3p1").cubin
    monkeypatch.setattr(nvrtc, "compile_both", lambda *_: (good.cubin, WRAPPED, _report(good)))
    for _ in range(2):  # compiled, and from the cache
        with pytest.raises(BuildFailed, match="index in too few bits"):
            machine_code(good.plan, good.cuda + "// wrapped")
    monkeypatch.setattr(nvrtc, "compile_both", lambda *_: (other, RIGHT, _report(good)))
    with pytest.raises(BuildFailed, match="holds no wgmma"):
        machine_code(good.plan, good.cuda + "// without wgmma")


def test_build_refuses_serialized_products(monkeypatch):
    """The compiler's words for a kernel whose products wait for each other (deep: such a kernel is compiled)."""
    good = subbyte.build(SMALL, CONFIG)
    said = "wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline"
    log = f"ptxas info : (C7510) Potential Performance Loss: {said} in the function 'conv_kernel'\n{_report(good)}"
    monkeypatch.setattr(nvrtc, "compile_both", lambda *_: (good.cubin, good.ptx, log))
    with pytest.raises(BuildFailed, match=r"serialized the wgmma instructions \(insufficient register resources"):
        machine_code(good.plan, f"{good.cuda}// serialized")


def _report(kernel) -> str:
    used = kernel.resources
    return f"Used {used.registers} registers, 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"


@pytest.mark.parametrize("data", [b"", b"no machine code" + bytes(64), b"\x7fELF\x02" + bytes(70)])
def test_what_is_no_cubin_is_refused(data):
    with pytest.raises(BuildFailed, match="no cubin"):
        faults.counts(data)
