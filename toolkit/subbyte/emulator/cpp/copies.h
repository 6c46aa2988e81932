// cp.async: copies that a thread starts and later waits for. Until the wait nobody may touch the bytes.
#pragma once
#include "accesses.h"

namespace emulator {

static void mark_pending(size_t first, uint32_t bytes, uint32_t line) {
  for (size_t i = first; i < first + bytes; i++) {
    ShadowByte& byte = shadow[i];
    byte.pending++;
    byte.pending_line = line;
  }
}

// The copy's bytes have arrived: they count as written by `now`.
static void mark_arrived(size_t first, uint32_t bytes, const Access& now) {
  for (size_t i = first; i < first + bytes; i++) {
    ShadowByte& byte = shadow[i];
    if (byte.pending) byte.pending--;
    shadow.write(byte, now);
  }
}

static void finish_copy(const PendingCopy& copy) {
  char* target = shared_address(copy.target);
  if (copy.valid) std::memcpy(target, copy.source, copy.valid);
  std::memset(target + copy.valid, 0, copy.bytes - copy.valid);
}

void copy_async(int instruction, uint32_t target, Pointer<void> source, uint32_t bytes, uint32_t valid) {
  step();
  Thread& me = machine.self();
  target = uint32_t(shared_address(target) - machine.window(me.rank));  // without the rank above it
  PendingCopy copy = {address_of(source), target, bytes, valid, me.group, me.line};
  if (!checked) {
    finish_copy(copy);
    return;
  }
  const int number = region_of(source);
  if (valid > bytes) {
    report(bad_copy, number, 0, valid);
    copy.valid = bytes;
  }
  if (valid) {
    const Place from = find_place(number, copy.source, copy.valid, bytes);
    if (from.region) note_dependency(from, copy.valid);
    else copy.valid = 0;
  }
  const Place place = find_place(shared_window, shared_address(target), bytes, bytes);
  if (!place.region) return;
  if (machine.tracing) {
    TraceRow* row = trace_row(me, TraceKind::copy, instruction);
    const Region& region = machine.regions[size_t(number)];
    row->buffer = int16_t(region.argument);
    row->offset = copy.source - region.base;
    row->shared = int32_t(target);
    row->size = bytes;
    row->valid = copy.valid;
    if (copy.valid) std::memcpy(&row->value, copy.source, copy.valid < 8 ? copy.valid : 8);
  }
  if (machine.checking) {
    note_shared(me, place, bytes, access_now(me), me.clock, true);
    mark_pending(place.shadow_index(), bytes, me.line);
  }
  me.copies.push_back(copy);
}

// Completes the copies of all groups before `end`, in a random order.
static void complete_copies(Thread& me, uint32_t end) {
  std::vector<PendingCopy> due, left;
  for (const PendingCopy& copy : me.copies) (copy.group < end ? due : left).push_back(copy);
  me.copies.swap(left);
  machine.random.shuffle(due);
  for (const PendingCopy& copy : due) {
    finish_copy(copy);
    if (machine.checking)
      mark_arrived(size_t(me.rank) * machine.stride + copy.target, copy.bytes, {me.slot, own_time(me), copy.line});
  }
}

void copy_commit() {
  step();
  machine.self().group++;
}

void copy_wait(uint32_t groups_left) {
  step();
  Thread& me = machine.self();
  if (checked && me.group > groups_left) complete_copies(me, me.group - groups_left);
}

void copy_wait_all() {
  step();
  Thread& me = machine.self();
  if (checked) complete_copies(me, me.group + 1);
}

}  // namespace emulator
