// ldmatrix, stmatrix and movmatrix: 8 by 8 matrices of 16-bit elements between shared memory and the lanes of a warp.
#pragma once
#include "accesses.h"

namespace emulator {

// movmatrix.trans.b16: row r, column c of an 8 by 8 matrix lies in lane 4 * r + c / 2, half c % 2.
static void perform_move(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
  uint32_t results[32] = {};
  for (int lane = 0; lane < 32; lane++)
    for (int half = 0; half < 2; half++) {
      const int row = lane / 4, column = 2 * (lane % 4) + half;
      const uint32_t word = *(uint32_t*)lanes[4 * column + row / 2]->meeting.operands;
      results[lane] |= (word >> (16 * (row % 2)) & 0xFFFF) << (16 * half);
    }
  for (int lane = 0; lane < 32; lane++) *(uint32_t*)lanes[lane]->meeting.operands = results[lane];
}

uint32_t move_matrix(int instruction, uint32_t value) {
  meet_warp(full_warp, instruction, perform_move, &value);
  return value;
}

// ldmatrix: lane 8 * i + r loads row r (16 bytes) of matrix i; lane 4 * r + c then receives word c of each row r,
// or with .trans the two halves of column r.
struct MatrixRows {
  uint32_t row[4], d[4];
  int count;
  bool transposed;
};

static void perform_load_matrix(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
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

// stmatrix is the same the other way round: the lanes' words become rows, and lane 8 * i + r stores row r of matrix i.
static void perform_store_matrix(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
  const auto rows = [&](int lane) -> MatrixRows& { return *(MatrixRows*)lanes[lane]->meeting.operands; };
  for (int lane = 0; lane < 8 * rows(0).count; lane++) {
    const int i = lane / 8, r = lane % 8;
    for (int half = 0; half < 8; half++) {
      const int holder = rows(0).transposed ? 4 * half + r / 2 : 4 * r + half / 2;
      const int part = rows(0).transposed ? r % 2 : half % 2;
      const uint32_t value = rows(holder).d[i] >> (16 * part) & 0xFFFF;
      uint32_t& word = rows(lane).row[half / 2];
      word = half % 2 ? word | value << 16 : value;
    }
  }
}

void store_matrix(int instruction, int count, bool transposed, const uint32_t* words, uint32_t address) {
  MatrixRows rows = {};
  rows.count = count;
  rows.transposed = transposed;
  std::memcpy(rows.d, words, sizeof(uint32_t) * size_t(count));
  meet_warp(full_warp, instruction, perform_store_matrix, &rows);
  if (machine.self().lane() >= 8 * count) return;
  Words<4> row;
  std::memcpy(row.w, rows.row, sizeof(rows.row));
  store_as(generic(address), row);
}

}  // namespace emulator
