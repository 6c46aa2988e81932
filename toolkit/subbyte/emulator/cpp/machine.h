// What translated kernel code and the runtime share: thread identity, memory regions, instruction numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef EMULATOR_CHECKED
#define EMULATOR_CHECKED 1
#endif

namespace emulator {

constexpr bool checked = EMULATOR_CHECKED;
constexpr uint32_t full_warp = 0xFFFFFFFFu;
constexpr int warpgroup_threads = 128;

struct Index {
  unsigned x, y, z;
};

// The part of a CUDA thread that kernel code touches directly.
struct ThreadView {
  Index thread_index;
  Index block_index;
  uint32_t line = 0;               // line of the CUDA text being executed
  uint64_t steps = 0;              // loop iterations, memory accesses and collectives so far
  uint32_t register_fences = 0;    // wgmma.fence so far
  uint32_t multiplications = 0;    // wgmma.mma_async issued so far
  uint32_t multiplications_done = 0;  // of these, the ones that a wgmma.wait_group has waited for
};

extern ThreadView* current;
extern Index block_dim, grid_dim;
extern uint64_t step_limit;

[[noreturn]] void step_limit_reached();

// Called in every loop iteration, access and collective, so that an endless loop ends with a finding.
inline void step() {
  if (++current->steps > step_limit) step_limit_reached();
}

inline void at_line(uint32_t line) { current->line = line; }

// Memory regions: 0 is private memory of a thread (never checked), 1 the shared window of the thread's own block,
// then the kernel's arguments in order, then one region per shared array. -1 is the shared window of any block of the
// cluster.
constexpr int cluster_window = -1;
constexpr int private_region = 0;
constexpr int shared_window = 1;
constexpr int first_argument = 2;

struct Region {
  char* base;         // of shared arrays: the byte in the shared window
  uint64_t size;
  int32_t argument;   // index in the kernel's argument list, or -1 for shared memory
  int16_t is_output;
  int16_t is_dependent;  // the launch before may still be using it until griddepcontrol.wait
  uint32_t* writer;   // per byte of an output: 1 + global index of the thread that wrote it; may be null
};

// Fixed instruction numbers; the translator appends the PTX instructions of the kernel after these.
enum Instruction : int { barrier_block = 0, barrier_warp = 1, shuffle_intrinsic = 2, first_translated = 8 };

enum ShuffleMode : int { shuffle_bfly = 0, shuffle_idx = 1, shuffle_down = 2, shuffle_up = 3 };

}  // namespace emulator
