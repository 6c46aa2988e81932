// What is known about each byte of shared memory: who wrote it and who read it at which time of his clock, and whether
// an asynchronous copy into it is still under way.
//
// Two accesses are ordered when the later one's clock has seen the earlier one. Readers between two writes are kept as
// groups of lanes of one warp that read at one time.
#pragma once
#include <vector>
#include "clocks.h"

namespace emulator {

// One access: the slot that made it, its time and its line; slot -1 is nobody.
struct Access {
  int32_t slot = -1;
  uint32_t time = 0;
  uint32_t line = 0;
};

struct Readers {
  uint32_t warp = 0, lanes = 0, time = 0, line = 0;
};

struct ShadowByte {
  uint32_t generation = 0;    // bytes of earlier blocks count as never touched
  uint32_t more_readers = 0;  // 1 + index into the list of lists, or 0
  Access written;
  Readers readers;
  uint32_t pending = 0;       // asynchronous copies that will still write this byte
  uint32_t pending_line = 0;
  uint32_t is_barrier = 0;    // part of an mbarrier in use
};

class Shadow {
 public:
  void resize(size_t bytes) {
    bytes_.assign(bytes, ShadowByte());
    more_.clear();
  }
  void start_blocks() { generation_++; }

  ShadowByte& operator[](size_t i) {
    ShadowByte& byte = bytes_[i];
    if (byte.generation != generation_) {
      const uint32_t list = byte.more_readers;
      byte = ShadowByte();
      byte.generation = generation_;
      byte.more_readers = list;
      if (list) more_[list - 1].clear();
    }
    return byte;
  }

  // The earlier write that an access with this clock has not seen, or an access by nobody.
  static Access unseen_write(const ShadowByte& byte, const uint32_t* clock) {
    const bool seen = byte.written.slot < 0 || clock[byte.written.slot] >= byte.written.time;
    return seen ? Access() : byte.written;
  }

  Access unseen_read(const ShadowByte& byte, const uint32_t* clock) const {
    Access found = unseen(byte.readers, clock);
    if (found.slot < 0 && byte.more_readers)
      for (const Readers& readers : more_[byte.more_readers - 1]) {
        found = unseen(readers, clock);
        if (found.slot >= 0) break;
      }
    return found;
  }

  void write(ShadowByte& byte, const Access& now) {
    byte.written = now;
    byte.readers.lanes = 0;
    if (byte.more_readers) more_[byte.more_readers - 1].clear();
  }

  void read(ShadowByte& byte, const Access& now) {
    const uint32_t warp = uint32_t(now.slot) / 32, lane = 1u << (now.slot % 32);
    Readers& first = byte.readers;
    if (first.warp == warp && first.time == now.time && first.lanes) {
      first.lanes |= lane;
    } else if (first.lanes == 0 || (first.warp == warp && first.lanes == lane)) {
      first = {warp, lane, now.time, now.line};
    } else {
      add_reader(byte, {warp, lane, now.time, now.line});
    }
  }

 private:
  static Access unseen(const Readers& readers, const uint32_t* clock) {
    uint32_t lanes = readers.lanes;
    while (lanes) {
      const int lane = __builtin_ctz(lanes);
      const int32_t slot = int32_t(readers.warp * 32) + lane;
      if (clock[slot] < readers.time) return {slot, readers.time, readers.line};
      lanes &= lanes - 1;
    }
    return {};
  }

  void add_reader(ShadowByte& byte, const Readers& now) {
    if (!byte.more_readers) {
      more_.emplace_back();
      byte.more_readers = uint32_t(more_.size());
    }
    if (byte.readers.warp == now.warp) byte.readers.lanes &= ~now.lanes;  // the lane's newest read is enough
    std::vector<Readers>& list = more_[byte.more_readers - 1];
    for (size_t i = 0; i < list.size(); i++) {
      if (list[i].warp != now.warp) continue;
      if (list[i].time == now.time) {
        list[i].lanes |= now.lanes;
        return;
      }
      list[i].lanes &= ~now.lanes;
      if (!list[i].lanes) {
        list[i--] = list.back();
        list.pop_back();
      }
    }
    list.push_back(now);
  }

  std::vector<ShadowByte> bytes_;
  std::vector<std::vector<Readers>> more_;
  uint32_t generation_ = 1;
};

}  // namespace emulator
