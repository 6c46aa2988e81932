# ruff: noqa: E501
"""Clusters, mbarriers, bulk copies and named barriers one by one, in kernels of a few lines."""

from __future__ import annotations

import numpy as np
import pytest

from subbyte.device.launch import Argument, Launch
from subbyte.emulator import EmulatorRun, require_clean, run_cuda
from subbyte.emulator.trace import MBARRIER_MODES, counts, global_bytes_read, of_kind
from subbyte.errors import InvalidInput, Unsupported, WrongResult

CLUSTER = """\
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
"""
WAIT = (
    "{{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], {0}; "
    "@p bra OVER; bra AGAIN; OVER: }}"
)


def _kernel(body: str, cluster: int, threads: int) -> str:
    """Blocks of a cluster, each with 4 KB of shared memory, its rank and shared addresses as numbers."""
    dims = f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else ""
    return f"""
extern "C" __global__ void __launch_bounds__({threads}) {dims}small(uint* __restrict__ A_ptr, uint* __restrict__ Out_ptr) {{
  extern __shared__ __align__(128) uint shared_ptr[];
  int thread = ((int)threadIdx.x);
  int block = ((int)blockIdx.x);
  uint rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));
  uint barrier = (base + 2048u);
  alignas(16) uint w_ptr[4];
{body}
}}
"""


def _run(
    body: str, a: np.ndarray, grid: int = 2, cluster: int = 2, threads: int = 64, words: int = 1, **options: object
) -> tuple[EmulatorRun, np.ndarray]:
    """Run ``body``; what each thread stored, uint32 [grid, threads, words]."""
    out = np.full((grid, threads, words), 0xDEADBEEF, np.uint32)
    arguments = (Argument("A", "uint32", a.shape, "in"), Argument("Out", "uint32", out.shape, "out"))
    launch = Launch("small", (grid, 1, 1), (threads, 1, 1), 4096, arguments)
    options = {"max_steps": 5_000, **options}
    run = run_cuda(_kernel(body, cluster, threads), launch, {"A": a, "Out": out}, **options)  # type: ignore[arg-type]
    return run, out


def _words(count: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 2**32, count, np.uint32)


STORE = "  Out_ptr[((block * 64) + thread)] = w_ptr[0];"


@pytest.mark.parametrize("seed", range(3))
def test_stores_and_loads_reach_the_other_block(seed: int) -> None:
    body = f"""
  uint there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((base + ((uint)(thread * 8)))), "r"((rank ^ 1u)));
{CLUSTER}
  asm volatile("st.shared::cluster.b32 [%0], %1;" : : "r"(there), "r"(A_ptr[((block * 64) + thread)]) : "memory");
{CLUSTER}
  asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(w_ptr[0]) : "r"(there));
  w_ptr[0] = (w_ptr[0] ^ shared_ptr[(thread * 2)]);
{CLUSTER}
{STORE}"""
    a = _words(256).reshape(4, 64)
    run, out = _run(body, a, grid=4, seed=seed)
    require_clean(run)
    expected = a ^ a[[1, 0, 3, 2]]
    np.testing.assert_array_equal(out[..., 0], expected)


def test_load_from_a_block_that_has_ended_is_found() -> None:
    body = f"""
  uint there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(base));
  shared_ptr[thread] = 7u;
{CLUSTER}
  if (rank == 0u) {{
    for (int i = 0; i < 400; ++i) {{
      asm volatile("griddepcontrol.wait;" : : : "memory");
    }}
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(w_ptr[0]) : "r"(there));
  }} else {{
    w_ptr[0] = 7u;
  }}
{STORE}"""
    found = {f.kind for seed in range(12) for f in _run(body, _words(1), seed=seed)[0].findings}
    assert found == {"bad_cluster"}


