/* A driver that computes nothing: memory is the host's, and a launch records what it was given.
 *
 * A launch then calls stub_launched, or, in a program of its own, fills the output from the file STUB_OUTPUT names. */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct recorded {
    const unsigned char *image;
    char entry[64];
    int attribute, value, loaded;
    unsigned sizes[7];
    CUdeviceptr pointers[5];
    int overlapping;
} stub;
int stub_arguments = 0;
int stub_fails_at_attribute = 0;
void (*stub_launched)(void) = NULL;

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult result, const char **name)
{
    *name = result == CUDA_SUCCESS ? "CUDA_SUCCESS" : "an error of the stub";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) { (void)device; *context = NULL; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { (void)device; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { (void)context; return CUDA_SUCCESS; }
CUresult cuStreamCreate(CUstream *stream, unsigned flags) { (void)flags; *stream = NULL; return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream stream) { (void)stream; return CUDA_SUCCESS; }
CUresult cuStreamDestroy(CUstream stream) { (void)stream; return CUDA_SUCCESS; }

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t bytes) { *pointer = (uintptr_t)malloc(bytes); return CUDA_SUCCESS; }
CUresult cuMemFree(CUdeviceptr pointer) { free((void *)(uintptr_t)pointer); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes)
{
    memcpy((void *)(uintptr_t)target, source, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes)
{
    memcpy(target, (const void *)(uintptr_t)source, bytes);
    return CUDA_SUCCESS;
}
CUresult cuMemsetD32(CUdeviceptr target, unsigned value, size_t words)
{
    for (size_t i = 0; i < words; ++i) {
        ((unsigned *)(uintptr_t)target)[i] = value;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    stub.image = (const unsigned char *)image;
    stub.loaded += 1;
    *module = (CUmodule)(uintptr_t)1;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module)
{
    stub.loaded -= module == (CUmodule)(uintptr_t)1;
    return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    snprintf(stub.entry, sizeof stub.entry, "%s", name);
    *function = (CUfunction)(uintptr_t)2;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    stub.attribute = (int)attribute;
    stub.value = value;
    return stub_fails_at_attribute || function != (CUfunction)(uintptr_t)2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult fill_output(CUdeviceptr output)
{
    const char *name = getenv("STUB_OUTPUT");
    FILE *file = name ? fopen(name, "rb") : NULL;
    if (file == NULL) {
        return name ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
    }
    char *target = (char *)(uintptr_t)output;
    while (!feof(file)) {
        target += fread(target, 1, 4096, file);
    }
    fclose(file);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **arguments,
                        void **extra)
{
    const unsigned sizes[7] = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes};
    (void)function, (void)stream;
    if (extra != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(stub.sizes, sizes, sizeof sizes);
    stub.overlapping = 0;
    for (int i = 0; i < stub_arguments; ++i) {
        stub.pointers[i] = *(CUdeviceptr *)arguments[i];
    }
    if (stub_launched != NULL) {
        stub_launched();
    }
    return fill_output(*(CUdeviceptr *)arguments[1]);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra)
{
    const CUresult result = cuLaunchKernel(
        function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
        config->blockDimZ, config->sharedMemBytes, config->hStream, arguments, extra);
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        stub.overlapping |= attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            && attribute->value.programmaticStreamSerializationAllowed;
    }
    return result;
}
