// The CUDA C++ vocabulary of a translated kernel: keywords, vector types and intrinsics.
#pragma once
#include "instructions.h"
#include "registers.h"

#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define HOST_DEVICE
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __restrict__
#define __grid_constant__
#define __align__(n) alignas(n)

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef long long longlong;
typedef unsigned long long ulonglong;
typedef signed char schar;

#define EMULATOR_VECTORS(name, type, align2, align4)                                            \
  struct name##1 { type x; };                                                                   \
  struct alignas(align2) name##2 { type x, y; };                                                \
  struct name##3 { type x, y, z; };                                                             \
  struct alignas(align4) name##4 { type x, y, z, w; };                                          \
  inline name##1 make_##name##1(type x) { return {x}; }                                         \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                              \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                   \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATOR_VECTORS(char, schar, 2, 4)
EMULATOR_VECTORS(uchar, uchar, 2, 4)
EMULATOR_VECTORS(short, short, 4, 8)
EMULATOR_VECTORS(ushort, ushort, 4, 8)
EMULATOR_VECTORS(int, int, 8, 16)
EMULATOR_VECTORS(uint, uint, 8, 16)
EMULATOR_VECTORS(longlong, longlong, 16, 16)
EMULATOR_VECTORS(ulonglong, ulonglong, 16, 16)
EMULATOR_VECTORS(float, float, 8, 16)
EMULATOR_VECTORS(double, double, 16, 16)

// Unary plus turns a checked reference into its value.
template <class A, class B> inline auto min(A a, B b) {
  auto x = +a;
  auto y = +b;
  return y < x ? y : x;
}
template <class A, class B> inline auto max(A a, B b) {
  auto x = +a;
  auto y = +b;
  return x < y ? y : x;
}
template <class A> inline auto abs(A a) {
  auto x = +a;
  return x < 0 ? -x : x;
}

inline void __syncthreads() { emulator::block_barrier(); }
inline void __syncwarp(unsigned mask = emulator::full_warp) { emulator::warp_barrier(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}

inline unsigned emulator_shuffle(emulator::ShuffleMode mode, unsigned mask, unsigned value, int by, int width) {
  const unsigned control = unsigned(32 - width) << 8 | (mode == emulator::shuffle_up ? 0 : 31);
  return emulator::shuffle(emulator::shuffle_intrinsic, mode, value, unsigned(by), control, mask, nullptr);
}
#define EMULATOR_SHUFFLE(name, mode)                                                                            \
  inline int name(unsigned mask, int value, int by, int width = 32) {                                           \
    return int(emulator_shuffle(emulator::mode, mask, unsigned(value), by, width));                             \
  }                                                                                                             \
  inline unsigned name(unsigned mask, unsigned value, int by, int width = 32) {                                 \
    return emulator_shuffle(emulator::mode, mask, value, by, width);                                            \
  }
EMULATOR_SHUFFLE(__shfl_sync, shuffle_idx)
EMULATOR_SHUFFLE(__shfl_xor_sync, shuffle_bfly)
EMULATOR_SHUFFLE(__shfl_down_sync, shuffle_down)
EMULATOR_SHUFFLE(__shfl_up_sync, shuffle_up)

inline unsigned __byte_perm(unsigned a, unsigned b, unsigned c) { return emulator::permute_bytes(a, b, c); }
inline size_t __cvta_generic_to_shared(emulator::Pointer<void> pointer) { return emulator::shared_offset(pointer); }
inline int __dp4a(int a, int b, int c) { return emulator::dot_product_4(unsigned(a), unsigned(b), c); }
inline int __popc(unsigned value) { return __builtin_popcount(value); }
inline int __clz(int value) { return value ? __builtin_clz(unsigned(value)) : 32; }
inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
inline int __vimin_s32_relu(int a, int b) { return max(min(a, b), 0); }
inline int __vimax_s32_relu(int a, int b) { return max(max(a, b), 0); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((unsigned long long)a * b >> 32); }
template <class T> inline T __ldg(emulator::Pointer<T> pointer) { return *pointer; }
inline int atomicAdd(emulator::Pointer<int> address, int value) {
  return int(emulator::atomic_add(address, unsigned(value)));
}
inline unsigned atomicAdd(emulator::Pointer<unsigned> address, unsigned value) {
  return emulator::atomic_add(address, value);
}
