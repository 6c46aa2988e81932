//@ word_nhwcnc
/* Word of @tensor@ [image groups][height][width][blocks of 128 channels][planes][8 images][4 words] that holds a channel's
 * bit of a plane: bit channel % 32 of it. */
static inline size_t @stem@_@tensor@_word(size_t image, size_t row, size_t column, size_t channel, size_t plane)
{
    const size_t pixel = (image / 8 * @tensor_rows@ + row) * @tensor_columns@ + column;
    const size_t block = (pixel * @tensor_blocks@ + channel / 128) * @tensor_planes@ + plane;
    return (block * 8 + image % 8) * 4 + channel % 128 / 32;
}

//@ word_nhwc
/* Word of @tensor@ [images][height][width][blocks of 128 channels][planes][4 words] that holds a channel's bit of a plane:
 * bit channel % 32 of it. */
static inline size_t @stem@_@tensor@_word(size_t image, size_t row, size_t column, size_t channel, size_t plane)
{
    const size_t pixel = (image * @tensor_rows@ + row) * @tensor_columns@ + column;
    return ((pixel * @tensor_blocks@ + channel / 128) * @tensor_planes@ + plane) * 4 + channel % 128 / 32;
}

//@ word_nb8r
/* Word of @tensor@ [image groups][pairs of rows][width][planes][8 images][2 rows x 2 words] that holds a channel's bit of a
 * plane: bit channel % 32 of it. */
static inline size_t @stem@_@tensor@_word(size_t image, size_t row, size_t column, size_t channel, size_t plane)
{
    const size_t pixel = (image / 8 * ((@tensor_rows@ + 1) / 2) + row / 2) * @tensor_columns@ + column;
    return ((pixel * @tensor_planes@ + plane) * 8 + image % 8) * 4 + row % 2 * 2 + channel / 32;
}

//@ operands
/* The code of a value: bit t of it goes into plane t. -1 of what is no value of the type. */
static inline int @stem@_x_code(@x_c@ value)
{
    static const int16_t codes[] = {@x_codes@};
    const int place = (int)value - (@x_least@);
    return place < 0 || place >= (int)(sizeof codes / sizeof codes[0]) ? -1 : codes[place];
}

static inline int @stem@_w_code(@w_c@ value)
{
    static const int16_t codes[] = {@w_codes@};
    const int place = (int)value - (@w_least@);
    return place < 0 || place >= (int)(sizeof codes / sizeof codes[0]) ? -1 : codes[place];
}

/* Activations: x @x_host@ [N][H][W][C] -> words uint32 @x_words@, all of them written.
 * BAD_VALUE when a value is none of @x_type@. */
static inline int @stem@_pack_activations(const @x_c@ *x, uint32_t *words)
{
    const size_t images = @n@, height = @h@, width = @w@, channels = @c@;
    for (size_t i = 0; i < @NAME@_ACTIVATION_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t n = 0; n < images; ++n) {
        for (size_t h = 0; h < height; ++h) {
            for (size_t w = 0; w < width; ++w) {
                for (size_t c = 0; c < channels; ++c) {
                    const int code = @stem@_x_code(*x++);
                    if (code < 0) {
                        return @NAME@_BAD_VALUE;
                    }
                    for (size_t plane = 0; plane < @planes@; ++plane) {
                        words[@stem@_x_word(n, h, w, c, plane)] |= ((uint32_t)code >> plane & 1u) << (c % 32);
                    }
                }
            }
        }
    }
    return @NAME@_OK;
}

//@ constants
/* What is added to the counts of output channel k at pixels of a border class: of the codes that the class's taps read,
 * and of how many these are. The classes of rows and of columns say which taps lie inside the image. */
