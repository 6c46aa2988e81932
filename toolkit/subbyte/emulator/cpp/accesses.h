// Loads and stores with their checks: bounds, alignment, races, uninitialised reads, coverage of the outputs.
#pragma once
#include "instructions.h"
#include "machine_state.h"
#include "shadow.h"

namespace emulator {

static Shadow shadow;

// Where an access falls: the array, the byte in it, and for shared memory whose window and which byte of it.
struct Place {
  const Region* region = nullptr;
  int number = 0;
  int64_t offset = 0;
  int rank = 0;
  int64_t in_window = -1;
  bool is_shared() const { return in_window >= 0; }
  size_t shadow_index() const { return size_t(rank) * machine.stride + size_t(in_window); }
};

static Access access_now(Thread& me) { return {me.slot, own_time(me), me.line}; }

// Who the owner of a clock slot is, in the words of a finding.
static void name_other(Finding& found, const Access& other) {
  const int threads = int(machine.blocks.size()) * machine.slots_per_block;
  found.other_line = other.line;
  if (other.slot < threads) found.other_thread = other.slot % machine.slots_per_block;
  else found.detail = other.slot < int(machine.slots - machine.copy_slots) ? by_wgmma : by_copy;
}

static void report_place(const Thread& thread, FindingKind kind, const Place& place, int64_t byte, uint32_t bytes,
                         const Access& other) {
  Finding found = finding_at(thread, kind);
  found.region = place.number;
  found.offset = place.is_shared() ? place.in_window + byte : place.offset + byte;
  found.bytes = bytes;
  if (other.slot >= 0) name_other(found, other);
  else found.other_line = other.line;
  machine.findings.add(found);
}

// An access to shared memory by `now`, who knows what `clock` says; at most one finding, the most telling one.
static void note_shared(const Thread& thread, const Place& place, uint32_t bytes, const Access& now,
                        const uint32_t* clock, bool writes) {
  bool told = false;
  for (uint32_t i = 0; i < bytes; i++) {
    ShadowByte& byte = shadow[place.shadow_index() + i];
    if (!told) {
      Access other = Shadow::unseen_write(byte, clock);
      if (other.slot < 0 && writes) other = shadow.unseen_read(byte, clock);
      told = true;
      if (byte.pending) report_place(thread, pending_copy, place, i, bytes, {-1, 0, byte.pending_line});
      else if (!writes && byte.written.slot < 0) report_place(thread, uninitialised_shared, place, i, bytes, {});
      else if (other.slot >= 0) report_place(thread, race, place, i, bytes, other);
      else if (writes && byte.is_barrier)
        report_at(thread, bad_mbarrier, place.number, place.in_window + i, bytes, -1, 0, overwritten);
      else told = false;
    }
    if (writes) shadow.write(byte, now);
    else shadow.read(byte, now);
  }
}

static uint32_t global_thread(const Thread& thread) {
  return 1 + thread.block * uint32_t(machine.block_threads) + uint32_t(thread.index);
}

// Element counters: who wrote each byte of an output, and whether a second thread wrote it too.
constexpr uint32_t written_twice = 0x80000000u;

// The thread knows, by itself or from others, that the launch before has ended.
static void note_dependency(const Place& place, uint32_t bytes) {
  if (!machine.checking || !place.region->is_dependent) return;
  if (!machine.self().clock[machine.dependency_slot])
    report(missing_dependency_wait, place.number, place.offset, bytes);
}

void dependency_wait() {
  step();
  if (machine.checking) machine.self().clock[machine.dependency_slot] = 1;
}

static void note_global_write(const Place& place, uint32_t bytes, bool atomic) {
  note_dependency(place, bytes);
  if (!place.region->is_output) {
    report(store_to_input, place.number, place.offset, bytes);
    return;
  }
  if (!place.region->writer) return;
  const uint32_t me = global_thread(machine.self());
  for (int64_t i = place.offset; i < place.offset + bytes; i++) {
    uint32_t& writer = place.region->writer[i];
    if (writer && (writer & ~written_twice) != me && !atomic) writer |= written_twice;
    else if (!writer) writer = me;
  }
}

static void note_global_read(const Place& place, uint32_t bytes) {
  note_dependency(place, bytes);
  if (!place.region->is_output || !place.region->writer) return;
  for (int64_t i = place.offset; i < place.offset + bytes; i++)
    if (!place.region->writer[i]) {
      report(load_of_unwritten_output, place.number, i, bytes);
      return;
    }
}

// A window address names no array, so the array that contains it is looked up.
static int array_at(int64_t in_window) {
  for (size_t i = first_argument; i < machine.regions.size(); i++) {
    const Region& region = machine.regions[i];
    const int64_t base = int64_t(uintptr_t(region.base));
    if (region.argument < 0 && in_window >= base && uint64_t(in_window) < uint64_t(base) + region.size) return int(i);
  }
  return shared_window;
}

static bool block_has_ended(int rank) { return machine.blocks[size_t(rank)].finished == machine.block_threads; }

// Where an access falls; its region is null after reporting that it is out of bounds.
static Place find_place(int number, const char* address, uint32_t bytes, uint32_t alignment) {
  Place place;
  place.number = number;
  const bool any_block = number == cluster_window;
  if (number <= shared_window || machine.regions[size_t(number)].argument < 0) {
    place.rank = any_block ? machine.rank_of(address) : machine.self().rank;
    place.in_window = address - machine.window(place.rank);
    if (number <= shared_window) place.number = array_at(place.in_window);
  }
  const Region& region = machine.regions[size_t(place.number)];
  const int64_t base = int64_t(uintptr_t(region.base));
  const bool is_shared = region.argument < 0;
  place.offset = is_shared ? address - machine.window(place.rank) - base : address - region.base;
  if (place.number == shared_window || place.offset < 0 || uint64_t(place.offset) + bytes > region.size) {
    report(out_of_bounds, place.number, place.offset, bytes);
    return place;
  }
  if ((is_shared ? place.in_window : place.offset) % alignment != 0)
    report(misaligned, place.number, place.offset, bytes);
  if (is_shared && place.rank != machine.self().rank && block_has_ended(place.rank)) {
    report(bad_cluster, place.number, place.offset, bytes, -1, 0, peer_has_ended, place.rank);
    return place;
  }
  place.region = &region;
  return place;
}

static void trace_access(bool is_store, const Place& place, uint32_t bytes, const void* value) {
  const TraceKind kind =
      place.is_shared() ? (is_store ? shared_store : shared_load) : (is_store ? global_store : global_load);
  TraceRow* row = trace_row(machine.self(), kind, 0);
  row->offset = place.is_shared() ? place.in_window : place.offset;
  row->shared = int32_t(place.in_window);
  row->rank = uint8_t(place.is_shared() ? place.rank : machine.self().rank);
  row->buffer = int16_t(place.region->argument);
  row->size = row->valid = bytes;
  std::memcpy(&row->value, value, bytes < 8 ? bytes : 8);
}

void load_bytes(void* value, const char* address, int number, int bytes, int alignment) {
  step();
  if (number == private_region) {
    std::memcpy(value, address, size_t(bytes));
    return;
  }
  const Place place = find_place(number, address, uint32_t(bytes), uint32_t(alignment));
  if (!place.region) {
    std::memset(value, 0xB7, size_t(bytes));
    return;
  }
  if (machine.checking) {
    Thread& me = machine.self();
    if (place.is_shared()) note_shared(me, place, uint32_t(bytes), access_now(me), me.clock, false);
    else note_global_read(place, uint32_t(bytes));
  }
  std::memcpy(value, address, size_t(bytes));
  if (machine.tracing) trace_access(false, place, uint32_t(bytes), value);
}

void store_bytes(const void* value, char* address, int number, int bytes, int alignment) {
  step();
  if (number == private_region) {
    std::memcpy(address, value, size_t(bytes));
    return;
  }
  const Place place = find_place(number, address, uint32_t(bytes), uint32_t(alignment));
  if (!place.region) return;
  if (machine.checking) {
    Thread& me = machine.self();
    if (place.is_shared()) note_shared(me, place, uint32_t(bytes), access_now(me), me.clock, true);
    else note_global_write(place, uint32_t(bytes), false);
  }
  if (place.is_shared() || place.region->is_output) std::memcpy(address, value, size_t(bytes));
  if (machine.tracing) trace_access(true, place, uint32_t(bytes), value);
}

uint32_t atomic_add(Pointer<void> pointer, uint32_t value) {
  step();
  char* address = address_of(pointer);
  uint32_t old = 0;
  if (checked) {
    const Place place = find_place(region_of(pointer), address, 4, 4);
    if (!place.region) return 0;
    if (machine.checking && !place.is_shared()) note_global_write(place, 4, true);
    if (machine.tracing) trace_access(true, place, 4, &value);
  }
  std::memcpy(&old, address, 4);
  value += old;
  std::memcpy(address, &value, 4);
  return old;
}

// ---- addresses -----------------------------------------------------------------------------------------------------

// A 32-bit shared address is the byte in the own window; with a rank (plus 1) above it, as mapa gives, a byte of that
// block's. Within a cluster the block's own addresses have its rank above them too, as on the GPU.
constexpr uint32_t rank_shift = 24;

static uint32_t own_rank_bits() {
  return machine.blocks.size() > 1 ? uint32_t(machine.self().rank + 1) << rank_shift : 0;
}

char* shared_address(uint32_t address) {
  const uint32_t own = own_rank_bits();
  if (own && address >> rank_shift == own >> rank_shift) address -= own;
  return machine.window(machine.self().rank) + int32_t(address);
}

char* cluster_address(uint32_t address) {
  const uint32_t rank = address >> rank_shift;
  if (!rank) return shared_address(address);
  return machine.window(int(rank) - 1) + (address & ((1u << rank_shift) - 1));
}

uint32_t shared_offset(Pointer<void> pointer) {
  return own_rank_bits() + uint32_t(address_of(pointer) - machine.window(machine.self().rank));
}

uint32_t map_to_rank(uint32_t address, uint32_t rank) {
  step();
  if (rank >= machine.blocks.size()) {
    report(bad_cluster, 0, 0, 0, -1, 0, no_such_rank, rank);
    abort_run();
  }
  return (rank + 1) << rank_shift | (address & ((1u << rank_shift) - 1));
}

char* region_base(int number) {
  const Region& region = machine.regions[size_t(number)];
  return region.argument < 0 ? machine.window(machine.self().rank) + uintptr_t(region.base) : region.base;
}

void private_array_overrun(long index, long length) {
  report(out_of_bounds, private_region, index, uint32_t(length));
  abort_run();
}

void step_limit_reached() {
  report(step_limit_exceeded);
  abort_run();
}

}  // namespace emulator
