//@ operands
/* An int4 value at its place in a word of eight. */
static inline uint32_t @stem@_at(int8_t value, size_t element)
{
    return ((uint32_t)value & 15u) << (4 * (element % 8));
}

/* Activations: x int8 [N][H][W][C] -> words uint32 @x_words@, all of them written:
 * [image groups][@strip_rows@ rows][@strip_words@ words][8 images]. A pixel is @strip_channels@ values; the first one of a row lies @pad@ pixels
 * left of the image, the first row @pad@ pixels above it. What no tile reads is left out.
 * BAD_VALUE when a value is outside -8..7. */
static inline int @stem@_pack_activations(const int8_t *x, uint32_t *words)
{
    const size_t images = @n@, height = @h@, width = @w@, channels = @c@;
    for (size_t i = 0; i < @NAME@_ACTIVATION_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t n = 0; n < images; ++n) {
        for (size_t h = 0; h < height; ++h) {
            for (size_t w = 0; w < width; ++w) {
                for (size_t c = 0; c < channels; ++c) {
                    const size_t value = (w + @pad@) * @strip_channels@ + c, row = h + @pad@;
                    const int8_t given = *x++;
                    if (given < -8 || given > 7) {
                        return @NAME@_BAD_VALUE;
                    }
                    if (row < @strip_rows@ && value < @strip_words@ * 8) {
                        words[((n / 8 * @strip_rows@ + row) * @strip_words@ + value / 8) * 8 + n % 8] |=
                            @stem@_at(given, value);
                    }
                }
            }
        }
    }
    return @NAME@_OK;
}

//@ weights
/* Where the taps of a window are among its bytes: [@phases@ phases][R][S][C]. */
static const uint16_t @stem@_taps[] = {
@taps@
};

/* Weights: w int8 [K][R][S][C] -> words uint32 @w_words@, all of them written: bytes,
 * [slices of @slice@ filters][@phases@ phases][@steps@ steps][@slice@ / 8][2][8][16 bytes]. Where a window begins in its first word depends on the
 * output column: the phases. @order@. Byte i of a window is byte i % 16
 * of half i % 32 / 16 of step i / 32. BAD_VALUE when a value is outside -8..7. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    const size_t filters = @k@, taps = (size_t)@r@ * @s@ * @c@, slice = @slice@;
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        const size_t one = k % slice, line = @line@;
        for (size_t tap = 0; tap < taps; ++tap) {
            const int8_t given = *w++;
            if (given < -8 || given > 7) {
                return @NAME@_BAD_VALUE;
            }
            for (size_t phase = 0; phase < @phases@; ++phase) {
                const size_t place = @stem@_taps[phase * taps + tap], part = (k / slice * @phases@ + phase) * @steps@ + place / 32;
                const size_t matrix = (part * (slice / 8) + line / 8) * 2 + place % 32 / 16;
                words[(matrix * 8 + line % 8) * 4 + place % 16 / 4] |= ((uint32_t)given & 255u) << (8 * (place % 4));
            }
        }
    }
    return @NAME@_OK;
}
