"""The layers that the tests of other libraries' tensors run, and every program that they need, so that a machine
without TVM has them: ``python tests/gpu/tensor_cases.py FOLDER`` builds them where TVM is, into FOLDER/cache (for
SUBBYTE_CACHE) and, a saved chain, FOLDER/chain.safetensors.

``--check FOLDER`` does without TVM what a test does before its first launch, and says what is missing."""

from __future__ import annotations

import itertools
import os
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from unittest import mock

import numpy as np

ARCH = "sm_90a"
SPECS = {
    "stage4": "n8h14w14c256k256r3s3p1",
    "odd": "n3h5w7c40k24r3s3p1",
    "wide": "n8h56w56c64k64r3s3p1",
    "few": "n2h9w11c3k64r7s7p3u2",
    "large": "n64h14w14c256k256r3s3p1",
}
POOLS = {
    "max, int4": (("max", 3, 2, 1), (8, 112, 112, 64), "int4"),
    "max, uint8": (("max", 3, 2, 1, True, True), (9, 56, 55, 40), "uint8"),
    "mean, int4": (("average", 3, 2, 1, False), (5, 14, 13, 70), "int4"),
    "mean, int8": (("average", 3, 2, 1, True, True), (8, 14, 14, 256), "int8"),
    "whole map, uint8": (("average", (17, 16), 1), (3, 17, 16, 48), "uint8"),
    "max, zero point": (("max", 3, 2, 1, True, True), (9, 27, 28, 40), "offset8-z200"),
    "mean, zero point of uint4": (("average", 3, 2, 1), (8, 28, 28, 64), "offset4-z3"),
    "mean, zero point": (("average", 3, 2, 1), (8, 28, 28, 64), "offset8-z37"),
    "mean, uint4": (("average", 3, 2, 1), (8, 28, 28, 64), "uint4"),
    "mean, uint8": (("average", 3, 2, 1), (8, 28, 28, 64), "uint8"),
}
"""Pooling: what :class:`subbyte.Pooling` takes, sizes [N,H,W,C] and the type of the values."""
BYTES = {"int8": ((8, 14, 14, 256), 0.02), "uint8": ((3, 5, 7, 70), 0.37)}
"""Real values to 8 bits: sizes [N,H,W,C] and the scale, by type."""
TYPED = {
    "uint4": "n8h14w14c256k256r3s3p1:w4a4:signed.unsigned",
    "int8": "n8h14w14c256k256r3s3p1:w8a8:signed.signed",
    "uint8": "n8h14w14c256k256r3s3p1:w8a8:signed.unsigned",
    "int4 with uint8": "n3h5w7c40k24r3s3p1:w4a8:signed.unsigned",
    "zero point": "n8h14w14c256k256r3s3p1:w8a8:signed.offset-z37",
    "zero points in and out": "n3h5w7c40k24r3s3p1:w4a8:signed.offset-z200.signed-z-9",
    "zero point of uint4": "n8h14w14c256k256r3s3p1:w4a4:signed.offset-z3",
}
"""Layers of other types than int4."""
REALS = ("float16", "bfloat16", "float32")
PACKED = "nhwcnc"
CHAIN = 4
"""Layers of the chain: ``stage4`` again and again, whose output has the sizes of its input."""


@cache
def drawn(name: str, seed: int = 0):
    """Workload, x int8 [N,H,W,C], w [K,R,S,C] and a requantization."""
    from subbyte import workload
    from subbyte.numerics import Requantization

    wl, rng = workload(SPECS[name]), np.random.default_rng(seed)
    x = rng.integers(-8, 8, (wl.n, wl.h, wl.w, wl.c), np.int8)
    w = rng.integers(-8, 8, (wl.k, wl.r, wl.s, wl.c), np.int8)
    return wl, x, w, Requantization.random(wl, rng)


@cache
def right(name: str, sums: bool = False):
    """What the independent reference gives: int8 or int32 [N,P,Q,K]."""
    from subbyte.numerics import reference

    wl, x, w, requant = drawn(name)
    found = reference(wl, x, w)
    return found if sums else requant.apply(found)


@cache
def kernels(name: str):
    """The kernels that the tests take for a layer: what ``compile`` gives for any words, for packed neighbours, and for
    sums."""
    from subbyte.kernel.choose import compile as compile_kernel

    wl, _, _, requant = drawn(name)
    found = [compile_kernel(wl, ARCH).for_requantization(requant), compile_kernel(wl, ARCH, output="int32")]
    if name != "few":
        found.append(compile_kernel(wl, ARCH, reads=PACKED, writes=PACKED).for_requantization(requant))
    return found


def programs(name: str):
    """Kernels of a layer with the conversions on either side."""
    from subbyte.kernel.convert import packing, quantizing
    from subbyte.kernel.placed import ends_of

    for kernel in kernels(name):
        ends = ends_of(kernel, kernel)
        yield kernel
        yield from (ends.pack, ends.unpack)
        form = kernel.argument("A").form
        yield packing(form, ends.takes, ARCH, "int8", "nchw")
        yield from (quantizing(form, ends.takes, ARCH, element) for element in REALS)


@cache
def pooled(name: str):
    """A pooling kernel, x over the whole range of its type, and what the independent reference gives."""
    from subbyte import Pooling
    from subbyte.numerics import random_values
    from subbyte.numerics.pooling import pooling_reference

    given, shape, operand = POOLS[name]
    one = Pooling(*given)
    kernel = one.kernel(shape, ARCH, operand)
    x = random_values(kernel.workload.precision.activations, shape, np.random.default_rng(0))
    return (
        kernel,
        x,
        pooling_reference(x, one.kind, one.size, one.stride, one.padding, one.count_padding, one.ceil_mode),
    )


