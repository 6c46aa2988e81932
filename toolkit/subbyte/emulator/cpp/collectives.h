// Shuffles and matrix instructions of a warp, performed for all lanes once everybody has arrived.
#pragma once
#include "instructions.h"
#include "metadata.h"
#include "machine_state.h"

namespace emulator {

// ---- shuffles ------------------------------------------------------------------------------------------------------

struct ShuffleOperands {
  ShuffleMode mode;
  uint32_t value, by, control, result;
  bool in_range;
};

// The source lane by the pseudocode of PTX shfl.sync; sets in_range.
static int shuffle_source(int lane, const ShuffleOperands& o, bool* in_range) {
  const int by = int(o.by & 31), clamp = int(o.control & 31), segment = int(o.control >> 8 & 31);
  const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  int source = lane;
  switch (o.mode) {
    case shuffle_up: source = lane - by; *in_range = source >= last; break;
    case shuffle_down: source = lane + by; *in_range = source <= last; break;
    case shuffle_bfly: source = lane ^ by; *in_range = source <= last; break;
    case shuffle_idx: source = first | (by & ~segment); *in_range = source <= last; break;
  }
  return *in_range ? source : lane;
}

static void perform_shuffle(Thread* const* lanes, uint32_t mask) {
  for (int lane = 0; lane < 32; lane++) {
    if (!lanes[lane]) continue;
    ShuffleOperands& mine = *(ShuffleOperands*)lanes[lane]->meeting.operands;
    int source = shuffle_source(lane, mine, &mine.in_range);
    if (!(mask >> source & 1)) {
      report_at(*lanes[lane], bad_shuffle, 0, 0, 0, source, 0);
      source = lane;
    }
    mine.result = ((ShuffleOperands*)lanes[source]->meeting.operands)->value;
    if (checked && machine.tracing) {
      TraceRow* row = trace_row(*lanes[lane], shuffle_kind, lanes[lane]->meeting.instruction);
      row->mode = uint8_t(mine.mode);
      row->source_lane = int8_t(source);
      row->size = 4;
      row->value = mine.result;
    }
  }
}

uint32_t shuffle(int instruction, ShuffleMode mode, uint32_t value, uint32_t by, uint32_t control, uint32_t mask,
                 bool* in_range) {
  ShuffleOperands operands = {mode, value, by, control, 0, true};
  meet_warp(mask, instruction, perform_shuffle, &operands);
  if (in_range) *in_range = operands.in_range;
  return operands.result;
}

// ---- matrix instructions -------------------------------------------------------------------------------------------

struct MatrixOperands {
  MatrixShape shape;
  uint32_t* d;
  const uint32_t *a, *b, *c;
};

// Element i of a register that packs 32 / BITS of them.
template <int BITS, bool SIGNED> static int16_t element(uint32_t word, int i) {
  const uint32_t field = word << (32 - BITS - BITS * i);
  return SIGNED ? int16_t(int32_t(field) >> (32 - BITS)) : int16_t(field >> (32 - BITS));
}

// Fragments by the PTX ISA (mma.sync, integer types): lane = 4 * group + t. Register r of A holds row
// group + 8 * (r % (M / 8)), columns from (r / (M / 8)) * 4 * E + t * E on, E elements per register; B the same with
// its column in place of the row; register i of C and D holds row group + 8 * (i / 2), column 2 * t + i % 2.
template <int M, int K, int BITS, bool A_SIGNED, bool B_SIGNED>
static void multiply(Thread* const* lanes, bool is_and) {
  constexpr int E = 32 / BITS, row_registers = M / 8, k_registers = K / (4 * E);
  static int16_t a[M][K], b[8][K];
  for (int lane = 0; lane < 32; lane++) {
    const MatrixOperands& o = *(const MatrixOperands*)lanes[lane]->meeting.operands;
    const int group = lane / 4, t = lane % 4;
    for (int kr = 0; kr < k_registers; kr++) {
      const int column = kr * 4 * E + t * E;
      for (int rr = 0; rr < row_registers; rr++)
        for (int i = 0; i < E; i++)
          a[group + 8 * rr][column + i] = element<BITS, A_SIGNED>(o.a[kr * row_registers + rr], i);
      for (int i = 0; i < E; i++) b[group][column + i] = element<BITS, B_SIGNED>(o.b[kr], i);
    }
  }
  for (int lane = 0; lane < 32; lane++) {
    const MatrixOperands& o = *(const MatrixOperands*)lanes[lane]->meeting.operands;
    for (int i = 0; i < M / 4; i++) {
      const int16_t* row = a[lane / 4 + 8 * (i / 2)];
      const int16_t* column = b[(lane % 4) * 2 + i % 2];
      int32_t sum = 0;
      if (BITS > 1 || is_and)
        for (int k = 0; k < K; k++) sum += row[k] * column[k];
      else
        for (int k = 0; k < K; k++) sum += row[k] ^ column[k];
      o.d[i] = uint32_t(sum) + o.c[i];
    }
  }
}

template <int M, int K, int BITS> static void multiply_signs(Thread* const* lanes, const MatrixShape& shape) {
  if (shape.a_signed && shape.b_signed) multiply<M, K, BITS, true, true>(lanes, false);
  else if (shape.a_signed) multiply<M, K, BITS, true, false>(lanes, false);
  else if (shape.b_signed) multiply<M, K, BITS, false, true>(lanes, false);
  else multiply<M, K, BITS, false, false>(lanes, false);
}

// A 2:4 operand of 16 rows: the registers of A hold what is kept of 64 bytes. Metadata of lane 4 * group + t is about row
// group + 8 * (t % 2), k from 32 * (t / 2) on.
static void multiply_sparse(Thread* const* lanes) {
  static uint8_t a[16][64], b[8][64];
  uint32_t metadata[16][2];
  for (int lane = 0; lane < 32; lane++) {
    const MatrixOperands& o = *(const MatrixOperands*)lanes[lane]->meeting.operands;
    const int group = lane / 4, t = lane % 4;
    if (checked) check_metadata(*lanes[lane], o.a[4]);
    metadata[group + 8 * (t % 2)][t / 2] = o.a[4];
    for (int r = 0; r < 4; r++) {
      std::memcpy(&a[group + 8 * (r % 2)][16 * (r / 2) + 4 * t], &o.a[r], 4);
      std::memcpy(&b[group][16 * r + 4 * t], &o.b[r], 4);
    }
  }
  for (int row = 0; row < 16; row++) expand_row(a[row], metadata[row]);
  for (int lane = 0; lane < 32; lane++) {
    const MatrixOperands& o = *(const MatrixOperands*)lanes[lane]->meeting.operands;
    for (int i = 0; i < 4; i++) {
      const uint8_t *row = a[lane / 4 + 8 * (i / 2)], *column = b[lane % 4 * 2 + i % 2];
      int32_t sum = 0;
      for (int k = 0; k < 64; k++) sum += int32_t(int8_t(row[k])) * int32_t(int8_t(column[k]));
      o.d[i] = uint32_t(sum) + o.c[i];
    }
  }
}

static void perform_matrix(Thread* const* lanes, uint32_t mask) {
  need_full_warp(mask);
  const MatrixShape& s = ((const MatrixOperands*)lanes[0]->meeting.operands)->shape;
  if (s.sparse) multiply_sparse(lanes);
  else switch (s.m << 20 | s.k << 8 | s.bits) {
    case 8 << 20 | 16 << 8 | 8: multiply_signs<8, 16, 8>(lanes, s); break;
    case 16 << 20 | 16 << 8 | 8: multiply_signs<16, 16, 8>(lanes, s); break;
    case 16 << 20 | 32 << 8 | 8: multiply_signs<16, 32, 8>(lanes, s); break;
    case 8 << 20 | 32 << 8 | 4: multiply_signs<8, 32, 4>(lanes, s); break;
    case 16 << 20 | 32 << 8 | 4: multiply_signs<16, 32, 4>(lanes, s); break;
    case 16 << 20 | 64 << 8 | 4: multiply_signs<16, 64, 4>(lanes, s); break;
    case 8 << 20 | 128 << 8 | 1: multiply<8, 128, 1, false, false>(lanes, s.is_and); break;
    case 16 << 20 | 128 << 8 | 1: multiply<16, 128, 1, false, false>(lanes, s.is_and); break;
    case 16 << 20 | 256 << 8 | 1: multiply<16, 256, 1, false, false>(lanes, s.is_and); break;
    default: std::abort();  // the translator refuses every other shape
  }
  if (checked && machine.tracing)
    for (int lane = 0; lane < 32; lane++) trace_row(*lanes[lane], mma, lanes[lane]->meeting.instruction);
}

void matrix_multiply(int instruction, MatrixShape shape, uint32_t* d, const uint32_t* a, const uint32_t* b,
                     const uint32_t* c) {
  MatrixOperands operands = {shape, d, a, b, c};
  meet_warp(full_warp, instruction, perform_matrix, &operands);
}

}  // namespace emulator
