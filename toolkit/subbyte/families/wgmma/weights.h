/* Weights: w int8 [K][R][S][C] -> words uint32 @w_words@, all of them written: fragments of 128 threads * 4 words, each
 * 64 filters and @fragment_channels@ channels of one tap. The axes before them are @weight_axes@.
 * Thread 32*i + 4*g + q holds filters 16*i + 2*g and 16*i + 2*g + 1 and channels 8*q..8*q+7 of a block of 32.
 * BAD_VALUE when a value is outside -8..7. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, rows = @r@, columns = @s@, channels = @c@;
    const size_t halves = @halves@, steps = @steps@, groups = @weight_groups@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        for (size_t row = 0; row < rows; ++row) {
            for (size_t column = 0; column < columns; ++column) {
                for (size_t c = 0; c < channels; ++c) {
                    const size_t block = c / 32, step = block / halves % steps, part = block / halves / steps;
                    const size_t fragment = k / 64 * @tile_step@ + part / groups * @rank_step@
                        + part % groups * @group_step@ + step * @step_step@ + row * @row_step@ + column * @column_step@;
                    const size_t thread = k % 64 / 16 * 32 + k % 16 / 2 * 4 + c % 32 / 8;
                    const size_t bit = c % 8 / 2 * 8 + block % halves * 4;
                    const int8_t value = *w++;
                    if (value < -8 || value > 7) {
                        return @NAME@_BAD_VALUE;
                    }
                    words[(fragment * 128 + thread) * 4 + c % 2 * 2 + k % 2] |= ((uint32_t)value & 15u) << bit;
                }
            }
        }
    }
    return @NAME@_OK;
}