static inline int64_t @stem@_constant(const @w_c@ *w, size_t k, size_t border)
{
    static const int16_t bits[] = {@w_bits@}; /* of each code, each bit as often as its plane counts */
    static const uint8_t rows[@row_classes@][@r@] = {@row_taps@};
    static const uint8_t columns[@column_classes@][@s@] = {@column_taps@};
    int64_t whole = 0, inside = 0, counted = 0;
    for (size_t r = 0; r < @r@; ++r) {
        for (size_t s = 0; s < @s@; ++s) {
            const @w_c@ *tap = w + ((k * @r@ + r) * @s@ + s) * @c@;
            int64_t sum = 0;
            for (size_t c = 0; c < @c@; ++c) {
                sum += bits[@stem@_w_code(tap[c])];
            }
            whole += sum;
            if (rows[border / @column_classes@][r] && columns[border % @column_classes@][s]) {
                inside += sum;
                counted += @c@;
            }
        }
    }
    return @scale@ * (@per_channel@ * inside + @per_count@ * counted) + @window@ * whole + @shift@;
}

/* Whether each of the weights is a value of @w_type@. */
static inline int @stem@_weights_fit(const @w_c@ *w)
{
    for (size_t i = 0; i < (size_t)@k@ * @r@ * @s@ * @c@; ++i) {
        if (@stem@_w_code(w[i]) < 0) {
            return 0;
        }
    }
    return 1;
}

//@ no_ones
/* No columns of ones stand in memory. */
static inline void @stem@_put_ones(uint32_t *words)
{
    (void)words;
}

//@ weights
/* Weights: w @w_host@ [K][R][S][C] -> words uint32 @w_words@, all of them written, as blocks of the kernel read them@with_table@.
 * BAD_VALUE when a value is none of @w_type@. */
static inline int @stem@_prepare_weights(const @w_c@ *w, uint32_t *words)
{
    if (!@stem@_weights_fit(w)) {
        return @NAME@_BAD_VALUE;
    }
    for (size_t i = 0; i < @NAME@_WEIGHT_WORDS; ++i) {
        words[i] = 0;
    }
    @stem@_put_ones(words);
    for (size_t k = 0; k < @k@; ++k) {
        for (size_t r = 0; r < @r@; ++r) {
            for (size_t s = 0; s < @s@; ++s) {
                for (size_t c = 0; c < @c@; ++c) {
                    const int code = @stem@_w_code(w[((k * @r@ + r) * @s@ + s) * @c@ + c]);
                    for (size_t plane = 0; plane < @weight_planes@; ++plane) {
                        if ((uint32_t)code >> plane & 1u) {
                            @stem@_put_weight(words, k, r, s, c, plane);
                        }
                    }
                }
            }
        }
    }
@write_table@    return @NAME@_OK;
}

//@ table_of_sums
    for (size_t border = 0; border < @classes@; ++border) {
        for (size_t k = 0; k < @k@; ++k) {
            @stem@_put_entry(words, border, 0, k, @stem@_constant(w, k, border));
        }
    }

//@ levels
/* Whether these are thresholds of weights that are values of their type: flips are 0 or 1, the levels of a channel never
 * fall from one to the next, those of a flipped one never rise. */
static inline int @stem@_levels_fit(const @w_c@ *w, const int32_t *levels, const uint8_t *flips)
{
    const size_t count = @thresholds@, filters = @k@;
    if (!@stem@_weights_fit(w)) {
        return 0;
    }
    for (size_t k = 0; k < filters; ++k) {
        if (flips[k] > 1) {
            return 0;
        }
        for (size_t n = 1; n < count; ++n) {
            const int32_t one = levels[(n - 1) * filters + k], next = levels[n * filters + k];
            if (flips[k] ? next > one : next < one) {
                return 0;
            }
        }
    }
    return 1;
}

static inline void @stem@_put_flips(uint32_t *words, const uint8_t *flips)
{
    for (size_t k = 0; k < @k@; ++k) {
        words[k / @slice_channels@ * @table_words@ + @first_flip@ + k % @slice_channels@ / 32] |= (uint32_t)flips[k] << (k % 32);
    }
}

//@ parameters_thresholds
/* Thresholds: levels int32 [@thresholds@][K], flips [K] (0 or 1), beside the weights w @w_host@ [K][R][S][C] -> all words uint32
 * @parameters_words@. The output's rank among the values of @output@ is how many levels n have (sum >= levels[n]) != flip;
 * a level of 2^31 - 1 is passed by no sum, one of -2^31 by all. BAD_VALUE when levels of a channel fall (of a flipped one:
 * rise) from one to the next, a flip is neither 0 nor 1, or a weight is no value of its type. */
