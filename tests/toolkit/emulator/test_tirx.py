"""Kernels that TVM TIRx generates, run as they are."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import require_clean, run_cuda

ROWS = 4


def _requantize(asynchronous: bool) -> object:
    """A kernel that stages a row of words in shared memory and scales each word with 64-bit arithmetic."""

    from tvm.script import tirx as T  # seconds: not while tests are collected

    @T.prim_func(check_well_formed=False)
    def scale(
        A: T.Buffer((ROWS, 256), "uint32"),
        Prm: T.Buffer((2, 256), "int32"),
        Out: T.Buffer((ROWS, 256), "int32"),
    ):
        T.device_entry()
        row = T.cta_id([ROWS])
        tid = T.thread_id([64])
        staged = T.alloc_buffer((256,), "uint32", scope="shared.dyn", align=128)
        turned = T.alloc_buffer((256,), "uint32", scope="shared")
        wide = T.alloc_local((4,), "int64")
        if asynchronous:
            T.ptx["cp.async.cg.shared.global"](staged.ptr_to([tid * 4]), A.ptr_to([row, tid * 4]), 16)
            T.ptx["cp.async.commit_group"]()
            T.ptx["cp.async.wait_group"](0)
        else:
            for v in T.vectorized(4):
                staged[tid * 4 + v] = A[row, tid * 4 + v]
        T.cuda.cta_sync()
        for i in T.serial(4):
            turned[tid * 4 + i] = staged[i * 64 + (tid + 33) % 64]
        T.cuda.warp_sync()
        for i in T.unroll(4):
            wide[i] = T.cast(T.reinterpret("int32", turned[tid * 4 + i]), "int64") * T.cast(
                Prm[0, tid * 4 + i], "int64"
            )
            wide[i] = T.max(T.min(wide[i] >> T.cast(Prm[1, tid * 4 + i], "int64"), T.int64(99)), T.int64(-99))
        for v in T.vectorized(4):
            Out[row, tid * 4 + v] = T.cast(wide[v], "int32")

    return scale


@pytest.mark.sample(2)
@pytest.mark.parametrize(("arch", "asynchronous"), [("sm_75", False), ("sm_80", True)])
@pytest.mark.parametrize("check", [True, False])
def test_generated_kernel_is_exact(arch: str, asynchronous: bool, check: bool) -> None:
    import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    module = tvm.tirx.build(tvm.IRModule({"main": _requantize(asynchronous)}), target=target, pipeline="tirx")
    text = module.imports[0].inspect_source()
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2**32, (ROWS, 256), np.uint32)
    prm = np.stack([rng.integers(-(2**31), 2**31, 256), rng.integers(50, 60, 256)]).astype(np.int32)
    out = np.full((ROWS, 256), 7777, np.int32)
    arguments = (
        Argument("A", "uint32", a.shape, "in"),
        Argument("Prm", "int32", prm.shape, "in"),
        Argument("Out", "int32", out.shape, "out"),
    )
    run = run_cuda(
        text,
        Launch("scale_kernel", (ROWS, 1, 1), (64, 1, 1), 1024, arguments),
        {"A": a, "Prm": prm, "Out": out},
        check=check,
    )
    if check:
        require_clean(run)
    turned = a.reshape(ROWS, 4, 64)[:, :, (np.arange(64) + 33) % 64].transpose(0, 2, 1).reshape(ROWS, 256)
    wide = (turned.view(np.int32).astype(np.int64) * prm[0]) >> prm[1]
    np.testing.assert_array_equal(out, np.clip(wide, -99, 99))
