"""The schedule itself: loops, attached stages, thread bindings and matrix instructions."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest import mock

import tvm
from tvm import te
from tvm.s_tir import Schedule, TensorIntrin
from tvm.script import tirx as T

from benchmarks.paper.hwnc.space import Operand
from subbyte.workload import ConvWorkload


def _tvm_intrinsics() -> Any:
    """TVM's functions that make matrix instructions.

    Importing them makes and registers those of every processor, which takes many seconds; here none of them is made
    until it is asked for.
    """
    with mock.patch.object(T, "prim_func", return_value=_left_out), mock.patch.object(TensorIntrin, "register"):
        return import_module("tvm.s_tir.tensor_intrin.cuda")


def _left_out(*_: Any, **__: Any) -> None:
    """Stands for a matrix instruction that nobody asked for."""


intrinsics = _tvm_intrinsics()
ATTACHED = 4
"""Loops around everything a block does for one pixel: three of the grid and the pixel's own."""


def hwnc_module(w: ConvWorkload, operand: Operand, knobs: dict[str, Any]) -> Any:
    """The scheduled module. Inputs: padded activations [H+2][W+2][N][C], weights [R][S][K/n][C/k][n][k]; output int32
    [P][Q][N][K]."""
    names = _intrinsics(operand)
    s = Schedule(_convolution(w, operand))
    conv, acts, out = (s.get_sblock(name) for name in ("conv", "lowered", "out"))
    s.set_scope(acts, 0, "shared")
    act_fragment = s.cache_read(conv, 0, "wmma.matrix_a")
    weights = s.cache_read(conv, 1, "shared")
    weight_fragment = s.cache_read(conv, 1, "wmma.matrix_b")
    s.set_scope(conv, 0, "wmma.accumulator")
    sums = s.cache_read(out, 0, "shared")
    pixel = _output(s, out, knobs)
    warp = _sums(s, sums, pixel, knobs)
    s.compute_at(conv, warp, preserve_unit_loops=True)
    ko, kw, outermost = _reduction(s, conv, knobs)
    s.compute_at(act_fragment, kw, preserve_unit_loops=True)
    s.compute_at(weight_fragment, kw, preserve_unit_loops=True)
    s.compute_at(acts, ko, preserve_unit_loops=True)
    s.compute_at(weights, kw, preserve_unit_loops=True)
    _copy(s, acts, ko, knobs, knobs["vector_as"])
    _copy(s, weights, kw, knobs, knobs["vector_ws"])
    init = s.decompose_reduction(conv, outermost)
    s.tensorize(s.get_loops(init)[-2], names["fill"])
    s.tensorize(s.get_loops(conv)[-3], names["mma"])
    s.tensorize(s.get_loops(act_fragment)[-2], names["load_a"])
    s.tensorize(s.get_loops(weight_fragment)[-2], names["load_b"])
    s.tensorize(s.get_loops(sums)[-2], names["store"])
    first = s.get_loops(out)[0]
    s.annotate(first, "pragma_auto_unroll_max_step", knobs["auto_unroll_max_step"])
    s.annotate(first, "pragma_unroll_explicit", 0)
    return s.mod


