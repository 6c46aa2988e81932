/* Weights: w @w_host@ [K][R][S][C] -> words uint32 @w_words@, all of them written:
 * [channel blocks][R*S][filter tiles / V][32 lanes][V], V = @vector@ words that a lane loads together.
 * Lane 4*o + j holds channels @x_elements@j to @x_elements@j + @x_elements@ - 1 of a block of @x_block@, for filter 8*tile + o@of_two_tiles@.@correction_words@
 * BAD_VALUE when a value is outside @w_values@. */
static inline int @stem@_prepare_weights(const @w_host@_t *w, uint32_t *words)
{
    const size_t filters = @k@, taps = @taps@, channels = @c@;
    const size_t vector = @vector@, groups = @groups@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        const size_t tile = k / @tile_filters@;
@sum@        for (size_t tap = 0; tap < taps; ++tap) {
            for (size_t c = 0; c < channels; ++c) {
                const size_t lane = k % 8 * 4 + c % @x_block@ / @x_elements@;
                const size_t group = (c / @x_block@ * taps + tap) * groups + tile / vector;
                const int value = (int)*w++;
                if (value < @w_least@ || value > @w_largest@) {
                    return @NAME@_BAD_VALUE;
                }
                words[(group * 32 + lane) * vector + tile % vector] |=
                    ((uint32_t)value & @w_mask@u) << (@x_bits@ * (c % @x_elements@)@upper@);
@add@            }
        }
@correction@    }
    return @NAME@_OK;
}
