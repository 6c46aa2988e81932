#define uint unsigned int
extern "C" __global__ void __launch_bounds__(256, 2) __cluster_dims__(2, 1, 1) warpgroup_kernel(uint* __restrict__ A_ptr, uint* __restrict__ B_ptr, uint* __restrict__ Out_ptr) {
  extern __shared__ __align__(1024) uint shared_ptr[];
  int thread = ((int)threadIdx.x);
  int member = (thread & 127);
  int rank = (((int)blockIdx.x) & 1);
  uint base = ((uint)__cvta_generic_to_shared(&(shared_ptr[0])));
  uint full = (base + 13312u);
  uint empty = (base + 13328u);
  alignas(64) uint part_ptr[4];
  if (thread == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"((full + ((uint)(stage * 8)))), "r"(33u) : "memory");
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"((empty + ((uint)(stage * 8)))), "r"(128u) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  }
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
  if (thread >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" : : : "memory");
    if (member < 32) {
      for (int step = 0; step < 6; ++step) {
        uint stage = ((uint)(step & 1));
        uint waited = ((uint)(((step >> 1) & 1) ^ 1));
        asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra OVER; bra AGAIN; OVER: }" : : "r"((empty + (stage * 8u))), "r"(waited) : "memory");
        if (member == 0) {
          asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"((full + (stage * 8u))), "r"(2048u) : "memory");
          asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" : : "r"((base + (stage * 2048u))), "l"((&(A_ptr[((rank * 3072) + (step * 512))]))), "r"(2048u), "r"((full + (stage * 8u))) : "memory");
        }
        alignas(64) uint piece_ptr[4];
        asm volatile("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(piece_ptr[0]), "=r"(piece_ptr[1]), "=r"(piece_ptr[2]), "=r"(piece_ptr[3]) : "l"((&(B_ptr[((((member & 15) * 96) + (rank * 48)) + ((step * 8) + ((member >> 4) * 4)))]))));
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" : : "r"((base + ((4096u + (stage * 512u)) + (((uint)((member & 15) >> 3)) * 256u))) + ((((uint)(member >> 4)) * 128u) + (((uint)(member & 7)) * 16u))), "r"(piece_ptr[0]), "r"(piece_ptr[1]), "r"(piece_ptr[2]), "r"(piece_ptr[3]) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"((full + (stage * 8u))) : "memory");
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 216;" : : : "memory");
    alignas(64) uint sum_ptr[8];
    alignas(64) uint left_ptr[4];
    for (int i = 0; i < 8; ++i) {
      sum_ptr[i] = 0u;
    }
    for (int step = 0; step < 6; ++step) {
      uint stage = ((uint)(step & 1));
      uint waited = ((uint)((step >> 1) & 1));
      asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra OVER; bra AGAIN; OVER: }" : : "r"((full + (stage * 8u))), "r"(waited) : "memory");
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(left_ptr[0]), "=r"(left_ptr[1]), "=r"(left_ptr[2]), "=r"(left_ptr[3]) : "r"((base + ((stage * 2048u) + (((uint)member) * 16u)))) : "memory");
      unsigned long long right = (((unsigned long long)(((base + (4096u + (stage * 512u))) & 262143u) >> 4)) | 68720001024ull);
      asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
      asm volatile("wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, 1;" : "+r"(sum_ptr[0]), "+r"(sum_ptr[1]), "+r"(sum_ptr[2]), "+r"(sum_ptr[3]), "+r"(sum_ptr[4]), "+r"(sum_ptr[5]), "+r"(sum_ptr[6]), "+r"(sum_ptr[7]) : "r"(left_ptr[0]), "r"(left_ptr[1]), "r"(left_ptr[2]), "r"(left_ptr[3]), "l"(right));
      asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
      asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"((empty + (stage * 8u))) : "memory");
    }
    uint mine = (base + (5120u + (((uint)member) * 32u)));
    if (rank == 1) {
      uint there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"(mine));
      asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" : : "r"(there), "r"(sum_ptr[0]), "r"(sum_ptr[1]), "r"(sum_ptr[2]), "r"(sum_ptr[3]) : "memory");
      asm volatile("st.shared::cluster.v4.b32 [%0+16], {%1, %2, %3, %4};" : : "r"(there), "r"(sum_ptr[4]), "r"(sum_ptr[5]), "r"(sum_ptr[6]), "r"(sum_ptr[7]) : "memory");
    }
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
    if (rank == 0) {
      for (int half = 0; half < 2; ++half) {
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(part_ptr[0]), "=r"(part_ptr[1]), "=r"(part_ptr[2]), "=r"(part_ptr[3]) : "r"((mine + ((uint)(half * 16)))) : "memory");
        for (int i = 0; i < 4; ++i) {
          shared_ptr[(((2304 + (member * 8)) + (half * 4)) + i)] = (part_ptr[i] + sum_ptr[((half * 4) + i)]);
        }
      }
      asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
      asm volatile("bar.sync 1, 128;" : : : "memory");
      if (thread == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" : : "l"((&(Out_ptr[((((int)blockIdx.x) >> 1) * 1024)]))), "r"((base + 9216u)), "r"(4096u) : "memory");
        asm volatile("cp.async.bulk.commit_group;" : : : "memory");
        asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
      }
    }
  }
  if (thread >= 128) {
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
  }
}