def pooling_programs(name: str):
    """A pooling kernel with the conversions on either side."""
    from subbyte.kernel.placed import ends_of

    kernel = pooled(name)[0]
    ends = ends_of(kernel, kernel)
    yield from (kernel, ends.pack, ends.unpack)


@cache
def typed(name: str):
    """A layer of a type: kernels for any words and for packed neighbours, x, w, a requantization, and what is right."""
    from subbyte import workload
    from subbyte.kernel.choose import compile as compile_kernel
    from subbyte.numerics import random_output, random_values, reference

    wl, rng = workload(TYPED[name]), np.random.default_rng(4)
    x = random_values(wl.precision.activations, (wl.n, wl.h, wl.w, wl.c), rng)
    w = random_values(wl.precision.weights, (wl.k, wl.r, wl.s, wl.c), rng)
    requant = random_output(wl, rng)
    kernels = [compile_kernel(wl, ARCH, reads=form, writes=form).for_requantization(requant) for form in ("", PACKED)]
    return kernels, x, w, requant, requant.apply(reference(wl, x, w))


def typed_programs(name: str):
    """Its kernels with the conversions on either side."""
    from subbyte.kernel.convert import quantizing
    from subbyte.kernel.placed import ends_of

    for kernel in typed(name)[0]:
        ends = ends_of(kernel, kernel)
        yield from (kernel, ends.pack, ends.unpack)
        of = kernel.workload.precision.activations
        yield quantizing(kernel.argument("A").form, ends.takes, ARCH, "float16", operand=of)


ADDED = {"odd blocks of 16 channels": "n9h14w14c40k40r3s3p1", "whole ones": "n8h14w14c64k64r3s3p1"}
"""Layers of int8 values, of which a 1x1 one behind adds what they give: their sizes."""


@cache
def added(name: str):
    """A chain of two layers, the second of which adds the first one's output, x, and what the reference gives."""
    from subbyte import Chain, workload
    from subbyte.kernel.choose import compile as compile_kernel
    from subbyte.kernel.execute import random_operands
    from subbyte.numerics import reference

    first = workload(f"{ADDED[name]}:w8a8:signed.signed")
    second = workload(f"n{first.n}h{first.p}w{first.q}c{first.k}k{first.k}r1s1p0:w8a8:signed.signed")
    kernels = [
        compile_kernel(wl, ARCH, output=output, reads=PACKED, writes=PACKED)
        for wl, output in ((first, None), (second, "int8+addint8"))
    ]
    (x, w, requant), (_, w2, requant2) = (random_operands(kernel, seed) for seed, kernel in enumerate(kernels))
    between = requant.apply(reference(first, x, w))
    right = requant2.apply(reference(second, between, w2), between)
    return Chain(kernels, [w, w2], [requant, requant2], [None, 0]), x, right


def added_programs(name: str):
    """Its kernels with the conversions on either side."""
    from subbyte.kernel.placed import ends_of

    kernels = added(name)[0].kernels
    ends = ends_of(kernels[0], kernels[-1])
    yield from (*kernels, ends.pack, ends.unpack)


def byte_programs(name: str):
    """Conversions of real values to a type of 8 bits."""
    from subbyte.kernel.convert import quantizing
    from subbyte.workload.operand import Operand

    for element in REALS:
        yield quantizing(PACKED, BYTES[name][0], ARCH, element, operand=Operand.named(name))


def chain():
    """Layers back to back, with their own weights."""
    from subbyte import Chain

    kernel = kernels("stage4")[-1]
    found = [drawn("stage4", seed) for seed in range(CHAIN)]
    requants = [found[0][3]] * CHAIN
    return Chain([kernel] * CHAIN, [one[2] for one in found], requants)


@cache
def chain_right():
    """What the reference gives for the chain's input, that of ``stage4``."""
    from subbyte.numerics import reference

    wl, x, _, requant = drawn("stage4")
    for seed in range(CHAIN):
        x = requant.apply(reference(wl, x, drawn("stage4", seed)[2]))
    return x


def _every_program() -> int:
    made = [
        *map(programs, SPECS),
        *map(pooling_programs, POOLS),
        *map(byte_programs, BYTES),
        *map(typed_programs, TYPED),
        *map(added_programs, ADDED),
    ]
    count = 0
    for program in itertools.chain.from_iterable(made):
        assert program.cubin[:4] == b"\x7fELF"
        count += 1
    return count


def main() -> int:
    """Build, or check."""
    check = "--check" in sys.argv
    folder = Path(sys.argv[-1]).resolve()
    os.environ |= {"SUBBYTE_CACHE": str(folder / "cache"), "SUBBYTE_STORE": "off"}
    folder.mkdir(parents=True, exist_ok=True)
    # Keys of cached texts name TVM's version; where it is not installed they name none.
    with mock.patch("importlib.metadata.version", side_effect=_version_without_tvm(metadata.version)):
        if check:
            sys.modules["tvm"] = None  # type: ignore[assignment]
        count = _every_program()
        if not check:
            chain().save(folder / "chain.safetensors", texts=False)
    print(f"{count} programs {'are there without TVM' if check else f'in {folder}'}")
    return 0


def _version_without_tvm(real):
    from importlib.metadata import PackageNotFoundError

    def version(package):
        if package.startswith("apache-tvm"):
            raise PackageNotFoundError(package)
        return real(package)

    return version


if __name__ == "__main__":
    sys.exit(main())