static inline int @stem@_prepare_parameters(const @w_c@ *w, const int32_t *levels, const uint8_t *flips, uint32_t *words)
{
    const size_t count = @thresholds@, filters = @k@;
    if (!@stem@_levels_fit(w, levels, flips)) {
        return @NAME@_BAD_VALUE;
    }
    for (size_t i = 0; i < @NAME@_PARAMETER_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t border = 0; border < @classes@; ++border) {
        for (size_t k = 0; k < @table_channels@; ++k) {
            const int64_t constant = k < filters ? @stem@_constant(w, k, border) : 0;
            for (size_t n = 0; n < count; ++n) {
                int64_t needed = @never@;
                if (k < filters) { /* of what varies with the pixel, rounded up, no further than it reaches */
                    const int64_t rest = (int64_t)levels[n * filters + k] * @scale@ - constant;
                    needed = rest / @divisor@ + (rest % @divisor@ > 0);
                    needed = needed < @least@ ? @least@ : needed > @never@ ? @never@ : needed;
                }
                @stem@_put_entry(words, border, n, k, @entry@);
            }
        }
    }
    @stem@_put_flips(words, flips);
    return @NAME@_OK;
}

//@ parameters_line
/* The slope of a channel's line, in sums for each level: the middle of those of all lines through its steps. */
static inline double @stem@_pitch(const int64_t *steps)
{
    const int64_t limit = @largest_sum@;
    double most = 0.0, least = 0.0, pitch;
    int bounded = 0, low, high;
    for (low = 0; low < 15; ++low) {
        for (high = low + 1; high < 15; ++high) {
            const double apart = (double)(steps[high] - steps[low]), levels = high - low;
            const double at_least = (apart - 1.0) / levels, at_most = (apart + 1.0) / levels;
            least = at_least > least ? at_least : least;
            if (steps[low] > -limit && steps[high] <= limit && steps[low] <= limit && steps[high] > -limit) {
                most = !bounded || at_most < most ? at_most : most;
                bounded = 1;
            }
        }
    }
    pitch = bounded ? (least + most) / 2.0 : least + 1.0;
    return pitch < 0.0078125 ? 0.0078125 : pitch;
}

/* The words of a channel whose sums reach so many of its steps; 0 when they are not exact. */
static inline int @stem@_line_of(const int64_t *steps, uint32_t *words)
{
    const int64_t limit = @largest_sum@;
    const double scale = (double)(1 << @scale_log2@);
    const double unit = 19807040628566084398385987584.0; /* 2^94: units of 2^-149 from one float at 2^-32 to the next */
    double best = -1.0, pitch = 0.0, place = 0.0, ideal, each, third, at_eight;
    float second;
    int64_t added;
    int inside = 0, always = 0, level, n;
    for (level = 0; level < 15; ++level) {
        always += steps[level] <= -limit;
        inside += steps[level] > -limit && steps[level] <= limit;
    }
    if (!inside) { /* a constant */
        words[0] = 127u << 23;
        words[1] = 0;
        words[2] = (uint32_t)always;
        return 1;
    }
    ideal = @stem@_pitch(steps);
    for (n = 0; n < 29; ++n) { /* the middle slope, and the fractions with denominators up to 14 around it */
        const double count = n < 15 ? n : n - 14;
        double most = 4611686018427387904.0, least = -most, slope = ideal;
        if (n) {
            slope = (double)(n < 15 ? (int64_t)(ideal * count) : @stem@_ceiling(ideal * count)) / count;
        }
        slope = slope < 0.0078125 ? 0.0078125 : slope;
        for (level = 0; level < 15; ++level) {
            const volatile double line = slope * level; /* rounded, on every machine */
            const double above = (double)steps[level] - line, below = (double)(steps[level] - 1) - line;
            most = steps[level] <= limit && above < most ? above : most;
            least = steps[level] > -limit && below > least ? below : least;
        }
        if (n == 0 || most - least > best) {
            best = most - least;
            pitch = slope;
            place = (least + most) / 2;
        }
    }
    second = (float)(1.0 / pitch / (unit * scale));
    each = second * unit;
    third = @stem@_nearest(8.0 - each * 12582912.0);
    at_eight = (8.0 - third) / each;
    added = (int64_t)@stem@_nearest(at_eight - (place + 7.5 * pitch) * scale) + ((int64_t)94 << 23);
    memcpy(words + 1, &second, sizeof second);
    words[0] = (uint32_t)added;
    words[2] = third < 0.0 ? 0x80000000u | (uint32_t)-third : (uint32_t)third;
    if (added - limit * (1 << @scale_log2@) < 0 || added + limit * (1 << @scale_log2@) > 0x7F7FFFFF ||
        words[1] < 1u << 23 || words[1] > 0x7F7FFFFFu || (words[2] & 0x7FFFFFFFu) >= 1u << 23) {
        return 0;
    }
    for (level = 0; level < 15; ++level) {
        const int64_t step = steps[level];
        if ((step - 1 >= -limit && @stem@_reaches(step - 1, words, level + 1)) ||
            (step <= limit && !@stem@_reaches(step, words, level + 1))) {
            return 0;
        }
    }
    return 1;
}

