// Runs a CUDA text that uses nvcuda::wmma on the CPU: one thread per CUDA thread, blocks one after the other.
// Every lane holds whole fragments, so a warp's collective operations are the same work done 32 times.
#include <barrier>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

struct Dim3 { int x, y, z; };
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
static thread_local Dim3 threadIdx;
static Dim3 blockIdx;
static std::unique_ptr<std::barrier<>> everyone;
static void __syncthreads() { everyone->arrive_and_wait(); }
#define __global__
#define __launch_bounds__(count)
#define __restrict__

namespace nvcuda::wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major };
namespace experimental::precision { struct s4; }
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment { int value[M * N * K]; };

template <class T> int element(const void* from, int index) { return static_cast<const T*>(from)[index]; }
template <> inline int element<experimental::precision::s4>(const void* from, int index) {
  return int(static_cast<const uint32_t*>(from)[index / 8] << (28 - index % 8 * 4)) >> 28;
}
template <int M, int N, int K, class T, class L>
void load_matrix_sync(fragment<matrix_a, M, N, K, T, L>& f, const void* from, int stride) {
  for (int i = 0; i < M; ++i) for (int k = 0; k < K; ++k) f.value[i * K + k] = element<T>(from, i * stride + k);
}
template <int M, int N, int K, class T>
void load_matrix_sync(fragment<matrix_b, M, N, K, T, col_major>& f, const void* from, int stride) {
  for (int j = 0; j < N; ++j) for (int k = 0; k < K; ++k) f.value[j * K + k] = element<T>(from, j * stride + k);
}
template <int M, int N, int K> void fill_fragment(fragment<accumulator, M, N, K, int>& f, float value) {
  for (int i = 0; i < M * N; ++i) f.value[i] = int(value);
}
template <int M, int N, int K, class T, class L>
void mma_sync(fragment<accumulator, M, N, K, int>& d, const fragment<matrix_a, M, N, K, T, L>& a,
              const fragment<matrix_b, M, N, K, T, col_major>& b, const fragment<accumulator, M, N, K, int>& c) {
  for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) {
    int sum = c.value[i * N + j];
    for (int k = 0; k < K; ++k) sum += a.value[i * K + k] * b.value[j * K + k];
    d.value[i * N + j] = sum;
  }
}
template <int M, int N, int K>
void store_matrix_sync(int* to, const fragment<accumulator, M, N, K, int>& f, int stride, layout_t) {
  for (int i = 0; i < M; ++i) for (int j = 0; j < N; ++j) to[i * stride + j] = f.value[i * N + j];
}
}  // namespace nvcuda::wmma
using uint = unsigned int;
using uchar = unsigned char;

template <class Kernel> void run_blocks(Dim3 grid, Dim3 block, Kernel kernel) {
  for (int z = 0; z < grid.z; ++z) for (int y = 0; y < grid.y; ++y) for (int x = 0; x < grid.x; ++x) {
    blockIdx = {x, y, z};
    everyone = std::make_unique<std::barrier<>>(block.x * block.y * block.z);
    std::vector<std::thread> threads;
    for (int c = 0; c < block.z; ++c) for (int b = 0; b < block.y; ++b) for (int a = 0; a < block.x; ++a)
      threads.emplace_back([=] { threadIdx = {a, b, c}; kernel(); });
    for (auto& one : threads) one.join();
  }
}
