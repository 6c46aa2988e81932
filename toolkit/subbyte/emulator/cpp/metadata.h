// Metadata of 2:4 sparse operands: which two of four neighbours are kept (PTX ISA, "Sparse matrix storage").
#pragma once
#include "machine_state.h"

namespace emulator {

// Four bits for each four neighbours: the places of two of them. The hardware takes any order and adds both products
// where they are the same; a kernel that gives such metadata has mixed something up.
static void check_metadata(Thread& thread, uint32_t metadata) {
  for (int group = 0; group < 8; group++) {
    const uint32_t pair = metadata >> (4 * group) & 15;
    if ((pair & 3) >= pair >> 2) {
      report_at(thread, bad_wgmma, 0, group, 0, -1, 0, bad_metadata, pair);
      return;
    }
  }
}

// A row of 32 kept bytes to the 64 that they stand for, in place; each word of metadata is about half of them.
static void expand_row(uint8_t* row, const uint32_t* metadata) {
  uint8_t kept[32];
  std::memcpy(kept, row, 32);
  std::memset(row, 0, 64);
  for (int i = 0; i < 32; i++) row[i / 2 * 4 + (metadata[i / 16] >> (2 * (i % 16)) & 3)] = kept[i];
}

}  // namespace emulator
