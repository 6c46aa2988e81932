/* Weights: w int8 [K][R][S][C] -> words uint32 @w_words@, all of them written: fragments of 384 words, each 64 filters
 * and 64 channels of one tap. The axes before them are @weight_axes@. Of four neighbouring channels two at most are not
 * 0. In K the first four of every eight channels of a block of 32 come before the last four of them.
 * Words 2*t and 2*t+1 of a fragment are of thread t = 32*i + 4*g + q: the kept values of filters 16*i + 2*g (low nibbles)
 * and one more (high ones), groups 2*q and 2*q+1 of the first block and of the second one. Word 256 + 32*i + 4*g + 2*b + f
 * is the inverted metadata of filter 16*i + 2*g + f and block b: two bits for each kept value.
 * BAD_VALUE when a value is outside -8..7, or a third one of four is not 0. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, rows = @r@, columns = @s@, channels = @c@;
    const size_t steps = @steps@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = i % 384 < 256 ? 0u : 0xbbbbbbbbu; /* the first two of four */
    }
    for (size_t k = 0; k < filters; ++k) {
        for (size_t row = 0; row < rows; ++row) {
            for (size_t column = 0; column < columns; ++column, w += channels) {
                for (size_t c = 0; c < channels; c += 4) {
                    const size_t block = c / 32, group = c % 8 / 4 * 4 + c % 32 / 8;
                    const size_t fragment = k / 64 * @tile_step@ + block / 2 / steps * @group_step@
                        + block / 2 % steps * @step_step@ + row * @row_step@ + column * @column_step@;
                    uint32_t *const here = words + fragment * 384;
                    const size_t thread = k % 64 / 16 * 32 + k % 16 / 2 * 4;
                    size_t places[2] = {0, 1}, found = 0;
                    for (size_t i = 0; i < 4 && c + i < channels; ++i) {
                        const int8_t value = w[c + i];
                        if (value < -8 || value > 7 || (value != 0 && found == 2)) {
                            return @NAME@_BAD_VALUE;
                        }
                        if (value != 0) {
                            places[found++] = i;
                        }
                    }
                    if (found == 1) { /* a zero beside it: the first there is */
                        places[1] = places[0] == 0 ? 1 : places[0];
                        places[0] = 0;
                    }
                    for (size_t kept = 0; kept < 2; ++kept) {
                        const size_t place = places[kept], first = 2 * (2 * group + kept);
                        const uint32_t value = c + place < channels ? (uint32_t)w[c + place] & 15u : 0u;
                        uint32_t *const metadata = here + 256 + thread + block % 2 * 2 + k % 2;
                        here[2 * (thread + group / 2) + block % 2] |= value << (group % 2 * 16 + kept * 8 + k % 2 * 4);
                        *metadata = (*metadata & ~(3u << first)) | ((3u & ~(uint32_t)place) << first);
                    }
                }
            }
        }
    }
    return @NAME@_OK;
}