@pytest.mark.parametrize("seed", range(4))
def test_multicast_copy_counts_on_every_blocks_barrier(seed: int) -> None:
    body = f"""
  if (thread == 0) {{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" : : "r"(barrier) : "memory");
  }}
{CLUSTER}
  if ((rank == 1u) && (thread == 5)) {{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 256, [%2], %3;" : : "r"(base), "l"((&(A_ptr[0]))), "r"(barrier), "h"((unsigned short)3) : "memory");
  }}
  if ((rank == 0u) && (thread == 7)) {{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1], 256, [%2], %3, %4;" : : "r"((base + 256u)), "l"((&(A_ptr[64]))), "r"(barrier), "h"((unsigned short)3), "l"((unsigned long long)0) : "memory");
  }}
  asm volatile("{WAIT.format("0")}" : : "r"(barrier) : "memory");
  w_ptr[0] = (shared_ptr[thread] + shared_ptr[(64 + thread)]);
{CLUSTER}
{STORE}"""
    a = _words(128)
    run, out = _run(body, a, seed=seed, trace=True)
    require_clean(run)
    np.testing.assert_array_equal(out[..., 0], np.broadcast_to(a[:64] + a[64:], (2, 64)))
    rows = of_kind(run.trace, "bulk_copy")
    assert sorted(zip(rows["block"], rows["rank"], rows["offset"], rows["size"], strict=True)) == [
        (0, 0, 256, 256), (0, 1, 256, 256), (1, 0, 0, 256), (1, 1, 0, 256),
    ]  # fmt: skip
    assert global_bytes_read(run.trace, 0) == {0: 512, 1: 512}
    modes = of_kind(run.trace, "mbarrier")["mode"]
    assert {MBARRIER_MODES[mode] for mode in modes} == {"init", "arrive", "wait"}
    assert counts(run.trace)["fence"] == 2


@pytest.mark.parametrize("seed", range(3))
def test_copy_from_the_shared_memory_of_another_block_and_store_async(seed: int) -> None:
    body = f"""
  shared_ptr[thread] = A_ptr[((block * 64) + thread)];
  if (thread == 0) {{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 272;" : : "r"(barrier) : "memory");
  }}
  asm volatile("fence.proxy.async;" : : : "memory");
{CLUSTER}
  uint there;
  uint theirs;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((base + 1024u)), "r"((rank ^ 1u)));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(barrier), "r"((rank ^ 1u)));
  if (thread == 1) {{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" : : "r"(there), "r"(base), "r"(theirs) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {{%1, %2, %3, %4}}, [%5];" : : "r"((there + 512u)), "r"(1u), "r"(2u), "r"(3u), "r"((rank + 4u)), "r"(theirs) : "memory");
  }}
  asm volatile("{WAIT.format("0")}" : : "r"(barrier) : "memory");
  w_ptr[0] = (shared_ptr[(256 + thread)] + shared_ptr[(384 + (thread & 3))]);
{CLUSTER}
{STORE}"""
    a = _words(128).reshape(2, 64)
    run, out = _run(body, a, seed=seed)
    require_clean(run)
    for block in range(2):
        extra = np.tile(np.array([1, 2, 3, (1 - block) + 4], np.uint32), 16)
        np.testing.assert_array_equal(out[block, :, 0], a[1 - block] + extra)


def test_phase_tokens_and_tests_that_do_not_wait() -> None:
    body = """
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(64u) : "memory");
  }
  __syncthreads();
  shared_ptr[thread] = A_ptr[thread];
  unsigned long long token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(barrier) : "memory");
  uint over = 0u;
  while (over == 0u) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(barrier), "l"(token) : "memory");
  }
  w_ptr[0] = shared_ptr[(63 - thread)];
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1], 1;" : "=l"(token) : "r"(barrier) : "memory");
  over = 0u;
  while (over == 0u) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.acquire.cta.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }" : "=r"(over) : "r"(barrier), "l"(token) : "memory");
  }
  __syncthreads();
  if (thread == 0) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" : : "r"(barrier) : "memory");
    shared_ptr[512] = 1u;
  }
  shared_ptr[thread] = 1u;
""" + STORE  # fmt: skip
    a = _words(64)
    for seed in range(3):
        run, out = _run(body, a, grid=1, cluster=1, seed=seed)
        require_clean(run)
        np.testing.assert_array_equal(out[0, :, 0], a[::-1])
    too_early = body[::-1].replace("__syncthreads();"[::-1], "", 1)[::-1]  # the last one
    found = [f.message for seed in range(4) for f in _run(too_early, a, grid=1, cluster=1, seed=seed)[0].findings]
    assert any("invalidates the mbarrier at byte 2048 while thread" in message for message in found)


