// The CUDA intrinsics and PTX instructions a kernel can use, as functions. Those that need other threads
// (barriers, shuffles, matrix instructions) or delayed copies are implemented in the runtime.
#pragma once

#include "pointers.h"

namespace emulator {

// ---- collectives and copies, implemented in the runtime ------------------------------------------------------------
void block_barrier();
void warp_barrier(uint32_t mask);
// The value of the source lane by the rules of PTX shfl.sync; `control` packs the clamp and the segment mask.
uint32_t shuffle(int instruction, ShuffleMode mode, uint32_t value, uint32_t lane_or_offset, uint32_t control,
                 uint32_t mask, bool* in_range);

// Integer matrix instruction: d[m][8] = a[m][k] * b[k][8] + c; one bit operands multiply by XOR or AND.
struct MatrixShape {
  int m, k, bits;
  bool a_signed, b_signed, is_and, sparse;  // sparse: A is 2:4, its metadata the fifth register
};
void matrix_multiply(int instruction, MatrixShape shape, uint32_t* d, const uint32_t* a, const uint32_t* b,
                     const uint32_t* c);
void load_matrix(int instruction, int count, bool transposed, uint32_t* d, uint32_t shared_address);
uint32_t move_matrix(int instruction, uint32_t value);

void store_matrix(int instruction, int count, bool transposed, const uint32_t* words, uint32_t shared_address);
uint32_t elect(int instruction, uint32_t mask);  // the elected lane
uint32_t largest_of_warp(int instruction, uint32_t value, uint32_t mask);

// ---- Hopper --------------------------------------------------------------------------------------------------------
struct WgmmaShape {
  int n, bits;
  bool a_signed, b_signed, a_in_registers, sparse;  // sparse: A is 2:4, its metadata the fifth register
  bool operator==(const WgmmaShape&) const = default;
};
struct RegisterOperand;
void wgmma_multiply(int instruction, WgmmaShape shape, const RegisterOperand* d, const RegisterOperand* a,
                    uint64_t a_descriptor, uint64_t b_descriptor, bool adds);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(uint32_t groups_left);

void mbarrier_init(int instruction, Pointer<void> barrier, uint32_t count);
void mbarrier_invalidate(int instruction, Pointer<void> barrier);
void mbarrier_expect(int instruction, Pointer<void> barrier, uint32_t bytes);
uint64_t mbarrier_arrive(int instruction, Pointer<void> barrier, uint32_t count, uint32_t bytes, bool releases);
bool mbarrier_test(int instruction, Pointer<void> barrier, uint64_t phase, bool is_parity, bool blocks, bool acquires);
void fence_mbarrier_init(int instruction);
void fence_async(int instruction);

// `ranks`: mask of the blocks of the cluster that receive the bytes, or 0 for the one the target points into.
void bulk_load(int instruction, Pointer<void> target, Pointer<void> source, uint32_t bytes, Pointer<void> barrier,
               uint32_t ranks);
void bulk_store(int instruction, Pointer<void> target, Pointer<void> source, uint32_t bytes);
void store_async(int instruction, Pointer<void> target, const uint32_t* words, int count, Pointer<void> barrier);
void bulk_commit();
void bulk_wait(uint32_t groups_left);

void named_barrier(int instruction, uint32_t number, uint32_t count, bool waits);
void cluster_arrive(int instruction, bool releases);
void cluster_wait(int instruction);
uint32_t map_to_rank(uint32_t shared_address, uint32_t rank);
uint32_t special_register(int which);
void dependency_wait();
void set_registers(int instruction, uint32_t count, bool more);

void copy_async(int instruction, uint32_t shared_address, Pointer<void> source, uint32_t bytes, uint32_t valid);
void copy_commit();
void copy_wait(uint32_t groups_left);
void copy_wait_all();
uint32_t atomic_add(Pointer<void> address, uint32_t value);
uint32_t shared_offset(Pointer<void> pointer);
char* shared_address(uint32_t offset);
char* cluster_address(uint32_t address);

// ---- instructions of one thread ------------------------------------------------------------------------------------
// Without <algorithm>: parsing it would take half of a kernel's compilation.
inline int16_t larger(int16_t a, int16_t b) { return a < b ? b : a; }

inline uint32_t largest_halves(uint32_t a, uint32_t b) {
  const uint32_t low = uint16_t(larger(int16_t(a), int16_t(b)));
  const uint32_t high = uint16_t(larger(int16_t(a >> 16), int16_t(b >> 16)));
  return high << 16 | low;
}

// The number of the highest bit that is set, all ones of 0: bfind.
inline uint32_t highest_bit(uint32_t value) { return value ? 31 - uint32_t(__builtin_clz(value)) : ~0u; }

inline uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t choice = selector >> (4 * i) & 15;
    uint32_t byte = uint32_t(bytes >> (8 * (choice & 7))) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;  // replicate the sign
    result |= byte << (8 * i);
  }
  return result;
}

// cvt.pack.sat: saturate both values to `bits` and shift them in below the low bits of `c`, a above b.
inline uint32_t pack_saturated(int bits, bool is_signed, int32_t a, int32_t b, uint32_t c) {
  const int32_t low = is_signed ? -(1 << (bits - 1)) : 0, high = low + (1 << bits) - 1;
  const uint32_t mask = (1u << bits) - 1;
  const auto saturate = [&](int32_t value) { return uint32_t(value < low ? low : value > high ? high : value) & mask; };
  return c << (2 * bits) | saturate(a) << bits | saturate(b);
}

inline uint32_t three_input_logic(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t row = 0; row < 8; row++)
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}

// PTX shifts give 0 (or the sign) for counts of 32 and more, where C++ leaves them undefined.
inline uint32_t shift_left(uint32_t value, uint32_t count) { return count > 31 ? 0 : value << count; }
inline uint32_t shift_right(uint32_t value, uint32_t count) { return count > 31 ? 0 : value >> count; }
inline uint32_t shift_right_signed(uint32_t value, uint32_t count) {
  return uint32_t(int32_t(value) >> (count > 31 ? 31 : count));
}

inline int32_t dot_product_4(uint32_t a, uint32_t b, int32_t c) {
  for (int i = 0; i < 4; i++) c += int8_t(a >> (8 * i)) * int8_t(b >> (8 * i));
  return c;
}

// ld and st: `address` is a generic pointer, or for .shared an offset in the shared window.
inline Pointer<void> generic(uint32_t offset) { return pointer_into(shared_address(offset), shared_window); }
inline Pointer<void> generic(Pointer<void> pointer) { return pointer; }
// An address in the shared window of any block of the cluster (shared::cluster).
inline Pointer<void> of_cluster(uint32_t address) { return pointer_into(cluster_address(address), cluster_window); }
inline Pointer<void> of_cluster(Pointer<void> pointer) {
  return pointer_into(address_of(pointer), region_of(pointer) > shared_window ? region_of(pointer) : cluster_window);
}
inline Pointer<void> offset_by(Pointer<void> pointer, long bytes) {
  return pointer_into(address_of(pointer) + bytes, region_of(pointer));
}

template <int N> struct alignas(4 * N) Words {
  uint32_t w[N];
};

template <class T> T load_as(Pointer<void> pointer) { return *(Pointer<T>)(pointer); }
template <class T> void store_as(Pointer<void> pointer, T value) { *(Pointer<T>)(pointer) = value; }

}  // namespace emulator
