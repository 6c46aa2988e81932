// What is known about each byte of shared memory: who wrote it and who read it since which barrier, and
// whether an asynchronous copy into it is still under way.
//
// Two accesses are ordered when a block barrier lies between them (their epochs differ), when the same
// thread makes both, or when both come from one warp with a __syncwarp between (their warp phases differ).
#pragma once
#include <vector>
#include "report.h"

namespace emulator {

constexpr int32_t nobody = -1, several_warps = -2;

struct Access {
  uint32_t epoch = 0;
  uint32_t warp_phase = 0;
  int32_t thread = nobody;  // or several_warps; several lanes of one warp keep one of them and set many_lanes
  uint32_t line : 31;
  uint32_t many_lanes : 1;
  Access() : line(0), many_lanes(0) {}
};

struct ShadowByte {
  Access written, read;
  uint32_t pending = 0;  // asynchronous copies that will still write this byte
  uint32_t pending_line = 0;
};

class Shadow {
 public:
  void resize(size_t bytes) { bytes_.assign(bytes, ShadowByte()); }
  // Accesses of earlier blocks have epochs below this and count as never made.
  void start_block(uint32_t epoch) {
    first_epoch_ = epoch;
    for (ShadowByte& byte : bytes_) byte.pending = 0;
  }

  bool initialised(size_t i) const { return bytes_[i].written.epoch >= first_epoch_; }
  ShadowByte& operator[](size_t i) { return bytes_[i]; }

  // The earlier access that `now` conflicts with, or null.
  const Access* conflict_of_read(size_t i, const Access& now) const { return ordered(bytes_[i].written, now); }
  const Access* conflict_of_write(size_t i, const Access& now) const {
    const Access* other = ordered(bytes_[i].written, now);
    return other ? other : ordered(bytes_[i].read, now);
  }

  void write(size_t i, const Access& now) {
    bytes_[i].written = now;
    bytes_[i].read = Access();
  }

  void read(size_t i, const Access& now) {
    Access& seen = bytes_[i].read;
    if (seen.epoch != now.epoch || seen.thread == nobody || seen.thread == now.thread) {
      const bool many = seen.epoch == now.epoch && seen.warp_phase == now.warp_phase && seen.many_lanes;
      seen = now;
      seen.many_lanes = many;
    } else if (seen.thread != several_warps && seen.thread / 32 == now.thread / 32) {
      const bool many = seen.warp_phase == now.warp_phase;
      seen = now;
      seen.many_lanes = many;
    } else {
      seen = now;
      seen.thread = several_warps;
    }
  }

 private:
  // Null when `earlier` is ordered before `now`, else `earlier`.
  static const Access* ordered(const Access& earlier, const Access& now) {
    if (earlier.thread == nobody || earlier.epoch != now.epoch) return nullptr;
    if (earlier.thread == several_warps) return &earlier;
    if (earlier.thread == now.thread && !earlier.many_lanes) return nullptr;
    if (earlier.thread / 32 == now.thread / 32 && earlier.warp_phase < now.warp_phase) return nullptr;
    return &earlier;
  }

  std::vector<ShadowByte> bytes_;
  uint32_t first_epoch_ = 1;
};

}  // namespace emulator
