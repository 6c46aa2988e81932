//@ weight
/* A weight's bit: stage after stage [kernel row][kernel column][channel block][plane][32 output channels' 128 words]. */
static inline void @stem@_put_weight(uint32_t *words, size_t k, size_t r, size_t s, size_t c, size_t plane)
{
    const size_t block = c / 128, word = c % 128 / 32, own = k % @slice_channels@, in_word = own % 32;
    const size_t column = in_word % 8 / 2 * 8 + in_word / 8 * 2 + in_word % 2;
    const size_t place = @place@;
    const size_t group = (place * @weight_planes@ + plane) * @block_words@ + own / 32;
    words[k / @slice_channels@ * @slice_words@ + group * 128 + @within@] |= 1u << (c % 32);
}

//@ entry
/* An entry of the table that a block compares with, or adds. */
static inline void @stem@_put_entry(uint32_t *words, size_t border, size_t threshold, size_t k, int64_t value)
{
    const size_t own = k % @slice_channels@, c = own % 32;
    const size_t row = ((border * @thresholds@ + threshold) * @block_words@ + own / 32) * 32;
    words[k / @slice_channels@ * @table_step@ + @table_first@ + row + c % 8 / 4 * 16 + c / 8 * 4 + c % 4] = (uint32_t)value;
}
