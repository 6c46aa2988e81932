// A second, independent reference for shapes too large for the CPU: one thread for each word of eight output channels,
// no tile and no shared memory, on the packed layout [image groups][H][W][channel words / 4][8 images][4 words].
// `sizes` holds N (a multiple of 8), H, W, channel words, P, Q, filter words, R, S, padding, stride, dilation, clip low,
// clip high; `w` is packed like words of 8 channels: [K][R][S][channel words]; `scaling` is bias, multiplier, shift [K].

__device__ static size_t word_at(int image, int row, int column, int word, int height, int width, int words)
{
    const size_t pixel = ((size_t)(image / 8) * height + row) * width + column;
    return ((pixel * (words / 4) + word / 4) * 8 + image % 8) * 4 + word % 4;
}

// Sum of the products of eight int4 values, times 256: each nibble stands in the upper half of a byte.
__device__ static int products(unsigned x, unsigned w, int sum)
{
    sum = __dp4a((int)(x & 0xF0F0F0F0u), (int)(w & 0xF0F0F0F0u), sum);
    return __dp4a((int)(x << 4 & 0xF0F0F0F0u), (int)(w << 4 & 0xF0F0F0F0u), sum);
}

extern "C" __global__ void direct(
    const unsigned *x, const unsigned *w, const int *scaling, const int *sizes, unsigned *out)
{
    const int images = sizes[0], height = sizes[1], width = sizes[2], words = sizes[3], p = sizes[4], q = sizes[5];
    const int filter_words = sizes[6], r = sizes[7], s = sizes[8], pad = sizes[9], stride = sizes[10];
    const int dilation = sizes[11], low = sizes[12], high = sizes[13], filters = 8 * filter_words;
    const size_t index = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (size_t)images * p * q * filter_words) {
        return;
    }
    const int filter_word = (int)(index % filter_words), image = (int)(index / filter_words % images);
    const size_t pixel = index / filter_words / images;
    const int column = (int)(pixel % q), row = (int)(pixel / q);
    int sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int tap = 0; tap < r * s; ++tap) {
        const int from_row = row * stride - pad + tap / s * dilation;
        const int from_column = column * stride - pad + tap % s * dilation;
        if (from_row < 0 || from_row >= height || from_column < 0 || from_column >= width) {
            continue;
        }
        for (int word = 0; word < words; ++word) {
            const unsigned value = x[word_at(image, from_row, from_column, word, height, width, words)];
            for (int k = 0; k < 8; ++k) {
                const size_t filter = (size_t)filter_word * 8 + k;
                sums[k] = products(value, w[(filter * (r * s) + tap) * words + word], sums[k]);
            }
        }
    }
    unsigned packed = 0;
    for (int k = 0; k < 8; ++k) {
        const int filter = filter_word * 8 + k, shift = scaling[2 * filters + filter];
        const long long product = ((long long)(sums[k] >> 8) + scaling[filter]) * scaling[filters + filter];
        const long long rounded = (product >> shift) + (product >> (shift - 1) & 1);
        const int value = (int)(rounded < low ? low : rounded > high ? high : rounded);
        packed |= ((unsigned)value & 15u) << (4 * k);
    }
    out[word_at(image, row, column, filter_word, p, q, filter_words)] = packed;
}

// Adds to `count` how many of `length[0]` words differ.
extern "C" __global__ void differing(const unsigned *a, const unsigned *b, const unsigned *length, unsigned *count)
{
    unsigned found = 0;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < length[0]; i += (size_t)gridDim.x * blockDim.x) {
        found += a[i] != b[i];
    }
    if (found) {
        atomicAdd(count, found);
    }
}
