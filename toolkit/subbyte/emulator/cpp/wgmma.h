// wgmma: multiplications of a warpgroup that run by themselves (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions").
//
// A multiplication is issued once its four warps have come to it. It is checked then, and performed at some later time,
// at the latest in the wgmma.wait_group that waits for it. Its registers and shared operands belong to it until then.
#pragma once
#include <deque>
#include "bulk_copies.h"
#include "descriptors.h"
#include "metadata.h"
#include "registers.h"

namespace emulator {

constexpr int most_columns = 256;

struct LaneOperands {
  RegisterOperand d[most_columns / 2] = {};
  RegisterOperand a[5] = {};  // A, where it is in registers, then metadata of a sparse one
};

struct Multiplication {
  WgmmaShape shape;
  uint64_t a_bits = 0, b_bits = 0;
  bool adds = true;
  int warps = 0;        // that have come to it
  uint32_t line = 0, number = 0;
  std::vector<LaneOperands> lanes;
  Clock clock;
};

// The matrix unit of four warps, and what it still has to do.
struct Warpgroup {
  std::deque<Multiplication> queue;  // the first one is number `performed`
  uint32_t posted[4] = {};           // by each warp
  uint32_t issued = 0, performed = 0;
  Multiplication& operator[](uint32_t number) { return queue[number - performed]; }
};

static std::vector<Warpgroup> warpgroups;

static Warpgroup& warpgroup_of(const Thread& thread) {
  return warpgroups[size_t(thread.rank * machine.warpgroups() + thread.index / warpgroup_threads)];
}

static int unit_slot(const Thread& thread) {
  const int threads = int(machine.blocks.size()) * machine.slots_per_block;
  return threads + thread.rank * machine.warpgroups() + thread.index / warpgroup_threads;
}

static uint32_t value_of(const RegisterOperand& reg) { return reg.state ? *reg.value : reg.copy; }

// ---- registers -----------------------------------------------------------------------------------------------------

void register_used_in_flight(const RegisterState& state, bool writes) {
  report(register_in_flight, 0, 0, 4, -1, state.line, writes ? writes_register : reads_accumulator);
}

// The compiler may give the registers of A to something else only after the last use that it sees, so they keep their
// values past the C++ scope; but the next turn of a loop writes the same ones. Accumulators would be lost.
void registers_end_in_flight(const RegisterState* first, long count) {
  Thread& me = machine.self();
  for (long i = 0; i < count; i++)
    if (in_flight(first[i]) && first[i].operand) {
      me.left_operands.push_back({first[i].multiplication, first[i].line});
      break;
    }
  const auto ends = [&](const RegisterOperand& reg) { return reg.state >= first && reg.state < first + count; };
  for (Multiplication& work : warpgroup_of(me).queue) {
    if (work.lanes.empty()) continue;
    LaneOperands& lane = work.lanes[size_t(me.index % warpgroup_threads)];
    for (RegisterOperand& a : lane.a)
      if (ends(a)) a = {nullptr, nullptr, *a.value};
    for (int i = 0; i < work.shape.n / 2; i++)
      if (ends(lane.d[i])) {
        report(register_in_flight, 0, 0, 4, -1, work.line, ends_in_flight);
        abort_run();
      }
  }
}

// Ordinary code must have used a register before the last wgmma.fence; a chain of equal multiplications needs none.
static bool lacks_fence(const Thread& thread, const RegisterOperand& reg, int instruction, bool is_accumulator) {
  if (!reg.state) return false;
  if (reg.state->touched > thread.register_fences) return true;
  const bool used = reg.state->multiplication > thread.multiplications_done;
  return used && is_accumulator && reg.state->accumulator_of != instruction;
}

// The same line again: its registers of A, declared in a loop, have just been written for this turn.
static void check_left_operands(Thread& thread) {
  std::vector<LeftOperand>& left = thread.left_operands;
  const auto done = [&](const LeftOperand& one) { return one.multiplication <= thread.multiplications_done; };
  left.erase(std::remove_if(left.begin(), left.end(), done), left.end());
  for (const LeftOperand& one : left)
    if (one.line == thread.line) {
      report_at(thread, register_in_flight, 0, 0, 4, -1, one.line, writes_operand);
      return;
    }
}

static int metadata_register(const WgmmaShape& shape) { return shape.a_in_registers ? 4 : 0; }

static int left_registers(const WgmmaShape& shape) { return metadata_register(shape) + shape.sparse; }

static int pieces_of(const WgmmaShape& shape) { return shape.sparse ? 4 : 2; }

static void take_registers(Thread& thread, LaneOperands& lane, const WgmmaShape& shape, int instruction) {
  const int counts[] = {shape.n / 2, left_registers(shape)};
  bool fence_missing = thread.register_fences == 0;
  if (checked && left_registers(shape)) check_left_operands(thread);
  for (int which = 0; which < 2; which++) {
    RegisterOperand* registers = which ? lane.a : lane.d;
    for (int i = 0; i < counts[which]; i++) {
      fence_missing |= lacks_fence(thread, registers[i], instruction, !which);
      if (registers[i].state)
        *registers[i].state = {0, thread.multiplications + 1, thread.line, which ? -1 : instruction, which == 1};
    }
  }
  thread.multiplications++;
  if (checked && fence_missing) report_at(thread, missing_wgmma_fence, 0, 0, 0, -1, 0);
}

// ---- operands in shared memory -------------------------------------------------------------------------------------

static void check_operand(Thread& thread, const Descriptor& from, uint32_t rows, uint32_t pieces,
                          const Multiplication& work) {
  const Access now = {unit_slot(thread), work.number + 1, work.line};
  if (!from.well_formed) {
    report_at(thread, bad_wgmma, 0, 0, 0, -1, 0, descriptor_bits);
    abort_run();
  }
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t half = 0; half < pieces; half++) {
      const Place place = find_place(shared_window, shared_address(from.address(row, half)), 16, 16);
      if (!place.region) abort_run();
      if (machine.checking) note_async_read(thread, place, 16, now, work.clock.data());
    }
}

