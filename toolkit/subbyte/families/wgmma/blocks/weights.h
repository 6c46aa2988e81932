/* Weights: w int8 [K][R][S][C] -> words uint32 @w_words@, all of them written. A block is 64 filters and 32 channels
 * of one tap; blocks of zeros are left out. First @list_tiles@ heads of 32 words, one for each 64 filters: the number
 * of their first fragment, then for each kernel row, and behind the last one, how many live blocks come before it.
 * Then @list_fragments@ fragments of 544 words: two live blocks, the first one in the low nibbles, and in words 512 and
 * 513 their places: the kernel row from bit 24 on, and what lies between in shared memory, in units of 16 bytes.
 * Word 4*t + 2*b + f of a fragment is of thread t = 32*i + 4*g + q: filter 16*i + 2*g + f, channels 8*q + b, and from
 * there each second one of four.
 * BAD_VALUE when a value is outside -8..7, or more blocks are live than the fragments hold. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, rows = @r@, columns = @s@, channels = @c@;
    const size_t fragments = @list_fragments@, pairs = @list_pairs@;
    uint32_t *const lists = words + (size_t)@list_tiles@ * 32;
    size_t first = 0;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t i = 0; i < fragments; ++i) {
        lists[i * 544 + 512] = lists[i * 544 + 513] = (uint32_t)rows << 24;
    }
    for (size_t i = 0; i < filters * rows * columns * channels; ++i) {
        if (w[i] < -8 || w[i] > 7) {
            return @NAME@_BAD_VALUE;
        }
    }
    for (size_t tile = 0; tile < @list_tiles@; ++tile) {
        uint32_t *const head = words + tile * 32;
        size_t live = 0;
        head[0] = (uint32_t)first;
        for (size_t row = 0; row < rows; ++row) {
            head[1 + row] = (uint32_t)live;
            for (size_t column = 0; column < columns; ++column) {
                for (size_t block = 0; block * 32 < channels; ++block) {
                    int found = 0;
                    for (size_t k = tile * 64; k < filters && k < tile * 64 + 64; ++k) {
                        for (size_t c = block * 32; c < channels && c < block * 32 + 32; ++c) {
                            const int8_t value = w[((k * rows + row) * columns + column) * channels + c];
                            const size_t thread = k % 64 / 16 * 32 + k % 16 / 2 * 4 + c % 32 / 8;
                            const size_t place = (first + live / 2) * 544 + thread * 4 + c % 2 * 2 + k % 2;
                            if (value == 0) {
                                continue;
                            }
                            if (first + live / 2 >= fragments) {
                                return @NAME@_BAD_VALUE;
                            }
                            lists[place] |= ((uint32_t)value & 15u) << (c % 8 / 2 * 8 + live % 2 * 4);
                            found = 1;
                        }
                    }
                    if (found) {
                        lists[(first + live / 2) * 544 + 512 + live % 2] = (uint32_t)(row << 24)
                            + (uint32_t)(row * @list_row@ + block * @list_block@ + column * @list_column@);
                        ++live;
                    }
                }
            }
        }
        head[1 + rows] = (uint32_t)live;
        first += live == 0 ? pairs : (live + 2 * pairs - 1) / (2 * pairs) * pairs;
        if (first > fragments) {
            return @NAME@_BAD_VALUE;
        }
    }
    return @NAME@_OK;
}
