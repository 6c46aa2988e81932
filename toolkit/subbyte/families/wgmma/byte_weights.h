/* Weights: w @w_host@ [K][R][S][C] -> words uint32 @w_words@, all of them written: fragments of 128 threads * 4 words, each
 * 64 filters and @fragment_channels@ channels of one tap. The axes before them are @weight_axes@.
 * Thread 32*i + 4*g + q holds filters 16*i + 2*g and 16*i + 2*g + 1 and channels @own_channels@ of a block of 32@inverted@.@correction_words@
 * BAD_VALUE when a value is outside @w_values@. */
static inline int @stem@_prepare_weights(const @w_host@_t *w, uint32_t *words)
{
    const size_t filters = @k@, rows = @r@, columns = @s@, channels = @c@;
    const size_t halves = @halves@, steps = @steps@, groups = @weight_groups@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = @fill@;
    }
    for (size_t k = 0; k < filters; ++k) {
@sum@        for (size_t row = 0; row < rows; ++row) {
            for (size_t column = 0; column < columns; ++column) {
                for (size_t c = 0; c < channels; ++c) {
                    const size_t block = c / 32, step = block / halves % steps, part = block / halves / steps;
                    const size_t fragment = k / 64 * @tile_step@ + part / groups * @rank_step@
                        + part % groups * @group_step@ + step * @step_step@ + row * @row_step@ + column * @column_step@;
                    const size_t thread = k % 64 / 16 * 32 + k % 16 / 2 * 4 + @lane@;
                    const size_t bit = @bit@ + block % halves * 4;
                    const int value = (int)*w++;
                    if (value < @w_least@ || value > @w_largest@) {
                        return @NAME@_BAD_VALUE;
                    }
                    words[(fragment * 128 + thread) * 4 + @pair@ + k % 2] ^= ((uint32_t)value & @w_mask@u) << bit;
@add@                }
            }
        }
@correction@    }
    return @NAME@_OK;
}