static void load_operand(char* window, const Descriptor& from, uint32_t rows, uint32_t pieces, uint8_t (*into)[64]) {
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t half = 0; half < pieces; half++)
      std::memcpy(into[row] + 16 * half, window + from.address(row, half), 16);
}

// ---- performing ----------------------------------------------------------------------------------------------------

template <class A, class B, int K = 32> static int32_t dot(const uint8_t* a, const uint8_t* b) {
  int32_t sum = 0;
  for (int k = 0; k < K; k++) sum += int32_t(A(a[k])) * int32_t(B(b[k]));
  return sum;
}

static int32_t common_bits(const uint8_t* a, const uint8_t* b) {
  int32_t sum = 0;
  for (int k = 0; k < 32; k += 8) {
    uint64_t x, y;
    std::memcpy(&x, a + k, 8);
    std::memcpy(&y, b + k, 8);
    sum += __builtin_popcountll(x & y);
  }
  return sum;
}

using Dot = int32_t (*)(const uint8_t*, const uint8_t*);

static Dot dot_of(const WgmmaShape& shape) {
  if (shape.bits == 1) return common_bits;
  if (shape.sparse) {
    if (shape.a_signed) return shape.b_signed ? dot<int8_t, int8_t, 64> : dot<int8_t, uint8_t, 64>;
    return shape.b_signed ? dot<uint8_t, int8_t, 64> : dot<uint8_t, uint8_t, 64>;
  }
  if (shape.a_signed) return shape.b_signed ? dot<int8_t, int8_t> : dot<int8_t, uint8_t>;
  return shape.b_signed ? dot<uint8_t, int8_t> : dot<uint8_t, uint8_t>;
}

