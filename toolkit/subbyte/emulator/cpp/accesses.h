// Loads, stores and asynchronous copies with their checks: bounds, alignment, races, uninitialised reads.
#pragma once
#include "collectives.h"
#include "shadow.h"

namespace emulator {

static Shadow shadow;

static Access access_now(const Thread& me) {
  Access now;
  now.epoch = machine.epoch;
  now.warp_phase = me.warp_phase;
  now.thread = me.index;
  now.line = me.line & 0x7FFFFFFFu;
  return now;
}

// At most one finding per access, the most telling one.
static void note_shared_read(int region, uint32_t offset, uint32_t bytes) {
  const Access now = access_now(machine.self());
  bool told = false;
  for (uint32_t i = offset; i < offset + bytes; i++) {
    ShadowByte& byte = shadow[i];
    if (!told && byte.pending) {
      report(pending_copy, region, i, bytes, -1, byte.pending_line);
      told = true;
    } else if (!told && !shadow.initialised(i)) {
      report(uninitialised_shared, region, i, bytes);
      told = true;
    } else if (const Access* other = told ? nullptr : shadow.conflict_of_read(i, now)) {
      report(race, region, i, bytes, other->thread, other->line);
      told = true;
    }
    shadow.read(i, now);
  }
}

static void note_shared_write(int region, uint32_t offset, uint32_t bytes) {
  const Access now = access_now(machine.self());
  bool told = false;
  for (uint32_t i = offset; i < offset + bytes; i++) {
    ShadowByte& byte = shadow[i];
    if (!told && byte.pending) {
      report(pending_copy, region, i, bytes, -1, byte.pending_line);
      told = true;
    } else if (const Access* other = told ? nullptr : shadow.conflict_of_write(i, now)) {
      report(race, region, i, bytes, other->thread, other->line);
      told = true;
    }
    shadow.write(i, now);
  }
}

static uint32_t global_thread() { return 1 + machine.block * uint32_t(machine.threads.size()) + machine.self().index; }

// Element counters: who wrote each byte of an output, and whether a second thread wrote it too.
constexpr uint32_t written_twice = 0x80000000u;

static void note_global_write(const Region& region, int number, uint64_t offset, uint32_t bytes, bool atomic) {
  if (!region.is_output) {
    report(store_to_input, number, int64_t(offset), bytes);
    return;
  }
  if (!region.writer) return;
  const uint32_t me = global_thread();
  for (uint64_t i = offset; i < offset + bytes; i++) {
    uint32_t& writer = region.writer[i];
    if (writer && (writer & ~written_twice) != me && !atomic) writer |= written_twice;
    else if (!writer) writer = me;
  }
}

static void note_global_read(const Region& region, int number, uint64_t offset, uint32_t bytes) {
  if (!region.is_output || !region.writer) return;
  for (uint64_t i = offset; i < offset + bytes; i++)
    if (!region.writer[i]) {
      report(load_of_unwritten_output, number, int64_t(i), bytes);
      return;
    }
}

// A window address names no array, so the array that contains it is looked up.
static int resolve(int number, const char* address) {
  if (number != shared_window) return number;
  for (size_t i = first_argument; i < machine.regions.size(); i++) {
    const Region& region = machine.regions[i];
    if (region.argument < 0 && address >= region.base && address < region.base + region.size) return int(i);
  }
  return number;
}

// The region an access falls in, or null after reporting that it is out of bounds.
static const Region* check_access(int* number, const char* address, uint32_t bytes, uint32_t alignment,
                                  int64_t* offset) {
  *number = resolve(*number, address);
  const Region& region = machine.regions[size_t(*number)];
  *offset = address - region.base;
  if (*number == shared_window || *offset < 0 || uint64_t(*offset) + bytes > region.size) {
    report(out_of_bounds, *number, *offset, bytes);
    return nullptr;
  }
  const bool is_shared = region.argument < 0;
  const int64_t aligned_to = is_shared ? address - machine.shared : *offset;
  if (aligned_to % alignment != 0) report(misaligned, *number, *offset, bytes);
  return &region;
}

static void trace_access(bool is_store, const Region& region, const char* address, int64_t offset, uint32_t bytes,
                         const void* value) {
  const bool is_shared = region.argument < 0;
  const TraceKind kind = is_shared ? (is_store ? shared_store : shared_load) : (is_store ? global_store : global_load);
  TraceRow* row = trace_row(machine.self(), kind, 0);
  row->offset = is_shared ? address - machine.shared : offset;
  row->shared = is_shared ? int32_t(address - machine.shared) : -1;
  row->buffer = int16_t(region.argument);
  row->size = row->valid = uint16_t(bytes);
  std::memcpy(&row->value, value, bytes < 8 ? bytes : 8);
}

void load_bytes(void* value, const char* address, int number, int bytes, int alignment) {
  step();
  if (number == private_region) {
    std::memcpy(value, address, size_t(bytes));
    return;
  }
  int64_t offset;
  const Region* region = check_access(&number, address, uint32_t(bytes), uint32_t(alignment), &offset);
  if (!region) {
    std::memset(value, 0xB7, size_t(bytes));
    return;
  }
  if (machine.checking) {
    if (region->argument < 0) note_shared_read(number, uint32_t(address - machine.shared), uint32_t(bytes));
    else note_global_read(*region, number, uint64_t(offset), uint32_t(bytes));
  }
  std::memcpy(value, address, size_t(bytes));
  if (machine.tracing) trace_access(false, *region, address, offset, uint32_t(bytes), value);
}

void store_bytes(const void* value, char* address, int number, int bytes, int alignment) {
  step();
  if (number == private_region) {
    std::memcpy(address, value, size_t(bytes));
    return;
  }
  int64_t offset;
  const Region* region = check_access(&number, address, uint32_t(bytes), uint32_t(alignment), &offset);
  if (!region) return;
  if (machine.checking) {
    if (region->argument < 0) note_shared_write(number, uint32_t(address - machine.shared), uint32_t(bytes));
    else note_global_write(*region, number, uint64_t(offset), uint32_t(bytes), false);
  }
  if (region->argument < 0 || region->is_output) std::memcpy(address, value, size_t(bytes));
  if (machine.tracing) trace_access(true, *region, address, offset, uint32_t(bytes), value);
}

uint32_t atomic_add(Pointer<void> pointer, uint32_t value) {
  step();
  char* address = address_of(pointer);
  uint32_t old = 0;
  if (checked) {
    int number = region_of(pointer);
    int64_t offset;
    const Region* region = check_access(&number, address, 4, 4, &offset);
    if (!region) return 0;
    if (machine.checking && region->argument >= 0) note_global_write(*region, number, uint64_t(offset), 4, true);
    if (machine.tracing) trace_access(true, *region, address, offset, 4, &value);
  }
  std::memcpy(&old, address, 4);
  value += old;
  std::memcpy(address, &value, 4);
  return old;
}

// ---- asynchronous copies -------------------------------------------------------------------------------------------

static void finish_copy(const PendingCopy& copy) {
  char* target = machine.shared + copy.target;
  if (copy.valid) std::memcpy(target, copy.source, copy.valid);
  std::memset(target + copy.valid, 0, copy.bytes - copy.valid);
}

void copy_async(int instruction, uint32_t target, Pointer<void> source, uint32_t bytes, uint32_t valid) {
  step();
  Thread& me = machine.self();
  PendingCopy copy = {address_of(source), target, bytes, valid, me.group, me.line};
  if (!checked) {
    finish_copy(copy);
    return;
  }
  int64_t offset = 0, shared_offset_in_array;
  int number = region_of(source), shared_number = shared_window;
  const Region* global = nullptr;
  if (valid > bytes) {
    report(bad_copy, number, 0, valid);
    copy.valid = bytes;
  }
  if (valid) {
    global = check_access(&number, copy.source, copy.valid, bytes, &offset);
    if (!global) copy.valid = 0;
  }
  if (!check_access(&shared_number, machine.shared + target, bytes, bytes, &shared_offset_in_array)) return;
  if (machine.tracing) {
    TraceRow* row = trace_row(me, TraceKind::copy, instruction);
    const Region& region = machine.regions[size_t(number)];
    row->buffer = int16_t(region.argument);
    row->offset = copy.source - region.base;
    row->shared = int32_t(target);
    row->size = uint16_t(bytes);
    row->valid = uint16_t(copy.valid);
    if (copy.valid) std::memcpy(&row->value, copy.source, copy.valid < 8 ? copy.valid : 8);
  }
  if (machine.checking) {
    note_shared_write(shared_number, target, bytes);
    for (uint32_t i = target; i < target + bytes; i++) {
      shadow[i].pending++;
      shadow[i].pending_line = me.line;
    }
  }
  me.copies.push_back(copy);
}

// Completes the copies of all groups before `end`, in a random order.
static void complete_copies(Thread& me, uint32_t end) {
  std::vector<PendingCopy> due, left;
  for (const PendingCopy& copy : me.copies) (copy.group < end ? due : left).push_back(copy);
  me.copies.swap(left);
  machine.random.shuffle(due);
  const Access now = access_now(me);
  for (const PendingCopy& copy : due) {
    finish_copy(copy);
    if (!machine.checking) continue;
    for (uint32_t i = copy.target; i < copy.target + copy.bytes; i++) {
      if (shadow[i].pending) shadow[i].pending--;
      Access written = now;
      written.line = copy.line & 0x7FFFFFFFu;
      shadow.write(i, written);
    }
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

// ---- addresses -----------------------------------------------------------------------------------------------------

uint32_t shared_offset(Pointer<void> pointer) { return uint32_t(address_of(pointer) - machine.shared); }
char* shared_address(uint32_t offset) { return machine.shared + int32_t(offset); }
char* region_base(int region) { return machine.regions[size_t(region)].base; }

void private_array_overrun(long index, long length) {
  report(out_of_bounds, private_region, index, uint32_t(length));
  abort_run();
}

void step_limit_reached() {
  report(step_limit_exceeded);
  abort_run();
}

// ldmatrix: lane 8 * i + r loads row r (16 bytes) of matrix i; lane 4 * r + c then receives word c of each row r,
// or with .trans the two halves of column r.
struct MatrixRows {
  uint32_t row[4], d[4];
  int count;
  bool transposed;
};

static void perform_load_matrix(Thread* const* lanes, uint32_t mask) {
  if (mask != full_warp) {
    report(divergent_warp);
    abort_run();
  }
  const auto rows = [&](int lane) -> MatrixRows& { return *(MatrixRows*)lanes[lane]->meeting.operands; };
  for (int lane = 0; lane < 32; lane++) {
    MatrixRows& mine = rows(lane);
    for (int i = 0; i < mine.count; i++) {
      const int r = lane / 4, c = lane % 4;
      if (!mine.transposed) {
        mine.d[i] = rows(8 * i + r).row[c];
        continue;
      }
      const uint32_t low = rows(8 * i + 2 * c).row[r / 2], high = rows(8 * i + 2 * c + 1).row[r / 2];
      mine.d[i] = (low >> (16 * (r % 2)) & 0xFFFF) | (high >> (16 * (r % 2)) & 0xFFFF) << 16;
    }
  }
}

void load_matrix(int instruction, int count, bool transposed, uint32_t* d, uint32_t address) {
  MatrixRows rows = {};
  rows.count = count;
  rows.transposed = transposed;
  if (machine.self().lane() < 8 * count) {
    const Words<4> loaded = load_as<Words<4>>(generic(address));
    std::memcpy(rows.row, loaded.w, sizeof(rows.row));
  }
  meet_warp(full_warp, instruction, perform_load_matrix, &rows);
  std::memcpy(d, rows.d, sizeof(uint32_t) * size_t(count));
}

}  // namespace emulator