@pytest.mark.parametrize("seed", range(3))
def test_named_barriers_pass_data_from_one_warp_to_another(seed: int) -> None:
    body = """
  if (thread < 32) {
    for (int turn = 0; turn < 3; ++turn) {
      asm volatile("bar.sync 2, 64;" : : : "memory");
      shared_ptr[thread] = A_ptr[((turn * 32) + thread)];
      asm volatile("barrier.cta.arrive %0, %1;" : : "r"(3), "r"(64) : "memory");
    }
    w_ptr[0] = 0u;
  } else {
    w_ptr[0] = 0u;
    for (int turn = 0; turn < 3; ++turn) {
      asm volatile("bar.arrive 2, 64;" : : : "memory");
      asm volatile("bar.sync %0, %1;" : : "r"(3), "r"(64) : "memory");
      w_ptr[0] = (w_ptr[0] + shared_ptr[(63 - thread)]);
    }
  }
""" + STORE  # fmt: skip
    a = _words(96)
    run, out = _run(body, a, grid=1, cluster=1, seed=seed)
    require_clean(run)
    np.testing.assert_array_equal(out[0, 32:, 0], a.reshape(3, 32).sum(0, dtype=np.uint32)[::-1])


def test_elected_lane_and_special_registers() -> None:
    body = """
  uint leader;
  uint elected;
  uint blocks;
  uint lane;
  asm volatile("{ .reg .pred p; elect.sync %0|p, 0xFFFFFFFF; selp.b32 %1, 1, 0, p; }" : "=r"(leader), "=r"(elected));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  w_ptr[0] = ((((elected << 12) | (blocks << 8)) | (rank << 6)) | (lane + ((leader == lane) ? (elected ^ 1u) : elected)));
""" + STORE  # fmt: skip
    run, out = _run(body, _words(1), grid=4)
    require_clean(run)
    lane = np.arange(64) % 32
    np.testing.assert_array_equal(out[..., 0] & 31, np.broadcast_to(lane, (4, 64)))
    np.testing.assert_array_equal((out[..., 0] >> 12).reshape(4, 2, 32).sum(2), np.ones((4, 2)))
    np.testing.assert_array_equal(out[:, 0, 0] >> 6 & 63, [2 << 2, 2 << 2 | 1] * 2)


@pytest.mark.parametrize("transposed", [False, True])
def test_store_matrix_is_the_inverse_of_load_matrix(transposed: bool) -> None:
    trans = ".trans" if transposed else ""
    address = "(base + ((uint)(thread * 16)))"
    body = f"""
  for (int i = 0; i < 4; ++i) {{
    w_ptr[i] = A_ptr[((thread * 4) + i)];
  }}
  asm volatile("stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%0], {{%1, %2, %3, %4}};" : : "r"({address}), "r"(w_ptr[0]), "r"(w_ptr[1]), "r"(w_ptr[2]), "r"(w_ptr[3]) : "memory");
  __syncwarp();
  for (int i = 0; i < 4; ++i) {{
    Out_ptr[((thread * 4) + i)] = shared_ptr[((thread * 4) + i)];
  }}"""
    a = _words(128).reshape(32, 4)
    run, out = _run(body, a, grid=1, cluster=1, threads=32, words=4)
    require_clean(run)
    halves = a.T.reshape(4, 32).copy().view(np.uint16).reshape(4, 8, 8)  # matrix, row, column
    expected = halves.transpose(0, 2, 1) if transposed else halves
    np.testing.assert_array_equal(out.view(np.uint16).reshape(4, 8, 8), expected)


