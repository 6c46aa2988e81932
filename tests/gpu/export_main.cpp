// Runs one exported kernel: reads operands, compares the output with what it must be.
//
//     g++ -std=c++17 -DHEADER='"STEM.h"' -DSTEM=stem -DNAME=STEM [-DREQUANTIZED | -DCOMPARED -DLEVELS=n]
//         [-DOVERLAPPING] -IFOLDER
//         export_main.cpp -lcuda
//     ./a.out FOLDER
//
// FOLDER holds x.bin (int8 [N,H,W,C]), w.bin (int8 [K,R,S,C]), expected.bin (int8 or int32 [N,P,Q,K]) and, for a kernel
// that requantizes (-DREQUANTIZED), bias.bin, multiplier.bin and shift.bin (int32 [K]); for one that compares with
// thresholds (-DCOMPARED) levels.bin (int32 [levels,K]) and flips.bin (uint8 [K]), the number of levels in -DLEVELS. Types
// other than int8 are said by -DX_TYPE, -DW_TYPE and -DY_TYPE. Writes y.bin there. A kernel that
// may start early (-DOVERLAPPING) is launched twice more, behind itself. Exit code: 0 equal, 1 different, 2 anything else.
#include HEADER

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define JOIN_(prefix, name) prefix##_##name
#define JOIN(prefix, name) JOIN_(prefix, name)
#define CALL(name) JOIN(STEM, name)
#define SIZE(name) static_cast<size_t>(JOIN(NAME, name))

#ifndef X_TYPE
#define X_TYPE int8_t
#endif
#ifndef W_TYPE
#define W_TYPE int8_t
#endif
#ifndef Y_TYPE
#define Y_TYPE int8_t
#endif
#if defined(REQUANTIZED) || defined(COMPARED)
#define PARAMETERS
using Output = Y_TYPE;
using OutputWord = uint32_t;
#else
using Output = int32_t;
using OutputWord = int32_t;
#endif

[[noreturn]] static void stop(const std::string &message)
{
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(2);
}

static void check(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        const char *name = nullptr;
        cuGetErrorName(result, &name);
        stop(std::string(what) + ": " + (name ? name : "unknown error"));
    }
}

template <class T> static std::vector<T> read(const std::string &path, size_t count)
{
    std::vector<T> values(count + 1);  // one more, so that a file that is too long is noticed
    FILE *file = std::fopen(path.c_str(), "rb");
    const size_t found = file ? std::fread(values.data(), sizeof(T), count + 1, file) : 0;
    if (file) {
        std::fclose(file);
    }
    if (found != count) {
        stop(path + ": expected " + std::to_string(count) + " values");
    }
    values.resize(count);
    return values;
}

static CUdeviceptr upload(const std::vector<uint32_t> &words)
{
    CUdeviceptr pointer = 0;
    check(cuMemAlloc(&pointer, 4 * words.size()), "cuMemAlloc");
    check(cuMemcpyHtoD(pointer, words.data(), 4 * words.size()), "cuMemcpyHtoD");
    return pointer;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        stop("one argument: the folder with the operands");
    }
    const std::string folder = std::string(argv[1]) + "/";
    const auto x = read<X_TYPE>(folder + "x.bin", SIZE(N) * SIZE(H) * SIZE(W) * SIZE(C));
    const auto w = read<W_TYPE>(folder + "w.bin", SIZE(K) * SIZE(R) * SIZE(S) * SIZE(C));
    const auto expected = read<Output>(folder + "expected.bin", SIZE(N) * SIZE(P) * SIZE(Q) * SIZE(K));

    std::vector<uint32_t> x_words(SIZE(ACTIVATION_WORDS)), w_words(SIZE(WEIGHT_WORDS));
    if (CALL(pack_activations)(x.data(), x_words.data()) || CALL(prepare_weights)(w.data(), w_words.data())) {
        stop("x.bin or w.bin holds a value that is none of its type");
    }
#ifdef REQUANTIZED
    const auto bias = read<int32_t>(folder + "bias.bin", SIZE(K));
    const auto multiplier = read<int32_t>(folder + "multiplier.bin", SIZE(K));
    const auto shift = read<int32_t>(folder + "shift.bin", SIZE(K));
    std::vector<uint32_t> parameter_words(SIZE(PARAMETER_WORDS));
    if (CALL(prepare_parameters)(bias.data(), multiplier.data(), shift.data(), parameter_words.data())) {
        stop("the kernel cannot apply this requantization");
    }
#elif defined(COMPARED)
    const auto levels = read<int32_t>(folder + "levels.bin", LEVELS * SIZE(K));
    const auto flips = read<uint8_t>(folder + "flips.bin", SIZE(K));
    std::vector<uint32_t> parameter_words(SIZE(PARAMETER_WORDS));
    if (CALL(prepare_parameters)(w.data(), levels.data(), flips.data(), parameter_words.data())) {
        stop("these are no thresholds");
    }
#endif

    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmodule module;
    CUfunction function;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    check(CALL(load)(&module, &function), "load");
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

    std::vector<OutputWord> y_words(SIZE(OUTPUT_WORDS));
    const CUdeviceptr x_device = upload(x_words), w_device = upload(w_words);
    CUdeviceptr y_device = 0;
    check(cuMemAlloc(&y_device, SIZE(OUTPUT_BYTES)), "cuMemAlloc");
    check(cuMemsetD32(y_device, 0x5A5A5A5A, SIZE(OUTPUT_WORDS)), "cuMemsetD32");
    check(cuStreamSynchronize(nullptr), "cuStreamSynchronize");
#ifdef PARAMETERS
    const CUdeviceptr parameters_device = upload(parameter_words);
#define ARGUMENTS function, stream, x_device, w_device, parameters_device, y_device
#else
#define ARGUMENTS function, stream, x_device, w_device, y_device
#endif
    check(CALL(launch)(ARGUMENTS), "launch");
#ifdef OVERLAPPING
    for (int again = 0; again < 2; ++again) {
        check(CALL(launch_overlapping)(ARGUMENTS), "launch_overlapping");
    }
#endif
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    check(cuMemcpyDtoH(y_words.data(), y_device, SIZE(OUTPUT_BYTES)), "cuMemcpyDtoH");

    std::vector<Output> y(expected.size());
    CALL(unpack_output)(y_words.data(), y.data());
    size_t different = 0;
    for (size_t i = 0; i < y.size(); ++i) {
        different += y[i] != expected[i];
    }
    FILE *file = std::fopen((folder + "y.bin").c_str(), "wb");
    if (!file || std::fwrite(y.data(), sizeof(Output), y.size(), file) != y.size() || std::fclose(file)) {
        stop("cannot write y.bin");
    }
    std::printf("%zu values, %zu differ\n", y.size(), different);

#ifdef PARAMETERS
    check(cuMemFree(parameters_device), "cuMemFree");
#endif
    for (const CUdeviceptr pointer : {x_device, w_device, y_device}) {
        check(cuMemFree(pointer), "cuMemFree");
    }
    check(cuModuleUnload(module), "cuModuleUnload");
    check(cuStreamDestroy(stream), "cuStreamDestroy");
    check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
    return different ? 1 : 0;
}
