// The threads of one cluster of blocks (usually one block), their blocks, and how findings are reported.
#pragma once
#include <algorithm>
#include <vector>
#include "clocks.h"
#include "fibers.h"
#include "report.h"

namespace emulator {

// waiting: until `Waiting` is over; at_warp: until the other lanes of the warp are here.
enum class State : uint8_t { ready, at_warp, waiting, finished };
enum class WaitKind : uint8_t {
  nothing, block_barrier, named_barrier, cluster_barrier, mbarrier, warpgroup, registers
};

struct Thread;
// Performs one collective; `lanes` are the 32 threads of the warp, valid where `mask` has a bit.
using Perform = void (*)(Thread* const* lanes, uint32_t mask);

struct Meeting {
  uint32_t mask = 0;
  int instruction = 0;
  Perform perform = nullptr;
  void* operands = nullptr;
};

// What a thread waits for. `over` is asked again and again; without it whoever ends the wait makes the thread ready.
struct Waiting {
  WaitKind kind = WaitKind::nothing;
  bool (*over)(Thread&) = nullptr;
  int64_t object = 0, value = 0;  // barrier number or byte; parity, count or operation waited for
};

struct PendingCopy {
  char* source;
  uint32_t target, bytes, valid, group, line;
};

// A bulk copy out of shared memory that its thread has not waited for yet.
struct UnfinishedStore {
  uint32_t group, time, line, bytes;
  int slot;
};

// Registers of A whose C++ scope has ended while a multiplication still reads them.
struct LeftOperand {
  uint32_t multiplication, line;
};

struct Thread : ThreadView {
  Fiber fiber;
  State state = State::ready;
  bool spun = false;            // it came back from a test that failed, having done nothing else
  int index = 0, rank = 0;      // within the block; of the block within the cluster
  int slot = 0;                 // in clocks
  uint32_t block = 0;
  uint32_t phase = 0;           // collectives this thread has passed
  uint32_t group = 0;           // cp.async groups committed
  uint32_t bulk_group = 0;      // cp.async.bulk groups committed
  uint32_t register_count = 0;  // registers per thread by setmaxnreg
  uint32_t cluster_arrivals = 0, cluster_waits = 0;
  uint32_t* clock = nullptr;
  Meeting meeting;
  Waiting waiting;
  std::vector<PendingCopy> copies;
  std::vector<UnfinishedStore> bulk_stores;
  std::vector<LeftOperand> left_operands;
  std::vector<uint32_t> wgmma_groups;  // multiplications issued up to each wgmma.commit_group
  int warp() const { return index / 32; }
  int lane() const { return index % 32; }
};

// xorshift: small, seeded, the same everywhere.
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  uint32_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return uint32_t(state >> 32);
  }
  uint32_t below(uint32_t n) { return next() % n; }
  template <class T> void shuffle(std::vector<T>& items) {
    for (uint32_t i = uint32_t(items.size()); i > 1; i--) std::swap(items[i - 1], items[below(i)]);
  }
};

struct NamedBarrier {
  uint32_t arrived = 0, expected = 0, line = 0;
  int thread = 0;  // the first that arrived
  Clock clock;
};

struct Block {
  uint32_t number = 0;
  int arrived = 0, finished = 0;  // threads at the block barrier, threads that returned
  uint32_t free_registers = 0;    // given up by setmaxnreg.dec and not taken yet
  char* shared = nullptr;         // the shared window
  NamedBarrier named[16];
};

struct Machine {
  std::vector<Region> regions;
  std::vector<Block> blocks;       // of the running cluster, by rank
  std::vector<Thread> threads;     // block after block
  std::vector<uint32_t> clocks;    // of the threads
  std::vector<int> warp_order, lane_order;
  Fiber scheduler;
  Random random{0};
  Findings findings;
  Rows<TraceRow> trace;
  bool tracing = false, checking = false, aborted = false;
  uint32_t sequence = 0, registers_per_thread = 0;
  uint64_t events = 0;             // arrivals, completions and ends so far: what can let somebody go on
  int block_threads = 0, finished = 0;
  size_t slots = 0, copy_slots = 0;  // clock slots: threads, then matrix units, then copy engines
  size_t dependency_slot = 0;        // and between these, one that griddepcontrol.wait sets to 1
  int slots_per_block = 0;         // threads of a block, rounded up to whole warps
  char* shared = nullptr;          // the windows of the cluster's blocks, `stride` bytes apart
  uint32_t shared_bytes = 0, stride = 0;
  Clock cluster_clock, cluster_done;
  int cluster_arrived = 0;
  uint32_t cluster_generation = 0;

  Thread& self() { return *static_cast<Thread*>(current); }
  Block& own_block() { return blocks[size_t(self().rank)]; }
  int warpgroups() const { return (block_threads + warpgroup_threads - 1) / warpgroup_threads; }
  // The block whose window holds the address.
  int rank_of(const char* address) const {
    if (address < shared) return 0;
    return std::min(int((address - shared) / stride), int(blocks.size()) - 1);
  }
  char* window(int rank) const { return shared + size_t(rank) * stride; }
};

extern Machine machine;

