/* Weights: w int8 [K][1][1][C] -> words uint32 @w_words@, all of them written:
 * [panels of 32 filters][blocks of 32 channels][32 positions][4 words].
 * Position 8*i + g of a block is channel 4*g + i. Word e/2, bits 16*(e%2) + 4*t of a position are filter
 * 8*(e/2) + 2*t + e%2 of the panel.
 * BAD_VALUE when a value is outside -8..7. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, channels = @c@, blocks = (channels + 31) / 32;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        const size_t f = k % 32, half = f % 2, tile = f % 8 / 2;
        for (size_t c = 0; c < channels; ++c) {
            const size_t position = c % 4 * 8 + c % 32 / 4;
            const int8_t value = *w++;
            if (value < -8 || value > 7) {
                return @NAME@_BAD_VALUE;
            }
            words[((k / 32 * blocks + c / 32) * 32 + position) * 4 + f / 8] |=
                @stem@_at(value, 4 * half + tile);
        }
    }
    return @NAME@_OK;
}
