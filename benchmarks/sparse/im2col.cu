// Four ways to lower rows of a feature map for a convolution of stride 1: dense bytes, bitmaps with packed values, and
// compressed rows (CSR), by one thread or by one warp each. A lowered row is (image, channel, tap row, tap column,
// output row); its bytes, values and column numbers lie in a slot of SLOT of them. CHANNELS, HEIGHT, WIDTH, TAPS, PAD,
// OUT_ROWS, OUT_COLUMNS, SLOT and ROWS (lowered rows in all) are numbers in the text.
#define WORDS (SLOT / 4)

__device__ __forceinline__ int source_row(int row) {  // of [image, channel, height]; -1 above and below the image
  const int p = row % OUT_ROWS, column = row / OUT_ROWS;
  const int h = p + column / TAPS % TAPS - PAD;
  return h < 0 || h >= HEIGHT ? -1 : column / (TAPS * TAPS) * HEIGHT + h;
}

__device__ __forceinline__ int shift_of(int row) { return row / OUT_ROWS % TAPS - PAD; }

__device__ __forceinline__ int ones_of(unsigned long long bits) {
  return __popc((unsigned)bits) + __popc((unsigned)(bits >> 32));
}

__device__ __forceinline__ unsigned word_at(const unsigned* bytes, int place) {  // four bytes at any place
  const unsigned* words = bytes + (place >> 2);
  const unsigned long long both = ((unsigned long long)words[1] << 32) | (unsigned long long)words[0];
  return (unsigned)(both >> ((place & 3) * 8));
}

extern "C" __global__ void __launch_bounds__(256) im2col_dense(const unsigned* __restrict__ x_ptr,
                                                               unsigned* __restrict__ out_ptr) {
  const int id = (int)blockIdx.x * 256 + (int)threadIdx.x;
  const int row = id / WORDS, word = id % WORDS;
  if (row >= ROWS) return;
  const int source = source_row(row), first = word * 4 + shift_of(row);
  unsigned found = 0u;
  if (source >= 0) {
    found = word_at(x_ptr, 4 + source * WIDTH + first);  // a word of zeros stands before the first row
    for (int i = 0; i < 4; i++)
      if (first + i < 0 || first + i >= WIDTH || word * 4 + i >= OUT_COLUMNS) found &= ~(255u << (8 * i));
  }
  out_ptr[id] = found;
}

extern "C" __global__ void __launch_bounds__(256) im2col_bitmap(const unsigned long long* __restrict__ bits_ptr,
                                                                const int* __restrict__ start_ptr,
                                                                const unsigned* __restrict__ values_ptr,
                                                                unsigned long long* __restrict__ out_bits_ptr,
                                                                unsigned* __restrict__ out_ptr) {
  const int id = (int)blockIdx.x * 256 + (int)threadIdx.x;
  const int row = id / WORDS, word = id % WORDS;
  if (row >= ROWS) return;
  const int source = source_row(row), shift = shift_of(row);
  unsigned long long here = 0ull;
  int first = 0;
  if (source >= 0) {
    const unsigned long long bits = bits_ptr[source];
    here = (shift < 0 ? bits << -shift : bits >> shift) & (~0ull >> (64 - OUT_COLUMNS));
    first = start_ptr[source] + (shift > 0 ? ones_of(bits & ((1ull << shift) - 1ull)) : 0);
  }
  const int count = ones_of(here), left = count - word * 4;
  if (word == 0) out_bits_ptr[row] = here;
  if (left > 0) {
    const unsigned found = word_at(values_ptr, first + word * 4);
    out_ptr[id] = left >= 4 ? found : found & ((1u << (8 * left)) - 1u);
  }
}

extern "C" __global__ void __launch_bounds__(256) im2col_csr_thread(
    const int* __restrict__ start_ptr, const unsigned short* __restrict__ columns_ptr,
    const unsigned char* __restrict__ values_ptr, int* __restrict__ out_counts_ptr,
    unsigned short* __restrict__ out_columns_ptr, unsigned char* __restrict__ out_ptr) {
  const int row = (int)blockIdx.x * 256 + (int)threadIdx.x;
  if (row >= ROWS) return;
  const int source = source_row(row), shift = shift_of(row);
  int count = 0;
  if (source >= 0) {
    const int end = start_ptr[source + 1];
    for (int i = start_ptr[source]; i < end; i++) {
      const int column = (int)columns_ptr[i] - shift;
      if (column >= 0 && column < OUT_COLUMNS) {
        out_columns_ptr[row * SLOT + count] = (unsigned short)column;
        out_ptr[row * SLOT + count] = values_ptr[i];
        count++;
      }
    }
  }
  out_counts_ptr[row] = count;
}

extern "C" __global__ void __launch_bounds__(256) im2col_csr_warp(
    const int* __restrict__ start_ptr, const unsigned short* __restrict__ columns_ptr,
    const unsigned char* __restrict__ values_ptr, int* __restrict__ out_counts_ptr,
    unsigned short* __restrict__ out_columns_ptr, unsigned char* __restrict__ out_ptr) {
  const int row = (int)blockIdx.x * 8 + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  if (row >= ROWS) return;
  const int source = source_row(row), shift = shift_of(row);
  int count = 0;
  if (source >= 0) {
    const int begin = start_ptr[source], end = start_ptr[source + 1];
    for (int i = begin; i < end; i += 32) {
      const int column = i + lane < end ? (int)columns_ptr[i + lane] - shift : -1;
      const bool kept = column >= 0 && column < OUT_COLUMNS;
      const unsigned all = __ballot_sync(4294967295u, kept);
      if (kept) {
        const int place = row * SLOT + count + __popc(all & ((1u << lane) - 1u));
        out_columns_ptr[place] = (unsigned short)column;
        out_ptr[place] = values_ptr[i + lane];
      }
      count += __popc(all);
    }
  }
  if (lane == 0) out_counts_ptr[row] = count;
}