def _convolution(w: ConvWorkload, o: Operand) -> Any:
    """The computation. The lowered entries are a stage of their own, attached where TVM reads its padded data."""
    x = te.placeholder((w.h + 2 * w.pad, w.w + 2 * w.pad, w.n // o.m, o.m, w.c // o.k, o.k), o.dtype, "x")
    f = te.placeholder((w.r, w.s, w.k // o.n, w.c // o.k, o.n, o.k), o.dtype, "w")
    lowered = te.compute(
        (w.p, w.q, w.r, w.s, w.n // o.m, w.c // o.k, o.m, o.k),
        lambda h, v, r, s, n, c, nn, cc: x[h + r, v + s, n, nn, c, cc],
        "lowered",
    )
    ic, ii = te.reduce_axis((0, w.c // o.k), "ic"), te.reduce_axis((0, o.k), "ii")
    kh, kw = te.reduce_axis((0, w.r), "kh"), te.reduce_axis((0, w.s), "kw")
    conv = te.compute(
        (w.p, w.q, w.n // o.m, w.k // o.n, o.m, o.n),
        lambda h, v, n, k, nn, kk: te.sum(
            lowered[h, v, kh, kw, n, ic, nn, ii].astype("int32") * f[kh, kw, k, ic, kk, ii].astype("int32"),
            [ic, kh, kw, ii],
        ),
        "conv",
    )
    out = te.compute(
        (w.p, w.q, w.n // o.m, o.m, w.k // o.n, o.n), lambda h, v, n, nn, k, kk: conv[h, v, n, k, nn, kk], "out"
    )
    return te.create_prim_func([x, f, out])


def _output(s: Any, out: Any, knobs: dict[str, Any]) -> Any:
    """Bind the output stage to the grid and the threads; the loop over a block's pixels."""
    h, v, n, nn, k, kk = s.get_loops(out)
    s.reorder(h, v, n, k, nn, kk)
    blocks, pixel = s.split(s.fuse(h, v), [None, knobs["split_block_k_nums"]])
    rows, cols = _tiles(s, n, k, knobs)
    s.reorder(blocks, rows[0], cols[0], pixel, rows[1], cols[1], rows[2], cols[2], nn, kk)
    for loop, axis in ((blocks, "blockIdx.z"), (rows[0], "blockIdx.x"), (cols[0], "blockIdx.y")):
        s.bind(loop, axis)
    _bind_warps(s, rows[1], cols[1])
    s.bind(s.split(s.fuse(nn, kk), [None, 32])[1], "threadIdx.x")
    return pixel


def _sums(s: Any, sums: Any, pixel: Any, knobs: dict[str, Any]) -> Any:
    """Attach the way of the sums through shared memory; the loop over a warp's own tiles."""
    s.compute_at(sums, pixel, preserve_unit_loops=True)
    _, _, n, k, nn, kk = s.get_loops(sums)[ATTACHED:]
    rows, cols = _tiles(s, n, k, knobs)
    s.reorder(rows[0], cols[0], rows[1], cols[1], rows[2], cols[2], nn, kk)
    _bind_warps(s, rows[1], cols[1])
    return cols[1]


def _reduction(s: Any, conv: Any, knobs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Order the loops of the multiplication: the loop of the channel chunks, of the kernel's columns, the outermost."""
    n, k, nn, kk, ic, kh, kw, ii = s.get_loops(conv)[-8:]
    ko, ki = s.split(ic, [None, knobs["chunk"]])
    order = (kh, ko, kw, ki) if knobs["reorder_inner"] else (ko, kh, ki, kw)
    s.reorder(*order, n, k, nn, kk, ii)
    return ko, kw, order[0]


def _tiles(s: Any, n: Any, k: Any, knobs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Blocks, warps and tiles along batch groups and along filters."""
    rows = s.split(n, [None, knobs["block_row_warps"], knobs["warp_row_tiles"]])
    cols = s.split(k, [None, knobs["block_col_warps"], knobs["warp_col_tiles"]])
    return list(rows), list(cols)


def _bind_warps(s: Any, row: Any, col: Any) -> None:
    s.bind(row, "threadIdx.y")
    s.bind(col, "threadIdx.z")


def _copy(s: Any, stage: Any, attached: Any, knobs: dict[str, Any], vector: int) -> None:
    """Spread a stage's tiles over the warps and a tile over the lanes, ``vector`` elements at a time."""
    loops = s.get_loops(stage)
    place = next(i for i, loop in enumerate(loops) if s.get(loop).same_as(s.get(attached)))
    own = loops[place + 1 :]
    tiles, tile = s.fuse(*own[:-2]), s.fuse(*own[-2:])
    _, col, row = s.split(tiles, [None, knobs["block_col_warps"], knobs["block_row_warps"]])
    _bind_warps(s, row, col)
    pieces, elements = s.split(tile, [None, vector])
    s.bind(s.split(pieces, [None, 32])[1], "threadIdx.x")
    if vector > 1:
        s.vectorize(elements)


def _intrinsics(o: Operand) -> dict[str, str]:
    """Names of the matrix instructions, registered when first asked for."""
    made = {
        "load_a": lambda: intrinsics.get_wmma_load_intrin(o.m, o.n, o.k, o.dtype, "shared", False, False),
        "load_b": lambda: intrinsics.get_wmma_load_intrin(o.m, o.n, o.k, o.dtype, "shared", True, True),
        "mma": lambda: intrinsics.get_wmma_sync_intrin(o.m, o.n, o.k, o.dtype, "int32", True),
        "fill": lambda: intrinsics.get_wmma_fill_intrin(o.m, o.n, o.k, "int32"),
        "store": lambda: intrinsics.get_wmma_store_intrin(o.m, o.n, o.k, "int32", "shared"),
    }
    names = {kind: f"subbyte_hwnc_{o.name}_{kind}" for kind in made}
    for kind, make in made.items():
        TensorIntrin.register(names[kind], *make(), override=True)
    return names


def cuda_text(module: Any, arch: str) -> str:
    """CUDA text of a scheduled module, through TVM's standard pipeline."""
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    # Rewriting storage puts int32 sums and int4 operands into one buffer, which the int4 access pointers then refuse.
    with target, tvm.transform.PassContext(config={"tirx.disable_storage_rewrite": True}):
        built = tvm.tirx.build(module, target=target)
    return str(built.imports[0].inspect_source())
