// Barriers of a warp, a block and a cluster, and the register budget of warpgroups.
#pragma once
#include "instructions.h"
#include "machine_state.h"

namespace emulator {

// ---- block ---------------------------------------------------------------------------------------------------------

static Clock meeting_clock;  // what the participants of the barrier being completed know together

static bool at_block_barrier(const Thread& thread, int rank) {
  return thread.rank == rank && thread.state == State::waiting && thread.waiting.kind == WaitKind::block_barrier;
}

static void release_block_if_complete(Block& block) {
  if (block.arrived == 0 || block.arrived + block.finished < machine.block_threads) return;
  const int rank = int(&block - machine.blocks.data());
  const Thread* first = nullptr;
  if (machine.checking) meeting_clock.clear();
  for (Thread& thread : machine.threads) {
    if (!at_block_barrier(thread, rank)) continue;
    if (!first) first = &thread;
    if (checked && first->line != thread.line)
      report_at(thread, divergent_barrier, 0, 0, 0, first->index, first->line);
    release(thread, meeting_clock);
  }
  if (checked && block.finished > 0) report_at(*first, divergent_barrier, 0, 0, 0, -1, 0);
  for (Thread& thread : machine.threads) {
    if (!at_block_barrier(thread, rank)) continue;
    acquire_all(thread, meeting_clock);
    thread.state = State::ready;
  }
  block.arrived = 0;
  machine.events++;
}

void block_barrier() {
  step();
  Thread& me = machine.self();
  if (checked && machine.tracing) trace_row(me, barrier, Instruction::barrier_block);
  me.phase++;
  me.waiting = {WaitKind::block_barrier};
  me.state = State::waiting;
  machine.own_block().arrived++;
  release_block_if_complete(machine.own_block());
  if (me.state == State::waiting) to_scheduler(me);
}

// ---- named barriers (bar.sync, bar.arrive with a number and a count of threads) -------------------------------------

static NamedBarrier& arrive_at(uint32_t number, uint32_t count) {
  Thread& me = machine.self();
  const uint32_t threads = uint32_t(machine.block_threads);
  const uint32_t wrong = number > 15 ? no_such_barrier : count % 32 || !count || count > threads ? count_not_warps : 0;
  if (wrong) {
    report(bad_barrier, 0, number, count, -1, 0, wrong);
    abort_run();
  }
  NamedBarrier& barrier = machine.own_block().named[number];
  if (!barrier.arrived) {
    barrier.expected = count;
    barrier.line = me.line;
    barrier.thread = me.index;
  }
  if (barrier.expected != count) {
    report(bad_barrier, 0, number, count, barrier.thread, barrier.line, count_differs, barrier.expected);
    abort_run();
  }
  release(me, barrier.clock);
  barrier.arrived++;
  machine.events++;
  me.phase++;
  return barrier;
}

static void complete_if_full(NamedBarrier& barrier, uint32_t number) {
  if (barrier.arrived < barrier.expected) return;
  const int rank = machine.self().rank;
  for (Thread& thread : machine.threads) {
    const bool here = thread.rank == rank && thread.state == State::waiting &&
                      thread.waiting.kind == WaitKind::named_barrier && thread.waiting.object == int64_t(number);
    if (!here) continue;
    acquire(thread, barrier.clock);
    thread.state = State::ready;
  }
  barrier.arrived = 0;
  if (machine.checking) barrier.clock.clear();
}

void named_barrier(int instruction, uint32_t number, uint32_t count, bool waits) {
  step();
  Thread& me = machine.self();
  if (checked && machine.tracing) trace_row(me, TraceKind::barrier, instruction)->value = number;
  NamedBarrier& barrier = arrive_at(number, count);
  if (waits) {
    me.waiting = {WaitKind::named_barrier, nullptr, int64_t(number), int64_t(count)};
    me.state = State::waiting;
  }
  complete_if_full(barrier, number);
  if (me.state == State::waiting) to_scheduler(me);
}

// ---- cluster -------------------------------------------------------------------------------------------------------

static void release_cluster_if_complete() {
  const int threads = int(machine.threads.size());
  if (machine.cluster_arrived == 0 || machine.cluster_arrived + machine.finished < threads) return;
  machine.cluster_arrived = 0;
  machine.cluster_generation++;
  machine.events++;
  if (machine.checking) {
    machine.cluster_done.join(machine.cluster_clock);
    machine.cluster_clock.clear();
  }
}

static void show_published_barriers(const Thread& me);  // mbarriers.h

void cluster_arrive(int instruction, bool releases) {
  step();
  Thread& me = machine.self();
  if (checked && machine.tracing) trace_row(me, TraceKind::barrier, instruction);
  if (me.cluster_arrivals != me.cluster_waits) report(bad_cluster, 0, 0, 0, -1, 0, arrive_twice);
  me.cluster_arrivals++;
  me.phase++;
  if (releases) release(me, machine.cluster_clock);
  show_published_barriers(me);
  machine.cluster_arrived++;
  machine.events++;
  release_cluster_if_complete();
}

void cluster_wait(int) {
  step();
  Thread& me = machine.self();
  if (me.cluster_arrivals == me.cluster_waits) {
    report(bad_cluster, 0, 0, 0, -1, 0, wait_without_arrive);
    abort_run();
  }
  wait_for(me, {WaitKind::cluster_barrier,
                [](Thread& thread) { return machine.cluster_generation >= thread.cluster_arrivals; }});
  me.cluster_waits++;
  acquire(me, machine.cluster_done);
}

// ---- warp ----------------------------------------------------------------------------------------------------------

static void perform_warp_barrier(Thread* const* lanes, uint32_t) {
  if (machine.checking) {
    meeting_clock.clear();
    for (int i = 0; i < 32; i++)
      if (lanes[i]) release(*lanes[i], meeting_clock);
  }
  for (int i = 0; i < 32; i++) {
    if (!lanes[i]) continue;
    acquire_all(*lanes[i], meeting_clock);
    if (checked && machine.tracing) trace_row(*lanes[i], barrier, Instruction::barrier_warp);
  }
}

void warp_barrier(uint32_t mask) { meet_warp(mask, Instruction::barrier_warp, perform_warp_barrier, nullptr); }

// elect.sync: one lane of the mask, the same one each time.
static void perform_elect(Thread* const* lanes, uint32_t mask) {
  const uint32_t leader = uint32_t(__builtin_ctz(mask));
  for (int i = 0; i < 32; i++)
    if (lanes[i]) *(uint32_t*)lanes[i]->meeting.operands = leader;
}

uint32_t elect(int instruction, uint32_t mask) {
  uint32_t leader = 0;
  meet_warp(mask, instruction, perform_elect, &leader);
  return leader;
}

// redux.sync.max.u32: the largest value of the lanes of the mask.
static void perform_largest(Thread* const* lanes, uint32_t mask) {
  uint32_t largest = 0;
  for (int i = 0; i < 32; i++)
    if (lanes[i]) largest = std::max(largest, *(uint32_t*)lanes[i]->meeting.operands);
  for (int i = 0; i < 32; i++)
    if (lanes[i]) *(uint32_t*)lanes[i]->meeting.operands = largest;
}

uint32_t largest_of_warp(int instruction, uint32_t value, uint32_t mask) {
  meet_warp(mask, instruction, perform_largest, &value);
  return value;
}

// ---- registers of a warpgroup --------------------------------------------------------------------------------------

struct RegisterRequest {
  uint32_t wanted;
  bool more;
};

// setmaxnreg: a warp gives registers back to its block, or waits until the block has enough of them.
static void perform_registers(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
  const RegisterRequest& request = *(RegisterRequest*)lanes[0]->meeting.operands;
  const uint32_t has = lanes[0]->register_count, wanted = request.wanted;
  if (wanted < 24 || wanted > 256 || wanted % 8 || (request.more ? wanted < has : wanted > has)) {
    report(register_budget, 0, has, wanted);
    abort_run();
  }
  if (!request.more) {
    machine.blocks[size_t(lanes[0]->rank)].free_registers += (has - wanted) * 32;
    for (int lane = 0; lane < 32; lane++) lanes[lane]->register_count = wanted;
  }
  machine.events++;
}

static bool registers_suffice(Thread& thread) {
  if (thread.register_count >= uint32_t(thread.waiting.value)) return true;
  Block& block = machine.blocks[size_t(thread.rank)];
  const uint32_t needed = (uint32_t(thread.waiting.value) - thread.register_count) * 32;
  if (block.free_registers < needed) return false;
  block.free_registers -= needed;
  for (int lane = 0; lane < 32; lane++) lane_of(thread, lane).register_count = uint32_t(thread.waiting.value);
  return true;
}

void set_registers(int instruction, uint32_t wanted, bool more) {
  Thread& me = machine.self();
  RegisterRequest request = {wanted, more};
  meet_warp(full_warp, instruction, perform_registers, &request);
  if (more) wait_for(me, {WaitKind::registers, registers_suffice, int64_t(me.register_count), int64_t(wanted)});
}

}  // namespace emulator
