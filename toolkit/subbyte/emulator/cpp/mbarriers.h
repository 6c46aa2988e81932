// mbarrier objects in shared memory: arrivals, expected bytes, phases (PTX ISA, "mbarrier").
#pragma once
#include <unordered_map>
#include "accesses.h"

namespace emulator {

struct MBarrier {
  uint32_t count = 0, pending = 0;  // arrivals of a phase, and those that are still missing
  int64_t bytes = 0;                // announced by expect_tx and not arrived yet
  uint32_t phase = 0;               // phases completed
  uint32_t line = 0;                // of mbarrier.init
  int32_t owner = 0;                // slot of the thread that initialised it
  bool fenced = false;              // its initialisation is visible to bulk copies
  bool published = false;           // by fence.mbarrier_init: the owner's next arrival at the cluster barrier, though
  uint32_t visible = 0;             // relaxed, shows it to who waited there this often
  Clock gathering, done;
};

// By the byte in the windows of the cluster.
static std::unordered_map<size_t, MBarrier> mbarriers;
constexpr uint32_t most_arrivals = (1u << 20) - 1;
enum MBarrierMode : uint8_t { mode_init = 0, mode_arrive, mode_expect, mode_wait, mode_invalidate };

static void report_mbarrier(size_t key, uint32_t detail, uint32_t number = 0, int64_t amount = 0) {
  const auto known = mbarriers.find(key);
  report(bad_mbarrier, shared_window, int64_t(key % machine.stride), number, -1,
         known == mbarriers.end() ? 0 : known->second.line, detail, amount);
}

static Place barrier_place(Pointer<void> pointer) {
  Place place;
  if (checked) place = find_place(region_of(pointer), address_of(pointer), 8, 8);
  if (!checked || !place.region) {
    place.rank = machine.rank_of(address_of(pointer));
    place.in_window = address_of(pointer) - machine.window(place.rank);
  }
  return place;
}

static void trace_mbarrier(const Place& place, MBarrierMode mode, int instruction, uint64_t value) {
  if (!checked || !machine.tracing) return;
  TraceRow* row = trace_row(machine.self(), mbarrier_kind, instruction);
  row->mode = mode;
  row->offset = place.in_window;
  row->shared = int32_t(place.in_window);
  row->rank = uint8_t(place.rank);
  row->value = value;
  row->size = 8;
}

// The barrier at a place; ends the run when there is none.
static MBarrier& barrier_at(const Place& place) {
  const size_t key = place.shadow_index();
  const auto found = mbarriers.find(key);
  if (found == mbarriers.end()) {
    report_mbarrier(key, not_initialised);
    abort_run();
  }
  if (machine.checking) {
    const Thread& me = machine.self();
    const Access other = Shadow::unseen_write(shadow[key], me.clock);
    const MBarrier& barrier = found->second;
    const bool shown = other.slot == barrier.owner && barrier.visible && me.cluster_waits >= barrier.visible;
    if (other.slot >= 0 && !shown) report_place(me, race, place, 0, 8, other);
  }
  return found->second;
}

static void complete_phase_if_done(MBarrier& barrier) {
  if (barrier.pending || barrier.bytes) return;
  barrier.phase++;
  barrier.pending = barrier.count;
  machine.events++;
  if (!machine.checking) return;
  barrier.done.join(barrier.gathering);
  barrier.gathering.clear();
}

void mbarrier_init(int instruction, Pointer<void> pointer, uint32_t count) {
  step();
  Thread& me = machine.self();
  const Place place = barrier_place(pointer);
  const size_t key = place.shadow_index();
  if (count < 1 || count > most_arrivals) {
    report_mbarrier(key, bad_count, count);
    abort_run();
  }
  if (mbarriers.count(key)) report_mbarrier(key, initialised_twice);
  MBarrier& barrier = mbarriers[key];
  barrier = MBarrier();
  barrier.count = barrier.pending = count;
  barrier.line = me.line;
  barrier.owner = me.slot;
  if (machine.checking) {
    barrier.gathering.reset(machine.slots);
    barrier.done.reset(machine.slots);
    for (size_t i = key; i < key + 8; i++) shadow[i].is_barrier = 0;
    if (place.region) note_shared(me, place, 8, access_now(me), me.clock, true);
    for (size_t i = key; i < key + 8; i++) shadow[i].is_barrier = 1;
  }
  trace_mbarrier(place, mode_init, instruction, count);
}

void mbarrier_invalidate(int instruction, Pointer<void> pointer) {
  step();
  const Place place = barrier_place(pointer);
  barrier_at(place);
  trace_mbarrier(place, mode_invalidate, instruction, 0);
  for (const Thread& other : machine.threads) {
    const bool here = other.waiting.kind == WaitKind::mbarrier && other.waiting.object == int64_t(place.shadow_index());
    if (!here || other.state == State::finished) continue;
    report_at(machine.self(), bad_mbarrier, shared_window, place.in_window, 8, other.index, other.line,
              invalidated_in_use);
    abort_run();
  }
  mbarriers.erase(place.shadow_index());
  if (machine.checking)
    for (size_t i = 0; i < 8; i++) shadow[place.shadow_index() + i].is_barrier = 0;
}

static void expect_bytes(MBarrier& barrier, const Place& place, uint32_t bytes) {
  barrier.bytes += bytes;
  if (barrier.bytes > int64_t(most_arrivals))
    report_mbarrier(place.shadow_index(), too_many_bytes, bytes, barrier.bytes);
}

void mbarrier_expect(int instruction, Pointer<void> pointer, uint32_t bytes) {
  step();
  const Place place = barrier_place(pointer);
  expect_bytes(barrier_at(place), place, bytes);
  trace_mbarrier(place, mode_expect, instruction, bytes);
}

// Returns the phase that the arrival belongs to.
uint64_t mbarrier_arrive(int instruction, Pointer<void> pointer, uint32_t count, uint32_t bytes, bool releases) {
  step();
  Thread& me = machine.self();
  const Place place = barrier_place(pointer);
  MBarrier& barrier = barrier_at(place);
  const uint64_t phase = barrier.phase;
  trace_mbarrier(place, mode_arrive, instruction, bytes);
  if (bytes) expect_bytes(barrier, place, bytes);
  if (count > barrier.pending) {
    report_mbarrier(place.shadow_index(), too_many_arrivals, count, barrier.pending);
    abort_run();
  }
  if (releases) release(me, barrier.gathering);
  barrier.pending -= count;
  machine.events++;
  complete_phase_if_done(barrier);
  return phase;
}

// Bytes of an asynchronous copy have arrived: `slot` is the engine that moved them, `time` its copy.
static void complete_bytes(size_t key, uint32_t bytes, int slot, uint32_t time) {
  const auto found = mbarriers.find(key);
  if (found == mbarriers.end()) return;  // invalidated meanwhile; found when the copy was issued
  MBarrier& barrier = found->second;
  barrier.bytes -= bytes;
  if (machine.checking)
    for (const size_t i : {size_t(slot), machine.slots + size_t(slot)})
      barrier.gathering.data()[i] = std::max(barrier.gathering.data()[i], time);
  machine.events++;
  complete_phase_if_done(barrier);
}

constexpr int64_t by_phase = int64_t(1) << 40;  // marks a wait for a phase number, not for a parity

static bool phase_is_over(Thread& thread) {
  const MBarrier& barrier = mbarriers[size_t(thread.waiting.object)];
  const int64_t value = thread.waiting.value;
  return value & by_phase ? barrier.phase > uint64_t(value ^ by_phase) : (barrier.phase & 1) != (value & 1);
}

// try_wait blocks until the phase is over, but may give up early, as in hardware; test_wait never blocks.
bool mbarrier_test(int instruction, Pointer<void> pointer, uint64_t phase, bool is_parity, bool blocks, bool acquires) {
  step();
  Thread& me = machine.self();
  const Place place = barrier_place(pointer);
  MBarrier& barrier = barrier_at(place);
  const int64_t value = is_parity ? int64_t(phase & 1) : int64_t(phase) | by_phase;
  const Waiting waiting = {WaitKind::mbarrier, phase_is_over, int64_t(place.shadow_index()), value};
  me.waiting = waiting;
  bool over = phase_is_over(me);
  if (!over && blocks && !(checked && machine.random.below(4) == 0)) {
    wait_for(me, waiting);
    over = true;
  } else if (!over) {
    me.spun = true;
    to_scheduler(me);
    over = phase_is_over(me);
  }
  me.waiting = {};
  if (over && acquires) acquire(me, barrier.done);
  if (over) trace_mbarrier(place, mode_wait, instruction, phase);
  return over;
}

// fence.mbarrier_init, and fence.proxy.async too: barriers this thread initialised may be used by bulk copies.
static void fence_own_barriers(const Thread& me) {
  for (auto& entry : mbarriers)
    if (entry.second.owner == me.slot) entry.second.fenced = true;
}

// An arrival at the cluster barrier shows the initialisations that were fenced before it to who waits there.
static void show_published_barriers(const Thread& me) {
  for (auto& entry : mbarriers)
    if (entry.second.owner == me.slot && entry.second.published && !entry.second.visible)
      entry.second.visible = me.cluster_arrivals;
}

static void trace_fence(int instruction) {
  if (checked && machine.tracing) trace_row(machine.self(), fence_kind, instruction);
}

// Its release orders the initialisations alone before a relaxed arrival at the cluster barrier (PTX ISA, membar/fence).
void fence_mbarrier_init(int instruction) {
  step();
  fence_own_barriers(machine.self());
  for (auto& entry : mbarriers)
    if (entry.second.owner == machine.self().slot) entry.second.published = true;
  trace_fence(instruction);
}

// fence.proxy.async: what this thread knows of is visible to wgmma and bulk copies from now on.
void fence_async(int instruction) {
  step();
  fence_own_barriers(machine.self());
  fence_proxy(machine.self());
  trace_fence(instruction);
}

static void describe_mbarrier(const Thread& thread, Finding& found) {
  const MBarrier& barrier = mbarriers[size_t(thread.waiting.object)];
  found.offset = thread.waiting.object % machine.stride;
  found.bytes = barrier.pending;
  found.amount = barrier.bytes;
  found.other_line = barrier.line;
}

}  // namespace emulator
