"""wgmma against numpy: every width, both kinds, A in registers and in shared memory, every layout of a descriptor."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.emulator import require_clean, run_cuda
from subbyte.emulator.ptx.wgmma import COLUMNS
from subbyte.errors import Unsupported
from subbyte.schedule.launch import Argument, Launch

SWIZZLES = {0: 0, 32: 3, 64: 2, 128: 1}
"""Bytes of the swizzle: value of the descriptor's two highest bits."""
THREAD = np.arange(128)
ROW = THREAD // 32 * 16 + THREAD % 32 // 4
"""Row of a thread's first accumulator and of its first register of A (PTX ISA, figures of the wgmma fragments)."""


def _descriptor(start: str, swizzle: int, leading: int, stride: int) -> str:
    high = SWIZZLES[swizzle] << 62 | stride // 16 << 32 | leading // 16 << 16
    return f"(((unsigned long long)(({start}) >> 4)) | {high}ull)"


def _kernel(opcode: str, n: int, a_in_shared: bool, adds: int, a: str, b: str, body: str = "") -> str:
    """One warpgroup: copies ``S`` into shared memory, multiplies once, stores its accumulators."""
    sums = n // 2
    d = ", ".join(f"%{i}" for i in range(sums))
    left = f"%{sums}" if a_in_shared else "{" + ", ".join(f"%{sums + i}" for i in range(4)) + "}"
    inputs = [f'"l"({a})'] if a_in_shared else [f'"r"(a_ptr[{i}])' for i in range(4)]
    values = ", ".join([*inputs, f'"l"({b})', '"r"(adds)'])
    last = sums + len(inputs)
    outputs = ", ".join(f'"+r"(c_ptr[{i}])' for i in range(sums))
    ptx = f"{{ .reg .pred p; setp.ne.b32 p, %{last + 1}, 0; {opcode} {{{d}}}, {left}, %{last}, p; }}"
    return f"""
extern "C" __global__ void __launch_bounds__(128) one_warpgroup(uint* A_ptr, uint* C_ptr, uint* Out_ptr, uint* S_ptr) {{
  extern __shared__ __align__(1024) uint shared_ptr[];
  int thread = ((int)threadIdx.x);
  uint adds = {adds}u;
  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));
  alignas(16) uint a_ptr[4];
  alignas(16) uint c_ptr[{sums}];
  for (int i = thread; i < 12288; i += 128) {{
    shared_ptr[i] = S_ptr[i];
  }}
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncthreads();
  for (int i = 0; i < 4; ++i) {{
    a_ptr[i] = A_ptr[((thread * 4) + i)];
  }}
  for (int i = 0; i < {sums}; ++i) {{
    c_ptr[i] = C_ptr[((thread * {sums}) + i)];
  }}
{body}
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
  asm volatile("{ptx}" : {outputs} : {values});
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
  for (int i = 0; i < {sums}; ++i) {{
    Out_ptr[((thread * {sums}) + i)] = c_ptr[i];
  }}
}}
"""


