// Threads of one block, the order in which they run, and where they wait for each other.
//
// A thread runs until it meets a collective (barrier, shuffle, matrix instruction). The last thread to
// arrive performs the collective for all and everybody becomes ready again. Checked runs pick warps and
// lanes in a seeded random order; unchecked runs finish one warp before the next.
#pragma once
#include <algorithm>
#include <vector>
#include "fibers.h"
#include "report.h"

namespace emulator {

enum class State : uint8_t { ready, at_warp, at_block, finished };

struct Thread;
// Performs one collective; `lanes` are the 32 threads of the warp, valid where `mask` has a bit.
using Perform = void (*)(Thread* const* lanes, uint32_t mask);

struct Meeting {
  uint32_t mask = 0;
  int instruction = 0;
  Perform perform = nullptr;
  void* operands = nullptr;
};

struct PendingCopy {
  char* source;
  uint32_t target, bytes, valid, group, line;
};

struct Thread : ThreadView {
  Fiber fiber;
  State state = State::ready;
  int index = 0;
  uint32_t phase = 0;       // collectives this thread has passed
  uint32_t warp_phase = 0;  // __syncwarp this thread has passed
  uint32_t group = 0;       // cp.async groups committed
  Meeting meeting;
  std::vector<PendingCopy> copies;
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

struct Machine {
  std::vector<Region> regions;
  std::vector<Thread> threads;
  std::vector<int> warp_order, lane_order;
  Fiber scheduler;
  Random random{0};
  Findings findings;
  Rows<TraceRow> trace;
  bool tracing = false, checking = false, aborted = false;
  uint32_t epoch = 1, block = 0, sequence = 0;
  int arrived = 0, finished = 0;  // threads at the block barrier, threads that returned
  char* shared = nullptr;         // the shared window
  uint32_t shared_bytes = 0;

  Thread& self() { return *static_cast<Thread*>(current); }
};

extern Machine machine;

inline void report_at(const Thread& thread, FindingKind kind, int region, int64_t offset, uint32_t bytes,
                      int other_thread, uint32_t other_line) {
  Finding found = {};
  found.kind = kind;
  found.line = thread.line;
  found.other_line = other_line;
  found.block = machine.block;
  found.thread = thread.index;
  found.other_thread = other_thread;
  found.region = region;
  found.bytes = bytes;
  found.offset = offset;
  machine.findings.add(found);
}

inline void report(FindingKind kind, int region = 0, int64_t offset = 0, uint32_t bytes = 0, int other_thread = -1,
                   uint32_t other_line = 0) {
  report_at(machine.self(), kind, region, offset, bytes, other_thread, other_line);
}

inline void to_scheduler(Thread& thread) { switch_fiber(thread.fiber, machine.scheduler); }

// Gives up the whole run; the stacks are simply abandoned.
[[noreturn]] inline void abort_run() {
  machine.aborted = true;
  for (;;) to_scheduler(machine.self());
}

inline void release_block_if_complete() {
  if (machine.arrived == 0 || machine.arrived + machine.finished < int(machine.threads.size())) return;
  const Thread* first = nullptr;
  for (Thread& thread : machine.threads) {
    if (thread.state != State::at_block) continue;
    if (!first) first = &thread;
    if (checked && first->line != thread.line)
      report_at(thread, divergent_barrier, 0, 0, 0, first->index, first->line);
  }
  if (checked && machine.finished > 0) report_at(*first, divergent_barrier, 0, 0, 0, -1, 0);
  for (Thread& thread : machine.threads)
    if (thread.state == State::at_block) thread.state = State::ready;
  machine.arrived = 0;
  machine.epoch++;
}

inline uint32_t existing_lanes(int warp) {
  const int count = int(machine.threads.size()) - 32 * warp;
  return count >= 32 ? full_warp : (1u << count) - 1;
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
    Thread& other = machine.threads[32 * me.warp() + lane];
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

inline void report_deadlock() {
  for (Thread& thread : machine.threads) {
    if (thread.state == State::at_block || thread.state == State::at_warp) {
      int missing = -1;
      for (Thread& other : machine.threads)
        if (other.state == State::finished || other.state != thread.state) missing = other.index;
      report_at(thread, deadlock, 0, 0, 0, missing, missing < 0 ? 0 : machine.threads[missing].line);
    }
  }
  machine.aborted = true;
}

// Runs every ready lane of a warp until it waits; true if any ran.
inline bool run_warp_once(int warp) {
  bool any = false;
  const int first = 32 * warp, size = int(machine.threads.size());
  if (checked) machine.random.shuffle(machine.lane_order);
  for (int lane : machine.lane_order) {
    if (first + lane >= size) continue;
    Thread& thread = machine.threads[first + lane];
    if (thread.state != State::ready) continue;
    any = true;
    current = &thread;
    switch_fiber(machine.scheduler, thread.fiber);
    if (machine.aborted) return false;
  }
  return any;
}

// Runs all threads of the current block to their end; stops early on a deadlock or an abort.
inline void run_block_threads() {
  while (machine.finished < int(machine.threads.size()) && !machine.aborted) {
    bool progress = false;
    if (checked) machine.random.shuffle(machine.warp_order);
    for (int warp : machine.warp_order) {
      // a random number of rounds, so that some warps run ahead of others
      int rounds = checked ? 1 + int(machine.random.below(8)) : 1 << 30;
      while (rounds-- > 0 && run_warp_once(warp)) progress = true;
      if (machine.aborted) return;
    }
    if (!progress) report_deadlock();
  }
}

}  // namespace emulator