def test_arithmetic_of_the_epilogue() -> None:
    body = """
  uint a = A_ptr[(thread * 3)];
  uint b = A_ptr[((thread * 3) + 1)];
  uint c = A_ptr[((thread * 3) + 2)];
  unsigned long long wide;
  asm volatile("mul.hi.s32 %0, %1, %2;" : "=r"(w_ptr[0]) : "r"(a), "r"(b));
  asm volatile("mad.hi.u32 %0, %1, %2, %3;" : "=r"(w_ptr[1]) : "r"(a), "r"(b), "r"(c));
  asm volatile("mad.lo.s32 %0, %1, %2, %3;" : "=r"(w_ptr[2]) : "r"(a), "r"(b), "r"(c));
  asm volatile("mul.wide.s32 %0, %1, %2;" : "=l"(wide) : "r"(a), "r"(b));
  asm volatile("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(w_ptr[3]) : "r"((a >> 22)), "r"((((int)b) >> 23)), "r"(c));
  Out_ptr[(thread * 8)] = w_ptr[0];
  Out_ptr[((thread * 8) + 1)] = w_ptr[1];
  Out_ptr[((thread * 8) + 2)] = w_ptr[2];
  Out_ptr[((thread * 8) + 3)] = w_ptr[3];
  Out_ptr[((thread * 8) + 4)] = ((uint)(wide >> 32));
  asm volatile("min.s32 %0, %1, %2;" : "=r"(w_ptr[0]) : "r"(a), "r"(b));
  asm volatile("max.u32 %0, %1, %2;" : "=r"(w_ptr[1]) : "r"(a), "r"(b));
  asm volatile("popc.b32 %0, %1;" : "=r"(w_ptr[2]) : "r"(a));
  asm volatile("" : "+r"(w_ptr[2]));
  Out_ptr[((thread * 8) + 5)] = w_ptr[0];
  Out_ptr[((thread * 8) + 6)] = w_ptr[1];
  Out_ptr[((thread * 8) + 7)] = (w_ptr[2] + ((uint)__vimin_s32_relu(((int)a), ((int)b))));
"""
    a = _words(192).reshape(64, 3)
    run, out = _run(body, a, grid=1, cluster=1, words=8)
    require_clean(run)
    s, u = a.view(np.int32).astype(np.int64), a.astype(np.uint64)
    clipped = [np.clip(v, 0, 255) for v in (a[:, 0] >> 22, s[:, 1] >> 23)]
    popcount = np.array([int(word).bit_count() for word in a[:, 0]])
    expected = [
        s[:, 0] * s[:, 1] >> 32, (u[:, 0] * u[:, 1] >> np.uint64(32)) + u[:, 2], s[:, 0] * s[:, 1] + s[:, 2],
        (s[:, 2] << 16) | clipped[0] << 8 | clipped[1], s[:, 0] * s[:, 1] >> 32, np.minimum(s[:, 0], s[:, 1]),
        np.maximum(u[:, 0], u[:, 1]), popcount + np.maximum(np.minimum(s[:, 0], s[:, 1]), 0),
    ]  # fmt: skip
    np.testing.assert_array_equal(out[0], np.stack([np.asarray(v).astype(np.int64) & 0xFFFFFFFF for v in expected], 1))


def test_chosen_blocks_bring_their_cluster() -> None:
    run, out = _run(CLUSTER + "  w_ptr[0] = rank;\n" + STORE, _words(1), grid=6, blocks=[3])
    assert not run.findings
    assert (run.blocks, run.all_blocks) == (2, False)
    np.testing.assert_array_equal(np.flatnonzero(out[:, 0, 0] != 0xDEADBEEF), [2, 3])
    np.testing.assert_array_equal(out[2:4, 0, 0], [0, 1])


def _launch(grid: tuple[int, int, int], cluster: int) -> Launch:
    out = Argument("Out", "uint32", (int(np.prod(grid)), 64), "out")
    return Launch("small", grid, (64, 1, 1), 4096, (Argument("A", "uint32", (1,), "in"), out), cluster=cluster)


