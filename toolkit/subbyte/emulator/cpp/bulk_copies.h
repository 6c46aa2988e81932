// Bulk copies, st.async and their groups: data that moves by itself (PTX ISA, "cp.async.bulk", "st.async").
//
// A copy is checked when it is issued; its bytes move at some later time, and until then nobody may touch them.
#pragma once
#include "copies.h"
#include "mbarriers.h"

namespace emulator {

constexpr int copy_engines = 16;  // of one block; each has a clock slot

struct BulkCopy {
  Thread* issuer;
  const char* source;
  char* target;
  uint32_t bytes, line, group, time;
  int slot;
  int target_rank;   // -1: global memory
  size_t barrier;
  uint32_t words[4];  // the data of st.async
};

static std::vector<BulkCopy> bulk_copies;
static std::vector<uint32_t> engine_times;
static uint32_t next_engine;

static BulkCopy new_copy(Thread& me, uint32_t bytes) {
  BulkCopy copy = {};
  copy.issuer = &me;
  copy.bytes = bytes;
  copy.line = me.line;
  copy.group = me.bulk_group;
  copy.target_rank = -1;
  if (!checked) return copy;
  const size_t engine = size_t(me.rank * copy_engines) + next_engine++ % copy_engines;
  copy.slot = int(machine.slots - machine.copy_slots + engine);
  copy.time = ++engine_times[engine];
  return copy;
}

static void finish_bulk(const BulkCopy& copy) {
  std::memmove(copy.target, copy.source ? copy.source : (const char*)copy.words, copy.bytes);
  if (copy.target_rank < 0) return;
  const size_t first = size_t(copy.target - machine.shared);
  if (machine.checking) mark_arrived(first, copy.bytes, {copy.slot, copy.time, copy.line});
  complete_bytes(copy.barrier, copy.bytes, copy.slot, copy.time);
}

static void start_bulk(const BulkCopy& copy) {
  if (checked) bulk_copies.push_back(copy);
  else finish_bulk(copy);
}

// What wgmma and bulk copies read of shared memory: written before, and seen through a proxy fence.
static void note_async_read(const Thread& thread, const Place& place, uint32_t bytes, const Access& now,
                            const uint32_t* clock) {
  const int threads = int(machine.blocks.size()) * machine.slots_per_block;
  for (uint32_t i = 0; i < bytes; i++) {
    const Access& written = shadow[place.shadow_index() + i].written;
    const bool by_thread = written.slot >= 0 && written.slot < threads;
    if (!by_thread || clock[written.slot] < written.time) continue;
    if (clock[machine.slots + size_t(written.slot)] >= written.time) continue;
    report_place(thread, missing_proxy_fence, place, i, bytes, written);
    break;
  }
  note_shared(thread, place, bytes, now, clock, false);
}

// A copy into the shared memory of a block of the cluster; false when it must not be made.
static bool aim_at_shared(BulkCopy& copy, Pointer<void> target, Pointer<void> barrier) {
  copy.target = address_of(target);
  const Place barrier_at_ = barrier_place(barrier);
  copy.barrier = barrier_at_.shadow_index();
  copy.target_rank = machine.rank_of(copy.target);
  Thread& me = *copy.issuer;
  const MBarrier& completed = barrier_at(barrier_at_);
  if (!checked) return true;
  const Place place = find_place(cluster_window, copy.target, copy.bytes, copy.bytes % 16 ? 4 : 16);
  if (!place.region) return false;
  if (!machine.checking) return true;
  if (!completed.fenced)
    report_at(me, missing_proxy_fence, shared_window, barrier_at_.in_window, 8, -1, completed.line);
  note_shared(me, place, copy.bytes, {copy.slot, copy.time, copy.line}, me.clock, true);
  mark_pending(place.shadow_index(), copy.bytes, copy.line);
  return true;
}

static bool right_size(uint32_t bytes, int number) {
  if (bytes % 16 == 0 && bytes) return true;
  report(bad_copy, number, 0, bytes);
  return false;
}

static void trace_bulk(const BulkCopy& copy, const Place& global, TraceKind kind, int instruction, uint32_t shared) {
  TraceRow* row = trace_row(*copy.issuer, kind, instruction);
  row->buffer = int16_t(global.region && !global.is_shared() ? global.region->argument : -1);
  row->offset = global.offset;
  row->shared = int32_t(shared);
  row->size = row->valid = copy.bytes;
  row->rank = uint8_t(copy.target_rank < 0 ? copy.issuer->rank : copy.target_rank);
}

// cp.async.bulk into shared memory of this block, of another one, or with a mask of ranks of several at once.
void bulk_load(int instruction, Pointer<void> target, Pointer<void> source, uint32_t bytes, Pointer<void> barrier,
               uint32_t ranks) {
  step();
  Thread& me = machine.self();
  if (checked && !right_size(bytes, region_of(source) < 0 ? shared_window : region_of(source))) return;
  Place from;
  if (checked) {
    from = find_place(region_of(source), address_of(source), bytes, 16);
    if (!from.region) return;
    note_dependency(from, bytes);
  }
  const int own = machine.rank_of(address_of(target));
  for (int rank = 0; rank < int(machine.blocks.size()); rank++) {
    if (ranks ? !(ranks >> rank & 1) : rank != own) continue;
    BulkCopy copy = new_copy(me, bytes);
    copy.source = address_of(source);
    const auto there = [&](Pointer<void> pointer) {
      const int home = machine.rank_of(address_of(pointer));
      char* moved = ranks ? machine.window(rank) + (address_of(pointer) - machine.window(home)) : address_of(pointer);
      return pointer_into(moved, cluster_window);
    };
    if (machine.checking && from.is_shared())
      note_async_read(me, from, bytes, {copy.slot, copy.time, copy.line}, me.clock);
    if (checked && machine.tracing && from.region) {
      copy.target_rank = rank;
      const uint32_t byte = uint32_t(address_of(there(target)) - machine.window(rank));
      trace_bulk(copy, from, bulk_copy_kind, instruction, byte);
    }
    if (aim_at_shared(copy, there(target), there(barrier))) start_bulk(copy);
  }
  if (ranks >> machine.blocks.size()) report(bad_cluster, 0, 0, 0, -1, 0, no_such_rank, 31 - __builtin_clz(ranks));
}

// cp.async.bulk from shared to global memory.
void bulk_store(int instruction, Pointer<void> target, Pointer<void> source, uint32_t bytes) {
  step();
  Thread& me = machine.self();
  BulkCopy copy = new_copy(me, bytes);
  copy.source = address_of(source);
  copy.target = address_of(target);
  if (checked) {
    if (!right_size(bytes, region_of(target))) return;
    const Place to = find_place(region_of(target), copy.target, bytes, 16);
    const Place from = find_place(region_of(source), copy.source, bytes, 16);
    if (!to.region || !from.region) return;
    if (machine.checking) {
      note_async_read(me, from, bytes, {copy.slot, copy.time, copy.line}, me.clock);
      note_global_write(to, bytes, false);
    }
    if (machine.tracing) trace_bulk(copy, to, bulk_store_kind, instruction, uint32_t(from.in_window));
    if (!to.region->is_output) return;
    me.bulk_stores.push_back({copy.group, copy.time, copy.line, bytes, copy.slot});
  }
  start_bulk(copy);
}

// st.async: up to four words for another block's shared memory, counted by its mbarrier.
void store_async(int instruction, Pointer<void> target, const uint32_t* words, int count, Pointer<void> barrier) {
  step();
  BulkCopy copy = new_copy(machine.self(), uint32_t(4 * count));
  std::memcpy(copy.words, words, copy.bytes);
  if (!aim_at_shared(copy, target, barrier)) return;
  if (checked && machine.tracing)
    trace_bulk(copy, Place(), bulk_copy_kind, instruction,
               uint32_t(copy.target - machine.window(copy.target_rank)));
  start_bulk(copy);
}

void bulk_commit() {
  step();
  machine.self().bulk_group++;
}

static void finish_bulk_number(size_t i) {
  const BulkCopy copy = bulk_copies[i];
  bulk_copies.erase(bulk_copies.begin() + long(i));
  finish_bulk(copy);
}

// Waits for the stores of all but the newest groups of this thread.
void bulk_wait(uint32_t groups_left) {
  step();
  Thread& me = machine.self();
  for (size_t i = 0; i < bulk_copies.size();) {
    const BulkCopy& copy = bulk_copies[i];
    if (copy.issuer != &me || copy.target_rank >= 0 || copy.group + groups_left >= me.bulk_group) i++;
    else finish_bulk_number(i);
  }
  std::vector<UnfinishedStore> left;
  for (const UnfinishedStore& store : me.bulk_stores) {
    if (store.group + groups_left >= me.bulk_group) left.push_back(store);
    else if (machine.checking) me.clock[store.slot] = std::max(me.clock[store.slot], store.time);
  }
  me.bulk_stores.swap(left);
}

// A thread returns: its stores may still read the shared memory that its block gives up.
static void check_stores_of_ended(const Thread& me) {
  for (const UnfinishedStore& store : me.bulk_stores)
    report_at(me, unfinished, 0, 0, store.bytes, -1, store.line, copy_not_waited);
}

// All threads of the cluster have returned: nobody has waited for what is still on its way.
static void check_copies_left() {
  for (const BulkCopy& copy : bulk_copies)
    if (copy.target_rank >= 0)
      report_at(*copy.issuer, unfinished, 0, 0, copy.bytes, -1, copy.line, copy_not_waited);
    else finish_bulk(copy);
  bulk_copies.clear();
}

}  // namespace emulator