/* Thresholds: levels int32 [15][K], flips [K] (0 or 1), beside the weights w @w_host@ [K][R][S][C] -> all words uint32
 * @parameters_words@. The output's rank among the values of @output@ is how many levels n have (sum >= levels[n]) != flip.
 * The kernel multiplies where levels lie on a line, as those of a normalization do: proven here for every sum there can
 * be; else NOT_EXACT, and the kernel has to be built with requant="general". BAD_VALUE when levels of a channel fall (of
 * a flipped one: rise) from one to the next, a flip is neither 0 nor 1, or a weight is no value of its type. */
static inline int @stem@_prepare_parameters(const @w_c@ *w, const int32_t *levels, const uint8_t *flips, uint32_t *words)
{
    const size_t filters = @k@;
    const int64_t limit = @largest_sum@;
    if (!@stem@_levels_fit(w, levels, flips)) {
        return @NAME@_BAD_VALUE;
    }
    for (size_t i = 0; i < @NAME@_PARAMETER_WORDS; ++i) {
        words[i] = 0;
    }
    for (size_t k = 0; k < @table_channels@; ++k) {
        uint32_t found[3] = {127u << 23, 0, 0}; /* channels that only fill up reach nothing */
        if (k < filters) {
            int64_t steps[15];
            for (size_t n = 0; n < 15; ++n) {
                const int64_t level = levels[(flips[k] ? 14 - n : n) * filters + k];
                steps[n] = level < -limit ? -limit : level > limit + 1 ? limit + 1 : level;
            }
            if (!@stem@_line_of(steps, found)) {
                return @NAME@_NOT_EXACT;
            }
        }
        for (size_t border = 0; border < @classes@; ++border) {
            const int64_t constant = k < filters ? @stem@_constant(w, k, border) : 0;
            const uint32_t first = found[0] + (uint32_t)(constant * (1 << @scale_log2@));
            const size_t word = border * (@slice_channels@ / 32) + k % @slice_channels@ / 32;
            uint32_t *entry = words + k / @slice_channels@ * @table_words@ + ((word * 8 + k % 8) * 4 + k % 32 / 8) * 4;
            entry[0] = first;
            entry[1] = found[1];
            entry[2] = found[2];
        }
    }
    @stem@_put_flips(words, flips);
    return @NAME@_OK;
}

//@ output_bits
/* Output: words uint32 @y_words@ -> y @y_host@ [N][P][Q][K], values of @output@.
 * A next layer of the same layout reads the words as they are. */
static inline void @stem@_unpack_output(const uint32_t *words, @y_c@ *y)
{
    static const @y_c@ values[] = {@y_values_by_code@};
    const size_t images = @n@, height = @p@, width = @q@, filters = @k@;
    for (size_t n = 0; n < images; ++n) {
        for (size_t p = 0; p < height; ++p) {
            for (size_t q = 0; q < width; ++q) {
                for (size_t k = 0; k < filters; ++k) {
                    uint32_t code = 0;
                    for (size_t plane = 0; plane < @output_planes@; ++plane) {
                        code |= (words[@stem@_y_word(n, p, q, k, plane)] >> (k % 32) & 1u) << plane;
                    }
                    *y++ = values[code];
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
                    *y++ = words[@sum_word@];
                }
            }
        }
    }
}
