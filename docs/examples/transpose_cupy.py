"""Tune a kernel of your own: a transposition in CUDA C++, built and timed by CuPy, searched by subbyte.

Run it where there is a GPU and CuPy: python docs/examples/transpose_cupy.py
"""

import subbyte

SIZE = 8192
SOURCE = r"""
extern "C" __global__ void transpose(const float* in, float* out) {
    __shared__ float tile[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int row = 0; row < TILE; row += ROWS) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * SIZE + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int row = 0; row < TILE; row += ROWS) out[(y + row) * SIZE + x] = tile[threadIdx.x][threadIdx.y + row];
}
"""
PARAMETERS = {"tile": [8, 16, 32, 64], "rows": [1, 2, 4, 8, 16, 32], "pad": [0, 1, 2], "maxreg": [16, 32, 64]}


def fits(p):
    """A tile is a whole number of strips of rows, and a block has 32 to 1,024 threads."""
    return p["tile"] % p["rows"] == 0 and 32 <= p["tile"] * p["rows"] <= 1024


def microseconds(tile, rows, pad, maxreg):
    """Build, check and time one configuration: samples in microseconds."""
    import cupy
    from cupyx.profiler import benchmark

    options = (f"-DTILE={tile}", f"-DROWS={rows}", f"-DPAD={pad}", f"-DSIZE={SIZE}", f"--maxrregcount={maxreg}")
    kernel = cupy.RawKernel(SOURCE, "transpose", options)
    there = cupy.arange(SIZE * SIZE, dtype=cupy.float32).reshape(SIZE, SIZE)
    back = cupy.full((SIZE, SIZE), cupy.nan, dtype=cupy.float32)
    run = ((SIZE // tile, SIZE // tile), (tile, rows), (there, back))
    kernel(*run)
    if not bool((back == there.T).all()):
        raise ValueError("the output is not the transposed input")
    return (benchmark(kernel, run, n_repeat=20, n_warmup=3).gpu_times[0] * 1e6).tolist()


def main():
    """Search, print the best, keep every result in a log."""
    space = subbyte.parameter_space("transpose", PARAMETERS, fits, problem_size=(SIZE, SIZE), arch="sm_90")
    with subbyte.Study(space, "auto", seed=1, log="transpose.jsonl") as study:
        record = study.run(subbyte.objective(microseconds), trials=40)
    best = record.best
    print(f"{len(record.trials)} of {len(space.valid)} configurations, {record.ended}")
    print(f"best: {best.config} in {best.microseconds:.1f} us")


if __name__ == "__main__":
    main()
