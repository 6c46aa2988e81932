"""One wgmma at a time: CUDA text, operands and the sums by numpy; for the emulator and for a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subbyte.device.launch import Argument, Launch

SWIZZLES = {0: 0, 32: 3, 64: 2, 128: 1}
"""Bytes of the swizzle: value of the descriptor's two highest bits."""
SHARED_BYTES = 49152
RIGHT, LEFT = 1024, 36864
"""First bytes of B and A in shared memory."""
_THREAD = np.arange(128)
_ROW = _THREAD // 32 * 16 + _THREAD % 32 // 4
"""Row of a thread's first accumulator and of its first register of A (PTX ISA, figures of the wgmma fragments)."""
_PARAMETERS = ", ".join(f"unsigned int* __restrict__ {name}_ptr" for name in ("A", "C", "Out", "S"))


@dataclass(frozen=True)
class Wgmma:
    """One instruction. ``kinds`` is the end of its name, such as ``s8.s8``; ``adds`` 0 leaves the accumulators out.

    Where no swizzle says otherwise, B and A begin ``offset`` bytes behind their places, ``leading`` bytes lie between
    the halves of their rows and ``cores`` between eight rows and the next eight, which may overlap.
    """

    kinds: str
    n: int
    swizzle: int = 0
    a_in_shared: bool = False
    adds: int = 1
    offset: int = 0
    leading: tuple[int, int] = (128, 128)
    cores: tuple[int, int] = (256, 272)

    @property
    def opcode(self) -> str:
        """The PTX name."""
        return f"wgmma.mma_async.sync.aligned.m64n{self.n}k{256 if self.kinds[0] == 'b' else 32}.s32.{self.kinds}"

    @property
    def strides(self) -> tuple[int, int]:
        """Bytes from eight rows to the next eight, of B and of A."""
        return (8 * self.swizzle, 8 * self.swizzle) if self.swizzle else self.cores

    def text(self, opcode: str = "") -> str:
        """The kernel ``one_warpgroup``: copies ``S`` into shared memory, multiplies once, stores the accumulators."""
        sums = self.n // 2
        inputs = [f'"r"(a_ptr[{i}])' for i in range(4)]
        left = "{" + ", ".join(f"%{sums + i}" for i in range(4)) + "}"
        if self.a_in_shared:
            left, inputs = f"%{sums}", [f'"l"({self._descriptor(LEFT, 1)})']
        last = sums + len(inputs)
        values = ", ".join([*inputs, f'"l"({self._descriptor(RIGHT, 0)})', '"r"(adds)'])
        d = ", ".join(f"%{i}" for i in range(sums))
        ptx = f"{{ .reg .pred p; setp.ne.b32 p, %{last + 1}, 0; {opcode or self.opcode} {{{d}}}, {left}, %{last}, p; }}"
        outputs = ", ".join(f'"+r"(c_ptr[{i}])' for i in range(sums))
        return _TEXT.format(adds=self.adds, sums=sums, statement=f'asm volatile("{ptx}" : {outputs} : {values});')

    def _descriptor(self, start: int, which: int) -> str:
        high = SWIZZLES[self.swizzle] << 62 | self.strides[which] // 16 << 32 | self.leading[which] // 16 << 16
        return f"(((unsigned long long)((base + {start + self.offset}u) >> 4)) | {high}ull)"

    def operands(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The inputs of the kernel by name, and what it must store, uint32 [128, n / 2]."""
        rng = np.random.default_rng(seed)
        a, c = rng.integers(0, 2**32, (128, 4), np.uint32), rng.integers(0, 2**32, (128, self.n // 2), np.uint32)
        shared = rng.integers(0, 256, SHARED_BYTES, np.uint8)
        right = self._rows(shared, RIGHT, 0, self.n)
        left = self._rows(shared, LEFT, 1, 64) if self.a_in_shared else _left(a)
        i = np.arange(self.n // 2)
        rows, columns = _ROW[:, None] + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (_THREAD % 4)[:, None] + i % 2
        sums = _product(left, right, self.kinds)[rows, columns] + self.adds * c.astype(np.int64)
        return {"A": a, "C": c, "S": shared.view(np.uint32)}, sums.astype(np.uint32)

    def _rows(self, shared: np.ndarray, start: int, which: int, count: int) -> np.ndarray:
        """Rows uint8 [count, 32] of B or A as the PTX ISA draws their places in ``shared`` (bytes)."""
        rows = np.empty((count, 32), np.uint8)
        for row in range(count):
            for half in range(2):
                at = start + self.offset + row // 8 * self.strides[which]
                if self.swizzle == 0:  # core matrices of eight rows of 16 bytes
                    at += half * self.leading[which] + row % 8 * 16
                else:  # rows of the swizzle's width; 16-byte pieces exchanged by the row within the repeating pattern
                    at += row % 8 * self.swizzle + half * 16
                    at ^= at // 128 % (self.swizzle // 16) * 16
                rows[row, 16 * half : 16 * half + 16] = shared[at : at + 16]
        return rows

    def launch(self) -> Launch:
        """One block of one warpgroup."""
        arguments = (
            Argument("A", "uint32", (128, 4), "in"),
            Argument("C", "uint32", (128, self.n // 2), "in"),
            Argument("Out", "uint32", (128, self.n // 2), "out"),
            Argument("S", "uint32", (SHARED_BYTES // 4,), "in"),
        )
        return Launch("one_warpgroup", (1, 1, 1), (128, 1, 1), SHARED_BYTES, arguments)


def _left(a: np.ndarray) -> np.ndarray:
    """The matrix that the registers of A hold, uint8 [64, 32]."""
    matrix = np.zeros((64, 32), np.uint8)
    for register in range(4):
        for byte in range(4):
            column = 16 * (register // 2) + 4 * (_THREAD % 4) + byte
            matrix[_ROW + 8 * (register % 2), column] = a.view(np.uint8).reshape(128, 4, 4)[:, register, byte]
    return matrix


def _product(left: np.ndarray, right: np.ndarray, kinds: str) -> np.ndarray:
    if kinds.startswith("b1"):
        return np.unpackbits(left, axis=1).astype(np.int64) @ np.unpackbits(right, axis=1).astype(np.int64).T
    types = [np.int8 if kind[0] == "s" else np.uint8 for kind in kinds.split(".")]
    return left.view(types[0]).astype(np.int64) @ right.view(types[1]).astype(np.int64).T


_TEXT = f"""
extern "C" __global__ void __launch_bounds__(128) one_warpgroup({_PARAMETERS}) {{{{
  extern __shared__ __align__(1024) unsigned int shared_ptr[];
  int thread = ((int)threadIdx.x);
  unsigned int adds = {{adds}}u;
  unsigned int base = ((unsigned int)__cvta_generic_to_shared(&(shared_ptr[0])));
  alignas(16) unsigned int a_ptr[4];
  alignas(16) unsigned int c_ptr[{{sums}}];
  for (int i = thread; i < {SHARED_BYTES // 4}; i += 128) {{{{
    shared_ptr[i] = S_ptr[i];
  }}}}
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncthreads();
  for (int i = 0; i < 4; ++i) {{{{
    a_ptr[i] = A_ptr[((thread * 4) + i)];
  }}}}
  for (int i = 0; i < {{sums}}; ++i) {{{{
    c_ptr[i] = C_ptr[((thread * {{sums}}) + i)];
  }}}}
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
  {{statement}}
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
  for (int i = 0; i < {{sums}}; ++i) {{{{
    Out_ptr[((thread * {{sums}}) + i)] = c_ptr[i];
  }}}}
}}}}
"""
COLUMNS = (8, 16, 24, *range(32, 257, 16))
CASES = (
    *(Wgmma("s8.s8", n, 0, n % 32 == 0) for n in COLUMNS),
    *(
        Wgmma(kinds, 64, swizzle, a_in_shared)
        for kinds in ("s8.s8", "b1.b1.and.popc")
        for swizzle in SWIZZLES
        for a_in_shared in (False, True)
    ),
    *(Wgmma(kinds, 8, 32) for kinds in ("u8.s8", "s8.u8", "u8.u8")),
    *(  # rows of an image as they lie: any distances, also none, and any 16 bytes to begin with
        Wgmma("b1.b1.and.popc", n, 0, True, 1, offset, leading, cores)
        for n, offset, leading, cores in (
            (48, 16, (128, 1040), (256, 128)),
            (64, 48, (1024, 0), (128, 384)),
            (80, 112, (1152, 2560), (128, 16)),
            (256, 32, (4096, 128), (128, 512)),
        )
    ),
    Wgmma("s8.s8", 16, 128, True, adds=0),
    Wgmma("b1.b1.and.popc", 256),
)
"""Every width, every layout, every kind, A in registers and in shared memory."""
