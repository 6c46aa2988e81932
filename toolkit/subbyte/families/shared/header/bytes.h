//@ index_nhwcnc
/* Word of a packed tensor [image groups][height][width][channel blocks][8 images][4 words] (NHWCnc) that holds a
 * channel of a pixel of an image; a block has four words, and a word `values` channels. */
static inline size_t @stem@_word(
    size_t image, size_t row, size_t column, size_t channel, size_t height, size_t width, size_t channel_blocks,
    size_t values)
{
    const size_t pixel = ((image / 8 * height) + row) * width + column;
    return ((pixel * channel_blocks + channel / (4 * values)) * 8 + image % 8) * 4 + channel % (4 * values) / values;
}

//@ index_nhwc
/* Word of a packed tensor [images][height][width][channel blocks * 4 words] (NHWC) that holds a channel of a pixel of
 * an image; a word has `values` channels. */
static inline size_t @stem@_word(
    size_t image, size_t row, size_t column, size_t channel, size_t height, size_t width, size_t channel_blocks,
    size_t values)
{
    const size_t pixel = (image * height + row) * width + column;
    return pixel * (channel_blocks * 4) + channel / values;
}

//@ operands
/* Activations: x @x_host@ [N][H][W][C] -> words uint32 @x_words@, all of them written. A word has the codes of
 * @x_elements@ values, of @x_bits@ bits each: the value plus @x_zero@.
 * BAD_VALUE when a value is outside @x_values@. */
static inline int @stem@_pack_activations(const @x_host@_t *x, uint32_t *words)
{
    const size_t images = @n@, height = @h@, width = @w@, channels = @c@;
    for (size_t i = 0; i < @NAME@_ACTIVATION_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t n = 0; n < images; ++n) {
        for (size_t h = 0; h < height; ++h) {
            for (size_t w = 0; w < width; ++w) {
                for (size_t c = 0; c < channels; ++c) {
                    const size_t word = @stem@_word(n, h, w, c, height, width, @channel_blocks@, @x_elements@);
                    const int value = (int)*x++;
                    if (value < @x_least@ || value > @x_largest@) {
                        return @NAME@_BAD_VALUE;
                    }
                    words[word] |= ((uint32_t)(value + (@x_zero@)) & @x_mask@u) << (@x_bits@ * (c % @x_elements@));
                }
            }
        }
    }
    return @NAME@_OK;
}

//@ output_values
/* Output: words uint32 @y_words@ -> y @y_host@ [N][P][Q][K], @output@ values, a word has the codes of
 * @y_elements@. The words are packed like an input of the same type: a next layer of the same layout reads them as they are. */
static inline void @stem@_unpack_output(const uint32_t *words, @y_host@_t *y)
{
    const size_t images = @n@, height = @p@, width = @q@, filters = @k@;
    for (size_t n = 0; n < images; ++n) {
        for (size_t p = 0; p < height; ++p) {
            for (size_t q = 0; q < width; ++q) {
                for (size_t k = 0; k < filters; ++k) {
                    const size_t word = @stem@_word(n, p, q, k, height, width, @filter_blocks@, @y_elements@);
                    const int bits = (int)(words[word] >> (@y_bits@ * (k % @y_elements@)) & @y_mask@u);
                    *y++ = (@y_host@_t)((bits ^ @y_flip@) - @y_flip@ - (@y_zero_point@)); /* of the sign, where there is one */
                }
            }
        }
    }
}

//@ output_sums
/* Output: sums int32 @y_words@ -> y int32 [N][P][Q][K]. */
static inline void @stem@_unpack_output(const int32_t *words, int32_t *y)
{
    const size_t images = @n@, height = @p@, width = @q@, filters = @k@;
    for (size_t n = 0; n < images; ++n) {
        for (size_t p = 0; p < height; ++p) {
            for (size_t q = 0; q < width; ++q) {
                for (size_t k = 0; k < filters; ++k) {
                    const size_t word = @stem@_word(n, p, q, k, height, width, @filter_blocks@, @y_elements@);
                    *y++ = words[word * @y_elements@ + k % @y_elements@];
                }
            }
        }
    }
}
