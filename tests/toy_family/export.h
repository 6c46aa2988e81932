//@ index_nhwcnc
/* Word of a packed tensor [image groups][height][width][channel blocks][8 images][4 words] that holds a channel of a
 * pixel of an image; the channel is element channel % 16 of it. */
static inline size_t @stem@_word(
    size_t image, size_t row, size_t column, size_t channel, size_t height, size_t width, size_t channel_blocks)
{
    const size_t pixel = ((image / 8 * height) + row) * width + column;
    return ((pixel * channel_blocks + channel / 64) * 8 + image % 8) * 4 + channel % 64 / 16;
}

//@ index_nhwc
/* Word of a packed tensor [images][height][width][channel blocks * 4 words] that holds a channel of a pixel of an
 * image; the channel is element channel % 16 of it. */
static inline size_t @stem@_word(
    size_t image, size_t row, size_t column, size_t channel, size_t height, size_t width, size_t channel_blocks)
{
    const size_t pixel = (image * height + row) * width + column;
    return pixel * (channel_blocks * 4) + channel / 16;
}

//@ operands
/* Activations: x int8 [N][H][W][C] -> words uint32 @x_words@. BAD_VALUE when a value is outside 0..3. */
static inline int @stem@_pack_activations(const int8_t *x, uint32_t *words)
{
    memset(words, 0, @NAME@_ACTIVATION_BYTES);
    for (size_t n = 0; n < @n@; ++n) {
        for (size_t h = 0; h < @h@; ++h) {
            for (size_t w = 0; w < @w@; ++w) {
                for (size_t c = 0; c < @c@; ++c) {
                    const int8_t value = *x++;
                    if (value < 0 || value > 3) {
                        return @NAME@_BAD_VALUE;
                    }
                    words[@stem@_word(n, h, w, c, @h@, @w@, @channel_blocks@)] |= (uint32_t)value << (2 * (c % 16));
                }
            }
        }
    }
    return @NAME@_OK;
}

//@ weights
/* Weights: w int8 [K][R][S][C], values 0, 1, 2 and 4 -> words uint32 @w_words@. BAD_VALUE for any other value. */
static inline int @stem@_prepare_weights(const int8_t *w, uint32_t *words)
{
    memset(words, 0, @NAME@_WEIGHT_BYTES);
    for (size_t filter = 0; filter < @k@; ++filter) {
        for (size_t tap = 0; tap < @taps@; ++tap) {
            for (size_t c = 0; c < @c@; ++c) {
                const int8_t value = *w++;
                if (value < 0 || value > 4 || value == 3) {
                    return @NAME@_BAD_VALUE;
                }
                const uint32_t code = value == 4 ? 3u : (uint32_t)value;
                words[(filter * @taps@ + tap) * (@channel_blocks@ * 4) + c / 16] |= code << (2 * (c % 16));
            }
        }
    }
    return @NAME@_OK;
}

//@ output_uint2
/* Output: words uint32 @y_words@ -> y int8 [N][P][Q][K], values 0..3. */
static inline void @stem@_unpack_output(const uint32_t *words, int8_t *y)
{
    for (size_t n = 0; n < @n@; ++n) {
        for (size_t p = 0; p < @p@; ++p) {
            for (size_t q = 0; q < @q@; ++q) {
                for (size_t k = 0; k < @k@; ++k) {
                    const uint32_t word = words[@stem@_word(n, p, q, k, @p@, @q@, @filter_blocks@)];
                    *y++ = (int8_t)(word >> (2 * (k % 16)) & 3u);
                }
            }
        }
    }
}

//@ output_int32
/* Output: sums int32 @y_words@ -> y int32 [N][P][Q][K]. */
static inline void @stem@_unpack_output(const int32_t *words, int32_t *y)
{
    for (size_t n = 0; n < @n@; ++n) {
        for (size_t p = 0; p < @p@; ++p) {
            for (size_t q = 0; q < @q@; ++q) {
                for (size_t k = 0; k < @k@; ++k) {
                    *y++ = words[@stem@_word(n, p, q, k, @p@, @q@, @filter_blocks@) * 16 + k % 16];
                }
            }
        }
    }
}