inline Finding finding_at(const Thread& thread, FindingKind kind, uint32_t detail = no_detail) {
  Finding found = {};
  found.kind = kind;
  found.detail = detail;
  found.line = thread.line;
  found.block = thread.block;
  found.thread = thread.index;
  found.other_thread = -1;
  return found;
}

inline void report_at(const Thread& thread, FindingKind kind, int region, int64_t offset, uint32_t bytes,
                      int other_thread, uint32_t other_line, uint32_t detail = no_detail, int64_t amount = 0) {
  Finding found = finding_at(thread, kind, detail);
  found.other_line = other_line;
  found.other_thread = other_thread;
  found.region = region;
  found.bytes = bytes;
  found.offset = offset;
  found.amount = amount;
  machine.findings.add(found);
}

inline void report(FindingKind kind, int region = 0, int64_t offset = 0, uint32_t bytes = 0, int other_thread = -1,
                   uint32_t other_line = 0, uint32_t detail = no_detail, int64_t amount = 0) {
  report_at(machine.self(), kind, region, offset, bytes, other_thread, other_line, detail, amount);
}

// ---- clocks of threads ---------------------------------------------------------------------------------------------

inline uint32_t& own_time(Thread& thread) { return thread.clock[thread.slot]; }

// What the thread did so far is handed over; what it does next is not.
inline void release(Thread& thread, Clock& to) {
  if (!machine.checking) return;
  to.join(thread.clock);
  own_time(thread)++;
}

inline void acquire(Thread& thread, const Clock& from) {
  if (machine.checking) join_clocks(thread.clock, from.data(), 2 * machine.slots);
}

// The same where the thread itself took part in `from`, which therefore says no less than its own clock.
inline void acquire_all(Thread& thread, const Clock& from) {
  if (!machine.checking) return;
  const uint32_t time = own_time(thread);
  std::memcpy(thread.clock, from.data(), 2 * machine.slots * sizeof(uint32_t));
  own_time(thread) = time;
}

// Everything the thread knows of is now visible to wgmma and bulk copies too.
inline void fence_proxy(Thread& thread) {
  if (!machine.checking) return;
  std::memcpy(thread.clock + machine.slots, thread.clock, machine.slots * sizeof(uint32_t));
  own_time(thread)++;
}

// ---- switching -----------------------------------------------------------------------------------------------------

inline void to_scheduler(Thread& thread) { switch_fiber(thread.fiber, machine.scheduler); }

// Gives up the whole run; the stacks are simply abandoned.
[[noreturn]] inline void abort_run() {
  machine.aborted = true;
  for (;;) to_scheduler(machine.self());
}

// Lets the others run until `over` says so, or without it until somebody makes the thread ready.
inline void wait_for(Thread& me, const Waiting& waiting) {
  me.waiting = waiting;
  if (waiting.over && waiting.over(me)) return;
  me.state = State::waiting;
  to_scheduler(me);
}

inline uint32_t existing_lanes(int warp) {
  const int count = machine.block_threads - 32 * warp;
  return count >= 32 ? full_warp : (1u << count) - 1;
}

inline Thread& lane_of(const Thread& thread, int lane) {
  return machine.threads[size_t(thread.rank * machine.block_threads + 32 * thread.warp() + lane)];
}

// Waits until all lanes in `mask` are here, then performs the instruction once for all of them.
inline void meet_warp(uint32_t mask, int instruction, Perform perform, void* operands) {
  step();
  Thread& me = machine.self();
  mask &= existing_lanes(me.warp());
  if (!(mask >> me.lane() & 1)) {
    report(divergent_warp);
    abort_run();
  }
  me.meeting = {mask, instruction, perform, operands};
  me.state = State::at_warp;
  Thread* lanes[32];
  for (int lane = 0; lane < 32; lane++) {
    lanes[lane] = nullptr;
    if (!(mask >> lane & 1)) continue;
    Thread& other = lane_of(me, lane);
    if (other.state != State::at_warp || other.meeting.mask != mask) {
      to_scheduler(me);  // somebody is still missing; the last one to come performs it
      return;
    }
    lanes[lane] = &other;
  }
  for (Thread* lane : lanes) {
    if (!lane) continue;
    if (lane->meeting.instruction != instruction || (checked && lane->line != me.line)) {
      report(divergent_warp, 0, 0, 0, lane->index, lane->line);
      abort_run();
    }
  }
  perform(lanes, mask);
  for (Thread* lane : lanes) {
    if (!lane) continue;
    lane->state = State::ready;
    lane->phase++;
  }
}

inline void need_full_warp(uint32_t mask) {
  if (mask == full_warp) return;
  report(divergent_warp);
  abort_run();
}

inline TraceRow* trace_row(Thread& thread, TraceKind kind, int instruction) {
  TraceRow* row = machine.trace.add();
  row->sequence = machine.sequence++;
  row->block = thread.block;
  row->warp = uint16_t(thread.warp());
  row->lane = uint8_t(thread.lane());
  row->line = thread.line;
  row->phase = thread.phase;
  row->kind = kind;
  row->instruction = uint16_t(instruction);
  row->buffer = -1;
  row->shared = -1;
  row->source_lane = -1;
  row->rank = uint8_t(thread.rank);
  return row;
}

}  // namespace emulator
