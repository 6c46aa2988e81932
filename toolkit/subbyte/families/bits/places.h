//@ weight
/* A weight's bit: [slices][variants][pieces][columns][4 words], a piece 128 channels of a tap@pieces@, and columns
 * those of a plane behind those of the one before. */
static inline void @stem@_put_weight(uint32_t *words, size_t k, size_t r, size_t s, size_t c, size_t plane)
{
    const size_t own = k % @slice_channels@, in_word = own % 32;
    const size_t column = plane * @slice_channels@ + own / 32 * 32 + in_word % 8 / 2 * 8 + in_word / 8 * 2 + in_word % 2;
    static const size_t parities[] = {@parities@};
    for (size_t variant = 0; variant < @variants@; ++variant) {
        const size_t row = r + parities[variant], piece = @piece@;
        const size_t place = k / @slice_channels@ * @variants@ + variant;
        words[place * @variant_words@ + k / @slice_channels@ * @behind@ + (piece * @columns@ + column) * 4 + @word@] |= 1u << (c % 32);
    }
}

//@ ones
/* Columns of ones, which count the activations' bits. */
static inline void @stem@_put_ones(uint32_t *words)
{
    static const size_t parities[] = {@parities@};
    for (size_t slice = 0; slice < @slices@; ++slice) {
        for (size_t variant = 0; variant < @variants@; ++variant) {
            uint32_t *of = words + (slice * @variants@ + variant) * @variant_words@ + slice * @behind@;
            for (size_t i = 0; i < @tap_words@; ++i) {
                const size_t row = i / (@s@ * @words_of_tap@) + parities[variant], s = i / @words_of_tap@ % @s@;
                const size_t c = i % @words_of_tap@ * 32, piece = @piece@;
                for (size_t column = 0; column < @ones@; ++column) {
                    of[(piece * @columns@ + @first_ones@ + column) * 4 + @word@] = 0xFFFFFFFFu;
                }
            }
        }
    }
}

//@ entry
/* An entry of the table that a block compares with, or adds. */
static inline void @stem@_put_entry(uint32_t *words, size_t border, size_t threshold, size_t k, int64_t value)
{
    const size_t own = k % @slice_channels@, word = own / 32;
    const size_t slot = @slot@, half = @half@;
    const size_t row = ((border * @thresholds@ + threshold) * @slots@ + slot) * 32 + k % 8 / 4 * 16 + k % 32 / 8 * 4 + k % 4;
    words[k / @slice_channels@ * @table_step@ + @table_first@ + row] |= ((uint32_t)value & @entry_mask@u) << (16 * half);
}
