"""Building without a GPU: text, PTX, machine code and SASS of every architecture; the cache; broken requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from subbyte import cache
from subbyte.device.arch import ARCHS
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency, SubbyteError, Unsupported
from subbyte.families import space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.kernel import Kernel, build, nvrtc
from subbyte.kernel.disassemble import instruction_counts
from subbyte.kernel.resources import read_resources
from subbyte.workload import ConvWorkload

WORKLOAD = ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1)
CONFIG = MmaConfig(2, 1, 4, 4, chunk=2)
CODES = (
    ("sm_75", "s4.m8n8k32", "IMMA.8832.S4.S4"),
    ("sm_80", "s4.m16n8k64", "IMMA.16864.S4.S4"),
    ("sm_86", "auto", "IMMA.16832.S4.S4"),
    ("sm_90a", "auto", "IMMA.16832.S8.S8"),
)


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    """Skips where there is no compiler; loading its library takes too long for who only collects."""
    try:
        nvrtc.version()
    except MissingDependency:
        pytest.skip("the CUDA compiler (extra cuda12 or cuda13) is not installed")


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---- what a build gives ------------------------------------------------------------


@pytest.mark.sample("sm_90a")
@pytest.mark.parametrize(("arch", "atom", "instruction"), CODES)
def test_text_ptx_cubin_and_sass(arch: str, atom: str, instruction: str) -> None:
    kernel = build(WORKLOAD, CONFIG.with_values({"atom": atom}), arch)
    planned = kernel.plan
    assert "__global__" in kernel.cuda
    assert "prim_func" in kernel.tir
    assert planned.atom.ptx in kernel.cuda
    assert planned.atom.ptx in kernel.ptx
    assert f".target {arch}" in kernel.ptx
    assert kernel.cubin[:4] == b"\x7fELF"
    found = kernel.instructions
    assert any(name.startswith(instruction) for name in found), [name for name in found if "MMA" in name]
    # As many as the plan unrolls: every tap, pair of pixels and column tile of one turn of the channel loop.
    count = sum(number for name, number in found.items() if name.startswith("IMMA"))
    turn = planned.taps_staged * planned.pairs * planned.config.warp_col_tiles
    turns = planned.config.chunk // planned.atom.blocks
    assert count in {turn * n for n in range(1, turns + 1)}
    assert not any(name.startswith(("LDL", "STL", "CALL")) for name in found)
    assert kernel.resources.local_bytes == 0
    assert 32 < kernel.resources.registers <= 255
    assert any(name.startswith("LDGSTS") for name in found) == ARCHS[arch].async_copy
    assert any(name.startswith("SHFL.BFLY") for name in found)


@pytest.mark.deep
def test_emulated_int4_is_visible_in_the_machine_code() -> None:
    """The Hopper has no int4 matrix instruction: the machine code of the s4 atom has none either."""
    kernel = build(ConvWorkload(8, 7, 7, 32, 32, 1, 1), MmaConfig(1, 1, 2, 1, atom="s4.m16n8k32"), "sm_90a")
    assert not any(name.startswith("IMMA.16832.S4") for name in kernel.instructions)
    assert not ARCHS["sm_90a"].native_s4


@pytest.mark.sample("False")
@pytest.mark.parametrize(
    ("switches", "has_shuffle"), [({"register_packing": False}, False), ({"duplicate_aware": "none"}, True)]
)
def test_switches_are_visible_in_the_machine_code(switches: dict[str, Any], has_shuffle: bool) -> None:
    kernel = build(WORKLOAD, CONFIG.with_values(switches), "sm_80")
    assert any(name.startswith("SHFL.BFLY") for name in kernel.instructions) == has_shuffle
    assert ("cp.async.ca" in kernel.cuda) == (kernel.config.duplicate_aware == "none")


@pytest.mark.deep
def test_full_sharing_loads_fewer_fragments_in_the_machine_code() -> None:
    """The compiler must not undo the switch: 4-byte loads are those of the genuine fragments, or of every tap."""
    loads = {}
    for way in ("shared", "full"):
        kernel = build(WORKLOAD, MmaConfig(1, 1, 4, 4, duplicate_aware=way), "sm_80")
        body = kernel.sass[: kernel.sass.rindex("IMMA")]  # weights are loaded with 16 bytes, so they do not count
        loads[way] = sum(n for name, n in instruction_counts(body).items() if name in ("LDS", "LDS.U"))
        fragments, every = kernel.plan.fragments, kernel.plan.taps_staged * kernel.config.warp_row_tiles
    assert fragments <= loads["full"] < 1.5 * fragments  # some parameters are loaded before the last multiplication
    assert loads["shared"] >= every == 36


def test_architectures_with_the_same_instructions_have_the_same_text() -> None:
    texts = {arch: Kernel(plan(WORKLOAD, CONFIG, arch)).cuda for arch in ("sm_80", "sm_86", "sm_89", "sm_75", "sm_90a")}
    assert texts["sm_80"] == texts["sm_86"] == texts["sm_89"]
    assert len(set(texts.values())) == 3


def test_raw_output_has_no_parameters() -> None:
    kernel = build(WORKLOAD, CONFIG, "sm_80", output="int32")
    assert "Prm" not in kernel.cuda
    assert [argument.name for argument in kernel.launch.arguments] == ["A", "Out", "Wt"]
    assert kernel.argument("Out").dtype == "int32"


def test_default_configuration_is_a_valid_one() -> None:
    kernel = build("n8h7w7c32k32r3s3p1", arch="sm_86")
    assert space(kernel.workload, "sm_86").check(kernel.config) is None
    assert kernel.resources.local_bytes == 0


def test_text_is_reproducible_and_free_of_this_machine(own_cache: Path) -> None:
    kernel = Kernel(plan(WORKLOAD, CONFIG, "sm_80"))
    first = kernel.cuda
    cache.clear_cache()
    assert Kernel(kernel.plan).cuda == first
    assert str(own_cache.parent) not in first
    assert os.getcwd() not in first
    assert "#include <cuda" not in first


def test_notebook_view_and_repr() -> None:
    kernel = build(WORKLOAD, CONFIG, "sm_80")
    shown = kernel._repr_html_()
    assert f"{kernel.resources.registers} per thread, 0 bytes of local memory" in shown
    assert "s4.m16n8k32" in shown
    assert kernel.config.key in repr(kernel)


def test_resources_against_the_occupancy_of_known_cases() -> None:
    report = "Used {} registers\n0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
    cases = [  # what decides, in this order: shared memory, registers, shared memory, threads, the limit of blocks
        ("sm_80", 128, 64, 20_000, 7), ("sm_80", 255, 64, 1_000, 4), ("sm_75", 64, 256, 30_000, 2),
        ("sm_86", 32, 1024, 1_000, 1), ("sm_90a", 40, 32, 0, 32), ("sm_86", 40, 32, 0, 16), ("sm_89", 40, 32, 0, 24),
        # 176 registers: 11 warps' worth in all, but two in each of the four register files.
        ("sm_80", 176, 32, 0, 8),
    ]  # fmt: skip
    for arch, registers, threads, shared, blocks in cases:
        found = read_resources(report.format(registers), ARCHS[arch], threads, shared)
        assert (found.blocks_per_sm, found.local_bytes) == (blocks, 0)
        assert found.occupancy == blocks * threads / ARCHS[arch].threads_per_sm
    spilled = read_resources(
        "Used 255 registers\n16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads", ARCHS["sm_80"], 32, 0
    )
    assert spilled.local_bytes == 28
    with pytest.raises(BuildFailed, match="unknown form"):
        read_resources("nothing of use", ARCHS["sm_80"], 32, 0)


# ---- cache ------------------------------------------------------------


CHILD = """
import json, sys, time
from subbyte.kernel import build
from subbyte.families import MmaConfig
from subbyte.workload import ConvWorkload
started = time.perf_counter()
kernel = build(ConvWorkload(8, 7, 7, 32, 32, 3, 3, 1), MmaConfig(1, 1, 2, 4), "sm_80")
print(json.dumps([time.perf_counter() - started, "tvm" in sys.modules, len(kernel.cubin), kernel.resources.registers]))
"""


def _child(code: str = CHILD, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def _answer(child: subprocess.Popen[str]) -> list[Any]:
    import json

    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    answer: list[Any] = json.loads(out)
    return answer


def test_parallel_builds_then_one_from_the_cache_without_tvm(own_cache: Path) -> None:
    """Two processes build the same kernel at a time; a third finds it and does not even import TVM."""
    child = _child()
    kernel = build(ConvWorkload(8, 7, 7, 32, 32, 3, 3, 1), MmaConfig(1, 1, 2, 4), "sm_80")
    mine = [len(kernel.cubin), kernel.resources.registers]
    assert _answer(child)[2:] == mine
    files = {path.suffix for path in (own_cache / "kernels").iterdir()}
    assert files == {".cu", ".cubin", ".log"}
    assert len(list((own_cache / "kernels").iterdir())) == 3
    seconds, tvm, *rest = _answer(_child())
    assert (tvm, rest) == (False, mine)
    assert seconds < 3


def test_cleared_cache_is_filled_again(own_cache: Path) -> None:
    config = MmaConfig(1, 1, 1, 1)
    first = build("n8h4w4c32k32r1s1p0", config, "sm_80").cubin
    assert cache.clear_cache() > 0
    assert not own_cache.exists()
    assert build("n8h4w4c32k32r1s1p0", config, "sm_80").cubin == first
    assert (own_cache / "kernels").is_dir()


def test_cubin_in_the_cache_is_the_one_given(own_cache: Path) -> None:
    build("n8h4w4c32k32r1s1p0", MmaConfig(1, 1, 1, 1), "sm_80")
    (path,) = own_cache.rglob("*.cubin")
    cache.write_cached(path, b"from the cache")
    assert build("n8h4w4c32k32r1s1p0", MmaConfig(1, 1, 1, 1), "sm_80").cubin == b"from the cache"
    path.write_bytes(path.read_bytes()[:-4])  # damaged: built again
    assert build("n8h4w4c32k32r1s1p0", MmaConfig(1, 1, 1, 1), "sm_80").cubin.startswith(b"\x7fELF")


def test_unwritable_cache_costs_the_entry_not_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is there, but no file can be written in it (permissions do not stop root, so the call does)."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))

    def refuse(*_args: Any, **_options: Any) -> None:
        raise PermissionError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", refuse)
        assert build("n8h4w4c32k32r1s1p0", MmaConfig(1, 1, 1, 1), "sm_80").cubin[:4] == b"\x7fELF"
    assert not list((tmp_path / "cache").rglob("*.cubin"))


def test_cache_folder_that_cannot_be_made_costs_the_entry_not_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    assert build("n8h4w4c32k32r1s1p0", MmaConfig(1, 1, 1, 1), "sm_80").cubin[:4] == b"\x7fELF"


# ---- broken requests ------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"workload": "resnet50.stage9@8"}, InvalidInput, "did you mean"),
        ({"workload": "n8h7w7"}, InvalidInput, "n8h7w7"),
        ({"arch": "sm_91"}, InvalidInput, "unknown architecture 'sm_91': did you mean"),
        ({"clip": (-9, 7)}, InvalidInput, "expected -8 <= lo <= hi <= 7"),
        ({"clip": (3, 2)}, InvalidInput, "expected -8 <= lo <= hi <= 7"),
        ({"output": "int8"}, InvalidInput, "output='int8': did you mean"),
        ({"requant": "fix"}, InvalidInput, "requant='fix': did you mean fixed"),
        ({"workload": "alexnet.conv1@1"}, Unsupported, "kernel size 11x11"),
        ({"workload": "alexnet.conv1@1", "config": None, "arch": "sm_80"}, Unsupported, "kernel size 11x11"),
        ({"config": MmaConfig(warp_row_tiles=16, warp_col_tiles=16)}, Unsupported, "cannot be built: "),
        ({"config": MmaConfig(chunk=8)}, Unsupported, "chunk 8 does not divide 2 blocks"),
        ({"arch": "sm_75", "config": MmaConfig(atom="s8.m16n8k32")}, Unsupported, "needs sm_80"),
    ],
)
def test_refused_with_the_reason(request_: dict[str, Any], error: type[SubbyteError], message: str) -> None:
    request = {"workload": WORKLOAD, "config": CONFIG, **request_}
    with pytest.raises(error) as refused:
        build(**request)
    assert message in str(refused.value)
    assert refused.value.exit_code == 2


def test_text_that_does_not_compile_is_refused_with_the_compilers_words() -> None:
    with pytest.raises(BuildFailed, match=r'NVRTC refused the kernel for sm_80: .*identifier "missing" is undefined'):
        nvrtc.compile_cubin('extern "C" __global__ void k(int* p) { *p = missing; }', "sm_80")


def test_an_architecture_the_compiler_does_not_know_is_refused_in_its_words() -> None:
    for compiled in (nvrtc.compile_cubin, nvrtc.compile_ptx):
        with pytest.raises(BuildFailed, match=r"NVRTC refused the kernel for sm_00: .*--gpu-architecture"):
            compiled('extern "C" __global__ void k() {}', "sm_00")
    with pytest.raises(BuildFailed, match=r'NVRTC refused the kernel for sm_90a: (.|\n)*identifier "y" is undefined'):
        nvrtc.compile_ptx('extern "C" __global__ void k(int* p) { *p = y; }', "sm_90a")


def test_ptx_needs_no_driver_and_is_that_of_the_machine_code() -> None:
    text = 'extern "C" __global__ void k(int* p) { *p = 5; }'
    cubin, ptx, report = nvrtc.compile_both(text, "sm_90a")
    assert cubin.startswith(b"\x7fELF")
    assert ".target sm_90a" in ptx
    assert ".entry k" in ptx
    assert "\0" not in ptx + report
    assert report.startswith("ptxas info")
    assert nvrtc.compile_ptx(text, "sm_90a") == ptx


@pytest.mark.parametrize("missing", [("cuda.bindings", "cuda.bindings.nvrtc"), ("cuda.core",)])
def test_without_the_compiler_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    nvrtc._library.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"pip install 'subbyte\[cuda13\]'") as refused:
            nvrtc.compile_cubin("", "sm_80")
        assert refused.value.exit_code == 3
    finally:
        nvrtc._library.cache_clear()
