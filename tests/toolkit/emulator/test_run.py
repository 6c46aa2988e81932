"""Buffers, launches, the compiler and its cache: what run_cuda accepts and how it refuses the rest."""

from __future__ import annotations

import functools
import hashlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from subbyte.cache import cache_folder
from subbyte.device.launch import Argument, Launch
from subbyte.emulator import require_clean, run, run_cuda
from subbyte.emulator.compiler import build_library, find_compiler, load_library
from subbyte.emulator.translate import translate
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency

DOUBLE = """
extern "C" __global__ void __launch_bounds__(48) double_kernel(uint* __restrict__ A_ptr, uint* __restrict__ Out_ptr) {
  int i = ((((int)blockIdx.x) * 48) + ((int)threadIdx.x));
  Out_ptr[i] = (A_ptr[i] + A_ptr[i]);
}
"""
LAUNCH = Launch(
    "double_kernel",
    (3, 1, 1),
    (48, 1, 1),
    0,
    (Argument("Out", "uint32", (144,), "out"), Argument("A", "uint32", (144,), "in")),
)


def _buffers() -> dict[str, np.ndarray]:
    return {"A": np.arange(144, dtype=np.uint32), "Out": np.zeros(144, np.uint32)}


@pytest.mark.parametrize("check", [True, False])
def test_partial_warps_and_argument_order_by_name(check: bool) -> None:
    buffers = _buffers()
    run_cuda(DOUBLE, LAUNCH, buffers, check=check)
    np.testing.assert_array_equal(buffers["Out"], 2 * buffers["A"])


def test_only_the_chosen_blocks_run() -> None:
    buffers = _buffers()
    done = require_clean(run_cuda(DOUBLE, LAUNCH, buffers, blocks=[1]))
    assert (done.blocks, done.unwritten) == (1, {"Out": 96})
    assert np.flatnonzero(buffers["Out"]).tolist() == list(range(48, 96))


def test_buffers_at_odd_addresses() -> None:
    space = np.zeros(4 * 144 + 4, np.uint8)
    out = space[4:].view(np.uint32) if space.ctypes.data % 16 == 0 else space[:-4].view(np.uint32)
    buffers = {**_buffers(), "Out": out}
    run_cuda(DOUBLE, LAUNCH, buffers)
    np.testing.assert_array_equal(out, 2 * buffers["A"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"A": np.zeros(143, np.uint32)}, r"'A' has 572 bytes.*576 bytes"),
        ({"A": np.zeros(288, np.uint32)[::2]}, "C-contiguous"),
        ({"A": None}, "no buffer for argument 'A'"),
    ],
)
def test_wrong_buffers_are_refused(changes: dict[str, np.ndarray | None], message: str) -> None:
    buffers = {name: array for name, array in (_buffers() | changes).items() if array is not None}
    with pytest.raises(InvalidInput, match=message):
        run_cuda(DOUBLE, LAUNCH, buffers)


def test_read_only_output_is_refused() -> None:
    buffers = _buffers()
    buffers["Out"].flags.writeable = False
    with pytest.raises(InvalidInput, match="writeable"):
        run_cuda(DOUBLE, LAUNCH, buffers)


def test_wrong_launch_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no kernel 'other'; kernels in it: double_kernel"):
        run_cuda(DOUBLE, Launch("other", LAUNCH.grid, LAUNCH.block, 0, LAUNCH.arguments), _buffers())
    with pytest.raises(InvalidInput, match=r"block 3 does not exist.*0 to 2"):
        run_cuda(DOUBLE, LAUNCH, _buffers(), blocks=[3])
    with pytest.raises(InvalidInput, match="'A_ptr' is no argument"):
        run_cuda(DOUBLE, Launch("double_kernel", LAUNCH.grid, LAUNCH.block, 0, LAUNCH.arguments[:1]), _buffers())
    with pytest.raises(InvalidInput, match="1048576 shared bytes"):
        run_cuda(DOUBLE, Launch("double_kernel", LAUNCH.grid, LAUNCH.block, 1 << 20, LAUNCH.arguments), _buffers())


def test_text_that_is_not_cuda_is_refused() -> None:
    with pytest.raises(BuildFailed, match="error"):
        run_cuda(DOUBLE.replace("A_ptr[i] +", "A_ptr[i] 5 +"), LAUNCH, _buffers())


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingDependency, match=r"apt install g\+\+"):
        find_compiler()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingDependency, match="no-such-compiler"):
        find_compiler()


@pytest.mark.deep
def test_portable_fibers_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    portable = functools.partial(load_library, extra_flags=("-DEMULATOR_UCONTEXT", "-O0"))
    monkeypatch.setattr(run, "load_library", portable)
    text, buffers = DOUBLE.replace("  Out_ptr", "  __syncthreads();\n  Out_ptr"), _buffers()
    require_clean(run_cuda(text, LAUNCH, buffers))
    np.testing.assert_array_equal(buffers["Out"], 2 * buffers["A"])


def test_cache_is_shared_by_processes_and_left_tidy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_library(translate(DOUBLE, "double_kernel"), True)
    (tmp_path / "emulator").mkdir()
    for runtime in cache_folder("emulator").glob("runtime_*.o"):  # the same for every kernel, and seconds to compile
        shutil.copy(runtime, tmp_path / "emulator")
    monkeypatch.setenv("SUBBYTE_CACHE", str(tmp_path))
    code = (
        "import sys, hashlib; from subbyte.emulator.compiler import build_library; "
        "from subbyte.emulator.translate import translate; "
        "print(hashlib.sha256(build_library(translate(sys.stdin.read(), 'double_kernel'), True)).hexdigest())"
    )
    command = [sys.executable, "-c", code]

    def build(_: int) -> str:
        return subprocess.run(command, input=DOUBLE, capture_output=True, text=True, check=True).stdout.strip()

    with ThreadPoolExecutor(2) as pool:
        digests = set(pool.map(build, range(2)))
    assert digests == {hashlib.sha256(build_library(translate(DOUBLE, "double_kernel"), True)).hexdigest()}
    assert {path.suffix for path in (tmp_path / "emulator").iterdir()} <= {".so", ".o", ".lock"}