// Fragments: warp w holds the rows 16 * w to 16 * w + 15. With lane = 4 * group + t, register r of A holds row
// group + 8 * (r % 2), bytes 16 * (r / 2) + 4 * t to + 3; register i of D holds row group + 8 * (i / 2 % 2), column
// 8 * (i / 4) + 2 * t + i % 2.
//
// With 2:4 sparsity the bytes of A are those that are kept, two of four neighbours, and metadata says which: that of a
// thread is about row group + 8 * (t % 2), k from 32 * (t / 2) on, four bits for each four neighbours.
static void perform_multiplication(Multiplication& work, char* window) {
  static uint8_t a[64][64], b[most_columns][64];
  const Dot multiply = dot_of(work.shape);
  if (!work.shape.a_in_registers) load_operand(window, Descriptor(work.a_bits), 64, 2, a);
  load_operand(window, Descriptor(work.b_bits), uint32_t(work.shape.n), uint32_t(pieces_of(work.shape)), b);
  for (int thread = 0; thread < warpgroup_threads; thread++) {
    const LaneOperands& lane = work.lanes[size_t(thread)];
    const int row = thread / 32 * 16 + thread % 32 / 4, t = thread % 4;
    for (int r = 0; work.shape.a_in_registers && r < 4; r++) {
      const uint32_t word = value_of(lane.a[r]);
      std::memcpy(&a[row + 8 * (r % 2)][16 * (r / 2) + 4 * t], &word, 4);
    }
  }
  if (work.shape.sparse)
    for (int row = 0; row < 64; row++) {
      uint32_t metadata[2];
      for (int half = 0; half < 2; half++) {
        const int thread = row / 16 * 32 + row % 8 * 4 + row / 8 % 2 + 2 * half;
        metadata[half] = value_of(work.lanes[size_t(thread)].a[metadata_register(work.shape)]);
      }
      expand_row(a[row], metadata);
    }
  for (int thread = 0; thread < warpgroup_threads; thread++) {
    LaneOperands& lane = work.lanes[size_t(thread)];
    const int row = thread / 32 * 16 + thread % 32 / 4, t = thread % 4;
    for (int i = 0; i < work.shape.n / 2; i++) {
      uint32_t& d = *lane.d[i].value;
      d = (work.adds ? d : 0) + uint32_t(multiply(a[row + 8 * (i / 2 % 2)], b[8 * (i / 4) + 2 * t + i % 2]));
    }
  }
}

static void perform_next(size_t which) {
  Warpgroup& group = warpgroups[which];
  perform_multiplication(group.queue.front(), machine.window(int(which) / machine.warpgroups()));
  group.queue.pop_front();
  group.performed++;
  machine.events++;
}

// ---- issuing -------------------------------------------------------------------------------------------------------

struct WgmmaMeeting {
  LaneOperands* lane;
  WgmmaShape shape;
  uint64_t a_bits, b_bits;
  bool adds;
};

static void refuse_wgmma(uint32_t detail, uint32_t other_line = 0) {
  report(bad_wgmma, 0, 0, 0, -1, other_line, detail);
  abort_run();
}

// The warp's part in the warpgroup's next multiplication.
static Multiplication& post(Thread& leader, const WgmmaMeeting& asked) {
  Warpgroup& group = warpgroup_of(leader);
  const uint32_t number = group.posted[leader.warp() % 4]++;
  while (group.performed + group.queue.size() <= number) group.queue.emplace_back();
  Multiplication& work = group[number];
  if (work.warps == 0) {
    work.shape = asked.shape;
    work.a_bits = asked.a_bits;
    work.b_bits = asked.b_bits;
    work.adds = asked.adds;
    work.line = leader.line;
    work.number = number;
    work.lanes.resize(warpgroup_threads);
    if (machine.checking) work.clock.reset(machine.slots);
  }
  if (!(work.shape == asked.shape) || work.adds != asked.adds) refuse_wgmma(shape_differs, work.line);
  if (work.a_bits != asked.a_bits || work.b_bits != asked.b_bits) refuse_wgmma(descriptor_differs, work.line);
  work.warps++;
  return work;
}

