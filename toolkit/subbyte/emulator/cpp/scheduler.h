// The order in which the threads of a cluster run.
//
// A thread runs until it meets a collective or has to wait. The last thread to arrive performs the collective for all.
// Checked runs pick warps and lanes in a seeded random order, let some warps fall far behind, and finish asynchronous
// work at random times between its start and the wait for it; unchecked runs finish one warp before the next.
#pragma once
#include "machine_state.h"

namespace emulator {

// Finishes one piece of the asynchronous work under way; false when there is none.
static bool advance_asynchronous();
// Fills in what a thread that waits for an mbarrier is missing.
static void describe_mbarrier(const Thread& thread, Finding& found);
static void describe_warpgroup(const Thread& thread, Finding& found);  // the same for a wgmma.wait_group

inline Finding deadlock_of(Thread& thread) {
  static const uint32_t details[] = {no_detail, no_detail, waits_for_named_barrier, waits_for_cluster,
                                     waits_for_mbarrier, waits_for_warpgroup, waits_for_registers};
  const bool at_warp = thread.state == State::at_warp;
  Finding found = finding_at(thread, deadlock, at_warp ? uint32_t(no_detail) : details[int(thread.waiting.kind)]);
  found.offset = thread.waiting.object;
  found.amount = thread.waiting.value;
  if (found.detail == waits_for_mbarrier) describe_mbarrier(thread, found);
  if (found.detail == waits_for_warpgroup) describe_warpgroup(thread, found);
  if (found.detail == waits_for_named_barrier)
    found.bytes = machine.blocks[size_t(thread.rank)].named[thread.waiting.object].arrived;
  if (found.detail == waits_for_registers) found.bytes = machine.blocks[size_t(thread.rank)].free_registers;
  if (found.detail == no_detail)
    for (const Thread& other : machine.threads) {
      if (other.rank != thread.rank) continue;
      const bool elsewhere = other.state != thread.state || other.waiting.kind != thread.waiting.kind;
      if (other.state != State::finished && !elsewhere) continue;
      found.other_thread = other.index;
      found.other_line = other.line;
    }
  return found;
}

inline void report_deadlock() {
  for (Thread& thread : machine.threads) {
    const bool spins = thread.state == State::ready && thread.waiting.kind == WaitKind::mbarrier;
    if (spins || thread.state == State::waiting || thread.state == State::at_warp)
      machine.findings.add(deadlock_of(thread));
  }
  machine.aborted = true;
}

// Runs every lane of a warp that can go on until it waits; true if any did more than test in vain.
inline bool run_warp_once(int warp) {
  const int warps = (machine.block_threads + 31) / 32;
  const int first = warp / warps * machine.block_threads + warp % warps * 32;
  const int count = std::min(32, machine.block_threads - warp % warps * 32);
  bool any = false;
  if (checked) machine.random.shuffle(machine.lane_order);
  for (int lane : machine.lane_order) {
    if (lane >= count) continue;
    Thread& thread = machine.threads[size_t(first + lane)];
    if (thread.state == State::waiting && thread.waiting.over && thread.waiting.over(thread))
      thread.state = State::ready;
    if (thread.state != State::ready) continue;
    const uint64_t events = machine.events;
    thread.spun = false;
    current = &thread;
    switch_fiber(machine.scheduler, thread.fiber);
    any |= !thread.spun || machine.events != events;
    if (machine.aborted) return false;
  }
  return any;
}

// How many times in a row a warp may run now: none for a while when it is the slow one.
inline int turns(int warp, int slow_warp, bool patient) {
  if (!checked) return 1 << 30;
  if (patient && machine.random.below(16) < (warp == slow_warp ? 14u : 2u)) return 0;
  return 1 + int(machine.random.below(8));
}

// Runs all threads of the cluster to their end; stops early on a deadlock or an abort.
inline void run_threads() {
  bool patient = true;  // somebody made progress lately, so that others may be kept waiting
  const int slow_warp = checked ? int(machine.random.below(2 * uint32_t(machine.warp_order.size()))) : -1;
  while (machine.finished < int(machine.threads.size()) && !machine.aborted) {
    bool progress = false;
    if (checked) machine.random.shuffle(machine.warp_order);
    for (int warp : machine.warp_order) {
      int rounds = turns(warp, slow_warp, patient);
      while (rounds-- > 0 && run_warp_once(warp)) progress = true;
      if (machine.aborted) return;
      if (checked && machine.random.below(4) == 0) progress |= advance_asynchronous();
    }
    if (!progress && !patient && !advance_asynchronous()) report_deadlock();
    patient = progress;
  }
}

}  // namespace emulator
