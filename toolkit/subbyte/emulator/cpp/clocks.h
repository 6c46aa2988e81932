// Vector clocks: what each thread and each asynchronous unit knows to have happened before.
//
// Every thread has a slot, and so has every asynchronous unit (a warpgroup's matrix unit, one of a block's copy
// engines). A clock holds one number per slot: everything the slot's owner did up to that number happened before. The
// second half of a clock says the same of what has also passed a proxy fence (fence.proxy.async), which wgmma and bulk
// copies need to see what threads wrote (PTX ISA, memory consistency model, "Proxy-preserved base causality order").
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

namespace emulator {

inline void join_clocks(uint32_t* to, const uint32_t* from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = to[i] > from[i] ? to[i] : from[i];
}

// The clock of something that threads hand their knowledge to: a barrier, an operation in flight.
class Clock {
 public:
  void reset(size_t slots) { numbers_.assign(2 * slots, 0); }
  uint32_t* data() { return numbers_.data(); }
  const uint32_t* data() const { return numbers_.data(); }
  void join(const uint32_t* other) { join_clocks(numbers_.data(), other, numbers_.size()); }
  void join(const Clock& other) { join(other.data()); }
  void clear() { std::memset(numbers_.data(), 0, numbers_.size() * sizeof(uint32_t)); }
  bool empty() const { return numbers_.empty(); }

 private:
  std::vector<uint32_t> numbers_;
};

}  // namespace emulator