static void perform_wgmma(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
  Thread& leader = *lanes[0];
  const WgmmaMeeting& first = *(WgmmaMeeting*)leader.meeting.operands;
  if ((leader.index / warpgroup_threads + 1) * warpgroup_threads > machine.block_threads)
    refuse_wgmma(outside_warpgroup);
  Multiplication& work = post(leader, first);
  for (int i = 0; i < 32; i++) {
    WgmmaMeeting& mine = *(WgmmaMeeting*)lanes[i]->meeting.operands;
    if (mine.a_bits != first.a_bits || mine.b_bits != first.b_bits) refuse_wgmma(descriptor_differs, leader.line);
    if (mine.adds != first.adds) refuse_wgmma(shape_differs, leader.line);
    take_registers(*lanes[i], *mine.lane, first.shape, leader.meeting.instruction);
    work.lanes[size_t(lanes[i]->index % warpgroup_threads)] = *mine.lane;
    if (checked && first.shape.sparse) check_metadata(*lanes[i], value_of(mine.lane->a[metadata_register(first.shape)]));
    release(*lanes[i], work.clock);
    if (!checked || !machine.tracing) continue;
    TraceRow* row = trace_row(*lanes[i], wgmma_kind, leader.meeting.instruction);
    row->value = first.b_bits;
    row->shared = int32_t(Descriptor(first.b_bits).start);
    row->size = uint32_t(first.shape.n);
    row->mode = !first.shape.a_in_registers;
  }
  machine.events++;
  if (work.warps < 4) return;
  if (checked) {
    check_operand(leader, Descriptor(work.b_bits), uint32_t(work.shape.n), uint32_t(pieces_of(work.shape)), work);
    if (!work.shape.a_in_registers) check_operand(leader, Descriptor(work.a_bits), 64, 2, work);
  }
  Warpgroup& group = warpgroup_of(leader);
  group.issued++;
  if (!checked) perform_next(size_t(&group - warpgroups.data()));
}

void wgmma_multiply(int instruction, WgmmaShape shape, const RegisterOperand* d, const RegisterOperand* a,
                    uint64_t a_bits, uint64_t b_bits, bool adds) {
  LaneOperands lane;
  std::memcpy(lane.d, d, sizeof(RegisterOperand) * size_t(shape.n / 2));
  std::memcpy(lane.a, a, sizeof(RegisterOperand) * size_t(left_registers(shape)));
  for (int i = 0; i < shape.n / 2; i++)
    if (!lane.d[i].value) refuse_wgmma(no_register);
  WgmmaMeeting meeting = {&lane, shape, a_bits, b_bits, adds};
  meet_warp(full_warp, instruction, perform_wgmma, &meeting);
}

// ---- fence, groups, waiting ----------------------------------------------------------------------------------------

void wgmma_fence() {
  step();
  current->register_fences++;
}

void wgmma_commit() {
  step();
  machine.self().wgmma_groups.push_back(current->multiplications);
}

static bool all_have_come(Thread& thread) { return warpgroup_of(thread).issued >= uint32_t(thread.waiting.value); }

void wgmma_wait(uint32_t groups_left) {
  step();
  Thread& me = machine.self();
  std::vector<uint32_t>& groups = me.wgmma_groups;
  if (groups.size() <= groups_left) return;
  const size_t due = groups.size() - groups_left;
  const uint32_t target = groups[due - 1];
  groups.erase(groups.begin(), groups.begin() + long(due));
  wait_for(me, {WaitKind::warpgroup, all_have_come, 0, int64_t(target)});
  Warpgroup& group = warpgroup_of(me);
  while (group.performed < target) perform_next(size_t(&group - warpgroups.data()));
  me.multiplications_done = std::max(me.multiplications_done, target);
  if (machine.checking) {
    uint32_t& known = me.clock[unit_slot(me)];
    known = std::max(known, target);
  }
}

static void describe_warpgroup(const Thread& thread, Finding& found) {
  const Warpgroup& group = warpgroup_of(thread);
  for (int warp = 0; warp < 4; warp++)
    if (group.posted[warp] < uint32_t(thread.waiting.value))
      found.other_thread = thread.index / warpgroup_threads * warpgroup_threads + 32 * warp;
}

// ---- all asynchronous work -----------------------------------------------------------------------------------------

static bool advance_asynchronous() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < warpgroups.size(); i++)
    if (warpgroups[i].issued > warpgroups[i].performed) ready.push_back(i);
  const size_t choices = ready.size() + bulk_copies.size();
  if (!choices) return false;
  const size_t chosen = machine.random.below(uint32_t(choices));
  if (chosen < ready.size()) perform_next(ready[chosen]);
  else finish_bulk_number(chosen - ready.size());
  return true;
}

static void check_ended(Thread& me) {
  check_stores_of_ended(me);
  if (me.multiplications > me.multiplications_done)
    report_at(me, unfinished, 0, 0, 0, -1, 0, wgmma_not_waited);
}

}  // namespace emulator