def _run(text: str, n: int, a: np.ndarray, c: np.ndarray, shared: np.ndarray, check: bool = True) -> np.ndarray:
    out = np.zeros((128, n // 2), np.uint32)
    buffers = {"A": a, "C": c, "Out": out, "S": shared}
    roles = {"A": "in", "C": "in", "Out": "out", "S": "in"}
    arguments = tuple(Argument(name, "uint32", array.shape, roles[name]) for name, array in buffers.items())
    launch = Launch("one_warpgroup", (1, 1, 1), (128, 1, 1), 49152, arguments)
    run = run_cuda(text, launch, buffers, check=check, max_steps=10_000)
    if check:
        require_clean(run)
    return out


def _place(matrix: np.ndarray, shared: np.ndarray, start: int, swizzle: int, leading: int, stride: int) -> None:
    """Put the rows of ``matrix`` (uint8 [rows, 32]) into ``shared`` (bytes) as the PTX ISA draws the layouts."""
    for row, line in enumerate(matrix):
        for half in range(2):
            if swizzle == 0:  # core matrices of eight rows of 16 bytes
                at = start + row // 8 * stride + half * leading + row % 8 * 16
            else:  # rows of the swizzle's width; 16-byte pieces exchanged by the row within the repeating pattern
                at = start + row // 8 * stride + row % 8 * swizzle + half * 16
                at ^= at // 128 % (swizzle // 16) * 16
            shared[at : at + 16] = line[16 * half : 16 * half + 16]


def _left(a: np.ndarray) -> np.ndarray:
    """The matrix that the registers of A hold, uint8 [64, 32]."""
    matrix = np.zeros((64, 32), np.uint8)
    for register in range(4):
        for byte in range(4):
            column = 16 * (register // 2) + 4 * (THREAD % 4) + byte
            matrix[ROW + 8 * (register % 2), column] = a.view(np.uint8).reshape(128, 4, 4)[:, register, byte]
    return matrix


def _product(left: np.ndarray, right: np.ndarray, kinds: str) -> np.ndarray:
    if kinds.startswith("b1"):
        return np.unpackbits(left, axis=1).astype(np.int64) @ np.unpackbits(right, axis=1).astype(np.int64).T
    a, b = (
        m.view(np.int8 if kind[0] == "s" else np.uint8)
        for m, kind in zip((left, right), kinds.split("."), strict=False)
    )
    return a.astype(np.int64) @ b.astype(np.int64).T


def _check(
    kinds: str, n: int, swizzle: int, a_in_shared: bool, adds: int = 1, seed: int = 0, check: bool = True
) -> None:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 2**32, (128, 4), np.uint32), rng.integers(0, 2**32, (128, n // 2), np.uint32)
    right, left = rng.integers(0, 256, (n, 32), np.uint8), _left(a)
    leading, stride, a_stride = 128, (256 if swizzle == 0 else 8 * swizzle), (272 if swizzle == 0 else 8 * swizzle)
    shared = rng.integers(0, 256, 49152, np.uint8)
    _place(right, shared, 1024, swizzle, leading, stride)
    _place(left, shared, 36864, swizzle, leading, a_stride)
    k = 256 if kinds.startswith("b1") else 32
    text = _kernel(
        f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.s32.{kinds}", n, a_in_shared, adds,
        _descriptor("base + 36864u", swizzle, leading, a_stride), _descriptor("base + 1024u", swizzle, leading, stride),
    )  # fmt: skip
    out = _run(text, n, a, c, shared.view(np.uint32), check)
    i = np.arange(n // 2)
    product = _product(left, right, kinds)[
        ROW[:, None] + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (THREAD % 4)[:, None] + i % 2
    ]
    np.testing.assert_array_equal(out, (product + adds * c.astype(np.int64)).astype(np.uint32))


@pytest.mark.parametrize("n", COLUMNS)
def test_every_width_of_s8(n: int) -> None:
    _check("s8.s8", n, 0, a_in_shared=n % 32 == 0, seed=n)


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("a_in_shared", [False, True])
@pytest.mark.parametrize("kinds", ["s8.s8", "b1.b1.and.popc"])
def test_every_layout(kinds: str, swizzle: int, a_in_shared: bool) -> None:
    _check(kinds, 64, swizzle, a_in_shared)


@pytest.mark.parametrize("kinds", ["u8.s8", "s8.u8", "u8.u8"])
def test_unsigned_operands(kinds: str) -> None:
    _check(kinds, 8, 32, a_in_shared=False)


@pytest.mark.parametrize("check", [True, False])
def test_without_adding(check: bool) -> None:
    _check("s8.s8", 16, 128, a_in_shared=True, adds=0, check=check)
    _check("b1.b1.and.popc", 256, 0, a_in_shared=False, adds=1, check=check)


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8", "does not exist"),
        ("wgmma.mma_async.sync.aligned.m64n16k64.s32.s8.s8", "does not exist"),
        ("wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1", "does not exist"),
        ("wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.xor.popc", r"xor\.popc"),
        ("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", r"f32\.f16\.f16"),
    ],
)
def test_other_instructions_are_refused_by_name(opcode: str, message: str) -> None:
    zeros = np.zeros((128, 8), np.uint32)
    with pytest.raises(Unsupported, match=message):
        _run(_kernel(opcode, 16, False, 1, "0", "0"), 16, zeros[:, :4].copy(), zeros, np.zeros(12288, np.uint32))


def test_wrong_number_of_accumulators_is_refused() -> None:
    zeros = np.zeros((128, 8), np.uint32)
    text = _kernel("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8", 16, False, 1, "0", "0")
    with pytest.raises(Unsupported, match="takes 16 accumulators and 4 registers of A; got 8 and 4"):
        _run(text, 16, zeros[:, :4].copy(), zeros, np.zeros(12288, np.uint32))
