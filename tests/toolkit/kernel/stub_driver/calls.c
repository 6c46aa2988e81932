/* An exported header's functions under plain names, for ctypes. The macros HEADER, STEM, NAME and VALUES come from the
 * test: file name, prefixes, and the constants to read back. */
#include HEADER

#ifdef __cplusplus
extern "C" {
#endif

#ifndef X_TYPE
#define X_TYPE int8_t
#define W_TYPE int8_t
#define Y_TYPE int8_t
#endif
#define JOIN_(prefix, name) prefix##_##name
#define JOIN(prefix, name) JOIN_(prefix, name)
#define CALL(name) JOIN(STEM, name)
#define VALUE(name) (long long)JOIN(NAME, name),

long long read_value(int i);
int call_pack(const X_TYPE *x, uint32_t *words);
int call_weights(const W_TYPE *w, uint32_t *words);
void call_unpack(const void *words, void *y);
CUresult call_load(void);
CUresult call_launch(const CUdeviceptr *p);

long long read_value(int i)
{
    static const long long values[] = {VALUES 0};
    return values[i];
}
int call_pack(const X_TYPE *x, uint32_t *words) { return CALL(pack_activations)(x, words); }
int call_weights(const W_TYPE *w, uint32_t *words) { return CALL(prepare_weights)(w, words); }

#ifdef ADDED_TYPE
int call_residual(const ADDED_TYPE *r, uint32_t *words);
int call_residual(const ADDED_TYPE *r, uint32_t *words) { return CALL(pack_residual)(r, words); }
int call_parameters(
    const int32_t *bias, const int32_t *multiplier, const int32_t *shift, const int32_t *added, uint32_t *words);
int call_parameters(
    const int32_t *bias, const int32_t *multiplier, const int32_t *shift, const int32_t *added, uint32_t *words)
{
    return CALL(prepare_parameters)(bias, multiplier, shift, added, words);
}
void call_unpack(const void *words, void *y) { CALL(unpack_output)((const uint32_t *)words, (Y_TYPE *)y); }
#elif defined(REQUANTIZED)
int call_parameters(const int32_t *bias, const int32_t *multiplier, const int32_t *shift, uint32_t *words);
int call_parameters(const int32_t *bias, const int32_t *multiplier, const int32_t *shift, uint32_t *words)
{
    return CALL(prepare_parameters)(bias, multiplier, shift, words);
}
void call_unpack(const void *words, void *y) { CALL(unpack_output)((const uint32_t *)words, (Y_TYPE *)y); }
#elif defined(COMPARED)
int call_thresholds(const W_TYPE *w, const int32_t *levels, const uint8_t *flips, uint32_t *words);
int call_thresholds(const W_TYPE *w, const int32_t *levels, const uint8_t *flips, uint32_t *words)
{
    return CALL(prepare_parameters)(w, levels, flips, words);
}
void call_unpack(const void *words, void *y) { CALL(unpack_output)((const uint32_t *)words, (Y_TYPE *)y); }
#else
void call_unpack(const void *words, void *y) { CALL(unpack_output)((const int32_t *)words, (int32_t *)y); }
#endif

static CUfunction function;
CUresult call_load(void)
{
    CUmodule module;
    return CALL(load)(&module, &function);
}
CUresult call_launch(const CUdeviceptr *p)
{
#ifdef ADDED_TYPE
    return CALL(launch)(function, NULL, p[0], p[1], p[2], p[4], p[3]);
#elif defined(REQUANTIZED) || defined(COMPARED)
    return CALL(launch)(function, NULL, p[0], p[1], p[2], p[3]);
#else
    return CALL(launch)(function, NULL, p[0], p[1], p[3]);
#endif
}

#ifdef OVERLAPPING
CUresult call_launch_overlapping(const CUdeviceptr *p);
CUresult call_launch_overlapping(const CUdeviceptr *p)
{
#ifdef ADDED_TYPE
    return CALL(launch_overlapping)(function, NULL, p[0], p[1], p[2], p[4], p[3]);
#elif defined(REQUANTIZED) || defined(COMPARED)
    return CALL(launch_overlapping)(function, NULL, p[0], p[1], p[2], p[3]);
#else
    return CALL(launch_overlapping)(function, NULL, p[0], p[1], p[3]);
#endif
}
#endif

#ifdef __cplusplus
}
#endif
