"""Tune a kernel of your own: a product of int8 matrices in Triton, built and timed by Triton, searched by subbyte.

Run it where there is a GPU, PyTorch and Triton: python docs/examples/product_triton.py
"""

from functools import cache

import subbyte

SIZE = 4096
PARAMETERS = {
    "rows": [32, 64, 128, 256], "columns": [32, 64, 128, 256], "depth": [32, 64, 128], "group": [1, 8],
    "warps": [4, 8], "stages": [2, 3, 4, 5],
}  # fmt: skip


def fits(p):
    """The tiles of all stages lie in shared memory, and a thread has no more than 128 sums."""
    shared = (p["rows"] + p["columns"]) * p["depth"] * p["stages"]
    return shared <= 227 * 1024 and 8 <= p["rows"] * p["columns"] // (32 * p["warps"]) <= 128


@cache
def kernel():
    """The kernel; what it is written in is loaded only where it is used."""
    import triton
    import triton.language as tl

    @triton.jit
    def product(
        a, b, out, SIZE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
        GROUP: tl.constexpr,
    ):  # fmt: skip
        across: tl.constexpr = SIZE // COLUMNS
        band = tl.program_id(0) // (GROUP * across)  # rows of tiles that share what the L2 holds
        row = band * GROUP + tl.program_id(0) % GROUP
        column = tl.program_id(0) % (GROUP * across) // GROUP
        i = row * ROWS + tl.arange(0, ROWS)
        j = column * COLUMNS + tl.arange(0, COLUMNS)
        k = tl.arange(0, DEPTH)
        sums = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
        for start in range(0, SIZE, DEPTH):
            left = tl.load(a + i[:, None] * SIZE + (start + k)[None, :])
            right = tl.load(b + j[None, :] * SIZE + (start + k)[:, None])
            sums += tl.dot(left, right, out_dtype=tl.int32)
        tl.store(out + i[:, None] * SIZE + j[None, :], sums)

    return product


@cache
def operands():
    """Two random matrices, the second with its columns as rows, and their exact product."""
    import torch

    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, (SIZE, SIZE), dtype=torch.int8, device="cuda") for _ in range(2))
    return a, b, torch._int_mm(a, b.t())


def microseconds(rows, columns, depth, group, warps, stages):
    """Build, check and time one configuration: samples in microseconds."""
    import torch
    from triton.testing import do_bench

    a, b, right = operands()
    out = torch.full_like(right, -1)
    tiles = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": group}
    blocks = (SIZE // rows) * (SIZE // columns)

    def run():
        kernel()[(blocks,)](a, b, out, SIZE, **tiles, num_warps=warps, num_stages=stages)

    run()
    if not torch.equal(out, right):
        raise ValueError("the output is not the product of the matrices")
    return [1000 * one for one in do_bench(run, warmup=5, rep=20, return_mode="all")]


def main():
    """Search, print the best, keep every result in a log."""
    space = subbyte.parameter_space("product", PARAMETERS, fits, problem_size=(SIZE, SIZE, SIZE), arch="sm_90")
    with subbyte.Study(space, "auto", seed=1, log="product.jsonl") as study:
        record = study.run(subbyte.objective(microseconds), trials=40)
    best = record.best
    print(f"{len(record.trials)} of {len(space.valid)} configurations, {record.ended}")
    print(f"best: {best.config} in {best.microseconds:.1f} us, {2 * SIZE**3 / best.microseconds / 1e6:.0f} TOPS")


if __name__ == "__main__":
    main()
