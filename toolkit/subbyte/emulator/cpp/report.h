// Findings and the access trace, in the binary form that Python reads (trace.py and findings.py mirror it).
#pragma once
#include <cstdlib>
#include <cstring>
#include "machine.h"

namespace emulator {

enum FindingKind : uint32_t {
  race = 0,
  pending_copy,
  uninitialised_shared,
  out_of_bounds,
  misaligned,
  divergent_barrier,
  divergent_warp,
  deadlock,
  step_limit_exceeded,
  store_to_input,
  load_of_unwritten_output,
  bad_copy,
  bad_shuffle,
  missing_proxy_fence,
  missing_wgmma_fence,
  register_in_flight,
  bad_wgmma,
  bad_mbarrier,
  bad_barrier,
  bad_cluster,
  register_budget,
  unfinished,
  missing_dependency_wait,
};

// Which of the cases of its kind a finding is, where one kind has several.
enum Detail : uint32_t {
  no_detail = 0,
  // deadlock
  waits_for_mbarrier = 1,
  waits_for_named_barrier,
  waits_for_cluster,
  waits_for_warpgroup,
  waits_for_registers,
  // race, pending_copy: who the other one is
  by_wgmma = 10,
  by_copy,
  // register_in_flight
  reads_accumulator = 20,
  writes_register,
  ends_in_flight,
  writes_operand,
  // bad_wgmma
  descriptor_differs = 30,
  descriptor_bits,
  shape_differs,
  outside_warpgroup,
  no_register,
  bad_metadata,
  // bad_mbarrier
  not_initialised = 40,
  too_many_arrivals,
  bad_count,
  overwritten,
  too_many_bytes,
  initialised_twice,
  invalidated_in_use,
  // bad_barrier
  count_differs = 50,
  count_not_warps,
  no_such_barrier,
  // bad_cluster
  no_such_rank = 60,
  peer_has_ended,
  wait_without_arrive,
  arrive_twice,
  // unfinished
  wgmma_not_waited = 70,
  copy_not_waited,
};

struct Finding {
  uint32_t kind, line, other_line, block;
  int32_t thread, other_thread;
  int32_t region;
  uint32_t bytes;
  int64_t offset;
  uint64_t count;
  int64_t amount;  // a second number, by kind and detail
  uint32_t detail, padding;
};

enum TraceKind : uint8_t {
  global_load = 0, global_store, shared_load, shared_store, copy, shuffle_kind, mma, barrier,
  wgmma_kind, bulk_copy_kind, bulk_store_kind, mbarrier_kind, fence_kind,
};

struct TraceRow {
  uint64_t value;
  int64_t offset;       // byte in the argument's array; for shared accesses, byte in the shared window
  uint32_t sequence, block, line, phase;
  int32_t shared;       // byte in the shared window, or -1
  uint32_t size, valid;
  int16_t buffer;       // index of the argument, or -1
  uint16_t warp, instruction;
  uint8_t lane, kind, mode;
  int8_t source_lane;
  uint8_t rank, padding;  // rank: the block in its cluster whose shared memory it is
};
static_assert(sizeof(TraceRow) == 56, "trace.py describes this layout");

// A growing array of plain rows that Python copies out after the run. Beyond `limit` rows the last one is
// overwritten and full() is true.
template <class Row> class Rows {
 public:
  ~Rows() { std::free(rows_); }
  Row* add() {
    if (count_ == limit_) {
      full_ = true;
      count_--;
    }
    if (count_ == capacity_) {
      capacity_ = capacity_ ? 2 * capacity_ : 256;
      rows_ = (Row*)std::realloc((void*)rows_, capacity_ * sizeof(Row));
      if (!rows_) std::abort();
    }
    std::memset((void*)&rows_[count_], 0, sizeof(Row));
    return &rows_[count_++];
  }
  void start(uint64_t limit) {
    count_ = 0;
    limit_ = limit;
    full_ = false;
  }
  uint64_t size() const { return count_; }
  bool full() const { return full_; }
  Row* data() { return rows_; }

 private:
  Row* rows_ = nullptr;
  uint64_t count_ = 0, capacity_ = 0, limit_ = 0;
  bool full_ = false;
};

// One finding per kind, place and memory region, with a count of how often it happened.
class Findings {
 public:
  static constexpr uint64_t limit = 200;
  void add(const Finding& found) {
    for (uint64_t i = 0; i < rows_.size(); i++) {
      Finding& known = rows_.data()[i];
      if (known.kind == found.kind && known.detail == found.detail && known.line == found.line &&
          known.other_line == found.other_line && known.region == found.region) {
        known.count++;
        return;
      }
    }
    if (rows_.size() == limit) return;
    *rows_.add() = found;
    rows_.data()[rows_.size() - 1].count = 1;
  }
  Rows<Finding>& rows() { return rows_; }

 private:
  Rows<Finding> rows_;
};

}  // namespace emulator
