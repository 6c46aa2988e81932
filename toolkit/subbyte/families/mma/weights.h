/* Weights: w int8 [K][R][S][C] -> words uint32 @w_words@, all of them written:
 * [channel blocks][R*S][filter tiles / V][32 lanes][V], V = @vector@ words that a lane loads together.
 * Lane 4*o + j holds channels 8j..8j+7 of the block for filter 8*tile + o, tile = group*V + v.
 * BAD_VALUE when a value is outside -8..7. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, taps = @taps@, channels = @c@;
    const size_t vector = @vector@, groups = @groups@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        const size_t tile = k / 8;
        for (size_t tap = 0; tap < taps; ++tap) {
            for (size_t c = 0; c < channels; ++c) {
                const size_t lane = k % 8 * 4 + c % 32 / 8;
                const size_t group = (c / 32 * taps + tap) * groups + tile / vector;
                const int8_t value = *w++;
                if (value < -8 || value > 7) {
                    return @NAME@_BAD_VALUE;
                }
                words[(group * 32 + lane) * vector + tile % vector] |= @stem@_at(value, c);
            }
        }
    }
    return @NAME@_OK;
}
