"""The 2:4 instructions against numpy: a dense matrix is handed to the threads by the maps of the specification."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import require_clean, run_cuda
from subbyte.emulator.run import EmulatorRun
from subbyte.errors import Unsupported

KEPT = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
"""Places of two of four neighbours."""
WARPGROUP = "wgmma.mma_async.sp.sync.aligned.m64n{n}k64.s32.s8.s8"
WARP = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"


class Case:
    """A 2:4 matrix A [rows, 64] in the registers of its threads, and B [n, 64]; full-range bytes, every pair."""

    def __init__(self, rows: int, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.n = n
        self.pairs = np.array(KEPT)[rng.integers(0, 6, (rows, 16))]
        kept = rng.integers(-128, 128, (rows, 16, 2)).astype(np.int8)
        self.a = np.zeros((rows, 16, 4), np.int8)
        for row in range(rows):
            for group in range(16):
                self.a[row, group, self.pairs[row, group]] = kept[row, group]
        self.b = rng.integers(-128, 128, (n, 64)).astype(np.int8)
        self.c = rng.integers(-(1 << 20), 1 << 20, (rows, n)).astype(np.int64)
        self.words = np.zeros((2 * rows, 5), np.uint32)
        for thread in range(2 * rows):
            self.words[thread] = self._of_thread(thread, kept)

    def _of_thread(self, thread: int, kept: np.ndarray) -> np.ndarray:
        """Four registers of kept bytes and a word of metadata: sparse.md, section 6."""
        w, g, q = thread // 32, thread % 32 // 4, thread % 4
        registers = []
        for i in range(4):
            first = (8 * q + 32 * (i // 2)) // 4
            registers.append(kept[16 * w + g + 8 * (i % 2), first : first + 2].reshape(4).view(np.uint32)[0])
        row, first = 16 * w + g + 8 * (q % 2), 8 * (q // 2)
        pairs = self.pairs[row, first : first + 8]
        return np.array([*registers, sum(int(p[0] | p[1] << 2) << 4 * i for i, p in enumerate(pairs))], np.uint32)

    @property
    def product(self) -> np.ndarray:
        """What must come out, int64 [rows, n]."""
        return self.a.reshape(len(self.a), 64).astype(np.int64) @ self.b.T.astype(np.int64) + self.c


def _warpgroup(case: Case, piece: int, core: int, selector: str = "0") -> tuple[np.ndarray, EmulatorRun]:
    """One wgmma; ``piece`` bytes between the four pieces of a row, ``core`` between eight rows and the next."""
    sums = case.n // 2
    shared = np.zeros(32768, np.int8)
    for row in range(case.n):
        for p in range(4):
            at = row // 8 * core + row % 8 * 16 + p * piece
            shared[at : at + 16] = case.b[row, 16 * p : 16 * p + 16]
    thread, i = np.arange(128)[:, None], np.arange(sums)
    rows, columns = thread // 32 * 16 + thread % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (thread % 4) + i % 2
    d = ", ".join(f"%{k}" for k in range(sums))
    a = ", ".join(f"%{sums + k}" for k in range(4))
    call = f"{WARPGROUP.format(n=case.n)} {{{d}}}, {{{a}}}, %{sums + 4}, %{sums + 5}, {selector}, p;"
    outputs = ", ".join(f'"+r"(c_ptr[{k}])' for k in range(sums))
    inputs = [f'"r"(a_ptr[{k}])' for k in range(4)] + ['"l"(descriptor)', '"r"(a_ptr[4])', '"r"(adds)']
    asm = (
        f'asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{sums + 6}, 0; {call} }}" : {outputs} : {", ".join(inputs)});'
    )
    high = core // 16 << 32 | piece // 16 << 16
    text = _TEXT.format(sums=sums, asm=asm, high=high, threads=128)
    out = np.zeros((128, sums), np.uint32)
    arrays = {"A": case.words, "C": case.c[rows, columns].astype(np.uint32), "Out": out, "S": shared.view(np.uint32)}
    run = run_cuda(text, _launch(128, sums, 32768), arrays, max_steps=20_000)
    return out.view(np.int32) - case.product[rows, columns], run


def _launch(threads: int, sums: int, shared: int) -> Launch:
    arguments = (
        Argument("A", "uint32", (threads, 5), "in"), Argument("C", "uint32", (threads, sums), "in"),
        Argument("Out", "uint32", (threads, sums), "out"), Argument("S", "uint32", (shared // 4,), "in"),
    )  # fmt: skip
    return Launch("one", (1, 1, 1), (threads, 1, 1), shared, arguments)


def _warp(case: Case, selector: str = "0x0") -> tuple[np.ndarray, EmulatorRun]:
    lane = np.arange(32)
    b = np.stack([case.b[lane // 4].reshape(32, 4, 4, 4)[lane, p, lane % 4] for p in range(4)], 1)
    i = np.arange(4)
    rows, columns = lane[:, None] // 4 + 8 * (i // 2), 2 * (lane[:, None] % 4) + i % 2
    left = ", ".join(f"%{k}" for k in (4, 5, 6, 7))
    right = ", ".join(f"%{k}" for k in (8, 9, 10, 11))
    call = f"{WARP} {{%0, %1, %2, %3}}, {{{left}}}, {{{right}}}, {{%0, %1, %2, %3}}, %12, {selector};"
    outputs = ", ".join(f'"+r"(c_ptr[{k}])' for k in range(4))
    inputs = ", ".join([*(f'"r"(a_ptr[{k}])' for k in range(4)), *(f'"r"(S_ptr[thread * 4 + {k}])' for k in range(4)),
                        '"r"(a_ptr[4])'])  # fmt: skip
    text = _TEXT.format(sums=4, asm=f'asm volatile("{call}" : {outputs} : {inputs});', high=0, threads=32)
    text = text.replace("wgmma.fence.sync.aligned", "").replace("wgmma.commit_group.sync.aligned", "")
    text = text.replace("wgmma.wait_group.sync.aligned 0", "")
    out = np.zeros((32, 4), np.uint32)
    arrays = {"A": case.words, "C": case.c[rows, columns].astype(np.uint32), "Out": out,
              "S": np.ascontiguousarray(b).view(np.uint32).reshape(-1)}  # fmt: skip
    run = run_cuda(text, _launch(32, 4, 512), arrays, max_steps=20_000)
    return out.view(np.int32) - case.product[rows, columns], run


@pytest.mark.sample("8-128-512")
@pytest.mark.parametrize(
    ("n", "piece", "core"), [(8, 128, 512), (24, 16, 64 * 16 + 16), (64, 4144, 128), (224, 128, 144)]
)
def test_a_warpgroup_multiplies_what_the_metadata_says(n: int, piece: int, core: int) -> None:
    difference, run = _warpgroup(_laid(Case(64, n, n), piece, core), piece, core)
    require_clean(run)
    assert not difference.any()


def _laid(case: Case, piece: int, core: int) -> Case:
    """Where pieces overlap in memory, B is what is read there."""
    memory = np.zeros(65536, np.int8)
    places = [(r, p, r // 8 * core + r % 8 * 16 + p * piece) for r in range(case.n) for p in range(4)]
    for row, p, at in places:
        memory[at : at + 16] = case.b[row, 16 * p : 16 * p + 16]
    for row, p, at in places:
        case.b[row, 16 * p : 16 * p + 16] = memory[at : at + 16]
    return case


def test_a_warp_multiplies_what_the_metadata_says() -> None:
    difference, run = _warp(Case(16, 8))
    require_clean(run)
    assert not difference.any()


@pytest.mark.parametrize("pair", [0b0001, 0b0100 >> 2 | 0b0101, 0b1111, 0b0000])
def test_metadata_that_names_no_two_places_in_order_is_found(pair: int) -> None:
    for rows, go in ((64, lambda case: _warpgroup(case, 128, 512)), (16, _warp)):
        case = Case(rows, 8)
        case.words[5, 4] = case.words[5, 4] & ~np.uint32(0xF00) | np.uint32(pair << 8)
        (found,) = go(case)[1].findings
        assert (found.kind, found.thread) == ("bad_wgmma", 5)
        assert f"metadata {pair} for group 2" in found.message


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (4, 5)])
def test_metadata_of_another_row_or_half_gives_other_sums(one: int, other: int) -> None:
    """Lanes 0 and 1 describe two rows, lanes 0 and 2 two halves of k."""
    case = Case(64, 8)
    case.words[[one, other], 4] = case.words[[other, one], 4]
    assert _warpgroup(case, 128, 512)[0].any()


def test_swapped_halves_of_k_give_other_sums() -> None:
    case = Case(64, 8)
    case.words[:, :4] = case.words[:, [2, 3, 0, 1]]
    assert _warpgroup(case, 128, 512)[0].any()


def test_other_selectors_are_refused() -> None:
    with pytest.raises(Unsupported, match="the selector 0"):
        _warpgroup(Case(64, 8), 128, 512, "1")
    with pytest.raises(Unsupported, match="only the sparsity selector 0"):
        _warp(Case(16, 8), "0x1")


_TEXT = """
extern "C" __global__ void __launch_bounds__({threads}) one(unsigned int* __restrict__ A_ptr,
    unsigned int* __restrict__ C_ptr, unsigned int* __restrict__ Out_ptr, unsigned int* __restrict__ S_ptr) {{
  extern __shared__ __align__(1024) unsigned int shared_ptr[];
  int thread = ((int)threadIdx.x);
  unsigned int adds = 1u;
  unsigned int base = ((unsigned int)__cvta_generic_to_shared(&(shared_ptr[0])));
  alignas(16) unsigned int a_ptr[5];
  alignas(16) unsigned int c_ptr[{sums}];
  for (int i = thread; i < 8192 * {threads} / 128 / 4; i += {threads}) {{
    if ({threads} == 128) {{
      for (int j = 0; j < 4; ++j) {{
        shared_ptr[4 * i + j] = S_ptr[4 * i + j];
      }}
    }}
  }}
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
  __syncthreads();
  for (int i = 0; i < 5; ++i) {{
    a_ptr[i] = A_ptr[((thread * 5) + i)];
  }}
  for (int i = 0; i < {sums}; ++i) {{
    c_ptr[i] = C_ptr[((thread * {sums}) + i)];
  }}
  unsigned long long descriptor = (((unsigned long long)(base >> 4)) | {high}ull);
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
  {asm}
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
  for (int i = 0; i < {sums}; ++i) {{
    Out_ptr[((thread * {sums}) + i)] = c_ptr[i];
  }}
}}
"""
