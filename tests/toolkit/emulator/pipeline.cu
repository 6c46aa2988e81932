// A clean two-stage pipeline in the style of TVM's CUDA code generator. Every block of 64 threads copies four chunks of
// 256 words, adds one word of a neighbour's copy per chunk, exchanges the sums inside each warp and stores one word.
#define uint unsigned int
__forceinline__ __device__ void tvm_builtin_ptx_shfl_sync_bfly_b32(uint32_t& __d, uint32_t __a, uint32_t __b, uint32_t __c, uint32_t __membermask) {
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, %3, %4;" : "=r"(__d) : "r"(__a), "r"(__b), "r"(__c), "r"(__membermask));
}
__forceinline__ __device__ void tvm_builtin_ptx_wait_group_0() {
  asm volatile("cp.async.wait_group 0;" :  :  : "memory");
}
__forceinline__ __device__ void tvm_builtin_ptx_wait_group_1() {
  asm volatile("cp.async.wait_group 1;" :  :  : "memory");
}
__forceinline__ __device__ void tvm_builtin_ptx_commit_group() {
  asm volatile("cp.async.commit_group;" :  : );
}
__forceinline__ __device__ void tvm_builtin_ptx_cp_async(uint32_t __dst_mem, const void* __src_mem, uint32_t __src_size) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :  : "r"(__dst_mem), "l"(__src_mem), "r"(__src_size) : "memory");
}

__forceinline__ __device__ void tvm_builtin_cuda_cta_sync() {
    __syncthreads();
}

__forceinline__ __device__ void tvm_builtin_cuda_warp_sync() {
    __syncwarp();
}

__forceinline__ __device__ unsigned int tvm_builtin_cuda_cvta_generic_to_shared(void* p) {
    return __cvta_generic_to_shared(p);
}
extern "C" __global__ void __launch_bounds__(64, 1) pipeline_kernel(uint* __restrict__ A_ptr, uint* __restrict__ Out_ptr);
extern "C" __global__ void __launch_bounds__(64, 1) pipeline_kernel(uint* __restrict__ A_ptr, uint* __restrict__ Out_ptr) {
  int warp_id_in_cta = __shfl_sync((uint)4294967295, (((int)threadIdx.x) >> 5), 0, 32);
  int tid = ((int)threadIdx.x);
  __shared__ alignas(64) uint part_ptr[64];
  extern __shared__ __align__(128) uint smem_ptr[];
  alignas(64) uint acc_ptr[2];
  acc_ptr[0] = (uint)0;
  tvm_builtin_ptx_cp_async(tvm_builtin_cuda_cvta_generic_to_shared((&(smem_ptr[(((int)threadIdx.x) * 4)]))), (&(A_ptr[((((int)blockIdx.x) * 1024) + (((int)threadIdx.x) * 4))])), (uint)16);
  tvm_builtin_ptx_commit_group();
  for (int k = 0; k < 4; ++k) {
    tvm_builtin_ptx_wait_group_0();
    tvm_builtin_cuda_cta_sync();
    if (k < 3) {
      tvm_builtin_ptx_cp_async(tvm_builtin_cuda_cvta_generic_to_shared((&(smem_ptr[((((k + 1) & 1) * 256) + (((int)threadIdx.x) * 4))]))), (&(A_ptr[(((((int)blockIdx.x) * 1024) + ((k + 1) * 256)) + (((int)threadIdx.x) * 4))])), (uint)16);
    }
    tvm_builtin_ptx_commit_group();
    acc_ptr[0] = (acc_ptr[0] + smem_ptr[((((k & 1) * 256) + (((((int)threadIdx.x) + 37) & 63) * 4)) + k)]);
  }
  part_ptr[((int)threadIdx.x)] = acc_ptr[0];
  tvm_builtin_cuda_warp_sync();
    uint4 v_ = *(uint4*)(part_ptr + ((((int)threadIdx.x) >> 2) * 4));
  acc_ptr[0] = (((v_.x + v_.y) + v_.z) + v_.w);
  tvm_builtin_ptx_shfl_sync_bfly_b32(acc_ptr[1], acc_ptr[0], (uint)4, (uint)31, (uint)4294967295);
  Out_ptr[((((int)blockIdx.x) * 64) + ((int)threadIdx.x))] = (acc_ptr[0] + (acc_ptr[1] * (uint)3));
}