def test_clusters_of_the_launch_and_of_the_text() -> None:
    text = _kernel(CLUSTER + "  w_ptr[0] = rank;\n" + STORE, 1, 64)
    out = np.zeros((4, 64), np.uint32)
    require_clean(run_cuda(text, _launch((4, 1, 1), 4), {"A": _words(1), "Out": out}))
    np.testing.assert_array_equal(out[:, 5], [0, 1, 2, 3])
    with pytest.raises(InvalidInput, match=r"\(6, 1, 1\).*clusters of \(4, 1, 1\)"):
        run_cuda(text, _launch((6, 1, 1), 4), {"A": _words(1), "Out": np.zeros((6, 64), np.uint32)})
    with pytest.raises(InvalidInput, match=r"written for clusters of \(2, 1, 1\)"):
        run_cuda(_kernel(STORE, 2, 64), _launch((4, 1, 1), 4), {"A": _words(1), "Out": out})


def test_clusters_over_two_dimensions() -> None:
    text = _kernel(CLUSTER + "  Out_ptr[((((((int)blockIdx.y) * 4) + block) * 64) + thread)] = rank;", 1, 64)
    text = text.replace("__launch_bounds__(64) ", "__launch_bounds__(64) __cluster_dims__(2, 2) ")
    out = np.zeros((4, 4, 64), np.uint32)
    require_clean(run_cuda(text, _launch((4, 4, 1), 1), {"A": _words(1), "Out": out}))
    np.testing.assert_array_equal(out[:2, :, 0], [[0, 1, 0, 1], [2, 3, 2, 3]])


@pytest.mark.parametrize(
    ("ptx", "name"),
    [
        ("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 4;", r"mbarrier\.complete_tx"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%0];", r"bulk\.tensor"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%0], 16;", r"cp\.reduce"),
        ("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;", r"fence\.proxy\.tensormap"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(ptx: str, name: str) -> None:
    with pytest.raises(Unsupported, match=name):
        _run(f'  asm volatile("{ptx}" : : "r"(base) : "memory");', _words(1))


def test_deadlock_of_an_unchecked_run_ends() -> None:
    body = """
  if (thread == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 65;" : : "r"(barrier) : "memory");
  }
  __syncthreads();
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
"""  # fmt: skip
    waiting = f'  asm volatile("{WAIT.format("0")}" : : "r"(barrier) : "memory");\n'
    for wait in (waiting, waiting.replace("try_wait", "test_wait")):
        with pytest.raises(WrongResult, match=r"still lacks 1 arrivals"):
            _run(body + wait + STORE, _words(1), grid=1, cluster=1, check=False)


@pytest.mark.parametrize(("overlap", "waits", "found"), [(True, True, 0), (True, False, 3), (False, False, 0)])
def test_overlapping_launches_wait_before_they_touch_what_others_use(overlap: bool, waits: bool, found: int) -> None:
    """One thread waits and a barrier tells the others; weights may be read before."""
    wait = '  if (thread == 0) {\n    asm volatile("griddepcontrol.wait;" : : : "memory");\n  }\n'
    body = f"""
  w_ptr[0] = Wt_ptr[thread];
{wait if waits else ""}
  __syncthreads();
  w_ptr[0] = (w_ptr[0] + A_ptr[thread]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"((base + ((uint)(thread * 4)))), "l"((&(A_ptr[thread]))) : "memory");
  asm volatile("cp.async.wait_all;" : : : "memory");
  w_ptr[0] = (w_ptr[0] + shared_ptr[thread]);
{STORE}"""
    text = _kernel(body, 1, 64).replace("uint* __restrict__ Out_ptr", "uint* __restrict__ Out_ptr, uint* Wt_ptr")
    arguments = (
        Argument("A", "uint32", (64,), "in", "nhwcnc"),
        Argument("Out", "uint32", (64,), "out", "nhwcnc"),
        Argument("Wt", "uint32", (64,), "in", "4"),
    )
    a, out = _words(64), np.zeros(64, np.uint32)
    launch = Launch("small", (1, 1, 1), (64, 1, 1), 4096, arguments, dependent_launch=overlap)
    run = run_cuda(text, launch, {"A": a, "Out": out, "Wt": a}, max_steps=1000)
    np.testing.assert_array_equal(out, 3 * a)
    assert [finding.kind for finding in run.findings] == ["missing_dependency_wait"] * found
