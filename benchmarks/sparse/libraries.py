"""Libraries that multiply 2:4 or unstructured sparse int8 weights, as sides of a layer: cuSPARSELt, PyTorch's
semi-structured tensors, CUTLASS's products on sparse wgmma, cuSPARSE; and dense ones beside them, cuBLAS and cuDNN.

All but cuDNN multiply matrices. A 1x1 layer is one as it stands; of a 3x3 layer the activations are lowered first, and
a side is launched both on the lowered matrix and with the lowering before it. Every output is compared with the exact
sums of the case, element by element; what cannot run, or is wrong, becomes a line with its reason.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.baselines.sides import Side
from subbyte.errors import MissingDependency, Unsupported, WrongResult
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.case import Case

SCALE = 1.0 / 64
"""What sides that store bytes multiply the sums by; a power of two, so that only the rounding of halves is open."""
PIXELS = 32
"""What cuSPARSELt asks of the number of columns."""
VECTOR = 16
"""Bytes that the lowering copies at a time."""
WARM = 3


@dataclass
class Product:
    """A layer as a product of matrices on the GPU: ``weights`` int8 [K, R*S*C], ``lowered`` int8 [pixels, R*S*C],
    pixels filled up with zeros to a multiple of ``PIXELS``, and the exact sums float64 [pixels, K]; ``lower`` enqueues
    the lowering, None where nothing is to do."""

    case: Case
    device: TorchDevice
    weights: Any
    lowered: Any
    sums: Any
    lower: Callable[[], None] | None

    @property
    def torch(self) -> Any:
        """PyTorch."""
        return self.device.torch

    def check(self, got: Any, how: str) -> float:
        """The largest difference of an output [pixels, K]. ``how``: ``exact`` sums, ``scaled`` ones as bytes, where
        halves may be rounded either way, or ``half``, sums rounded to float16. Raises WrongResult."""
        found, wanted = got[: len(self.sums)].double(), self.sums
        if how == "scaled":
            wanted = (wanted * SCALE).clamp(-128, 127)
        bound = {"exact": 0.0, "scaled": 0.5, "half": float(self.sums.abs().max()) / 1024}[how]
        worst = float((found - wanted).abs().max())
        if not worst <= bound:
            raise WrongResult(f"an element differs by {worst:g}, allowed are {bound:g}")
        return worst


def product_of(case: Case, device: TorchDevice) -> Product:
    """The operands of a case as matrices. Raises Unsupported for channels that fill no vector of 16 bytes."""
    torch, wl = device.torch, case.workload
    if wl.c % VECTOR:
        raise Unsupported(f"{wl}: rows of {wl.c} bytes cannot be lowered in pieces of {VECTOR}")
    where = f"cuda:{device.info.ordinal}"
    weights = torch.from_numpy(case.w.reshape(wl.k, -1)).to(where)
    x = torch.from_numpy(case.x).to(where)
    sums = torch.from_numpy(case.accumulators.reshape(-1, wl.k)).to(where).double()
    pixels = wl.n * wl.p * wl.q
    lowered = torch.zeros((-(-pixels // PIXELS) * PIXELS, wl.r * wl.s * wl.c), dtype=torch.int8, device=where)
    if wl.r == wl.s == wl.stride == 1 and wl.pad == 0:
        lowered[:pixels] = x.reshape(-1, wl.c)
        return Product(case, device, weights, lowered, sums, None)
    padded = torch.zeros((wl.n, wl.h + 2 * wl.pad, wl.w + 2 * wl.pad, wl.c), dtype=torch.int8, device=where)
    inner = padded[:, wl.pad : wl.pad + wl.h, wl.pad : wl.pad + wl.w]
    whole, of_x, source = padded.view(torch.complex128), inner.view(torch.complex128), x.view(torch.complex128)
    n, h, w, c = whole.stride()
    windows = whole.as_strided(
        (wl.n, wl.p, wl.q, wl.r, wl.s, wl.c // VECTOR),
        (n, h * wl.stride, w * wl.stride, h * wl.dilation, w * wl.dilation, c),
    )  # fmt: skip
    into = lowered[:pixels].view(torch.complex128).view(windows.shape)

    def lower() -> None:
        of_x.copy_(source)
        into.copy_(windows)

    lower()
    return Product(case, device, weights, lowered, sums, lower)


Make = Callable[[Product, ExitStack], Iterator[tuple[str, Callable[[], None], dict[str, Any]]]]
"""The ways in which a library computes a product: name, what enqueues it, what the record says of it."""


def cublas(product: Product, _: ExitStack) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:
    """Dense int8 to int32, through PyTorch."""
    torch, x, w = product.torch, product.lowered, product.weights.t()
    y = torch.empty((len(x), w.shape[1]), dtype=torch.int32, device=x.device)

    def launch() -> None:
        torch._int_mm(x, w, out=y)

    launch()
    yield "cuBLAS dense int8 to int32", launch, {"error": product.check(y, "exact"), "output": "int32"}


def cusparselt(product: Product, _: ExitStack) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:
    """2:4 int8 to int8 with a scale and to int32, through PyTorch, with the algorithm that its own search finds
    fastest."""
    torch = product.torch
    kept, x = torch._cslt_compress(product.weights), product.lowered.t()
    scale = torch.full((len(product.weights),), SCALE, dtype=torch.float32, device=x.device)
    failed = []
    for kind, how, more in ((torch.int8, "scaled", {"alpha": scale}), (torch.int32, "exact", {})):
        name = str(kind).removeprefix("torch.")
        try:
            given = {"out_dtype": kind, "transpose_result": True, **more}
            best = int(torch._cslt_sparse_mm_search(kept, x, **given))

            def launch(given: dict[str, Any] = given, best: int = best) -> Any:
                return torch._cslt_sparse_mm(kept, x, alg_id=best, **given)

            error = product.check(launch(), how)
            about = {"error": error, "output": name, "algorithm": best}
            yield f"cuSPARSELt 2:4 int8 to {name}", launch, about
        except (RuntimeError, WrongResult, TypeError) as problem:
            failed.append(f"{name}: {problem}")
    if failed:
        raise Unsupported("; ".join(failed)[:300])


def semi_structured(product: Product, _: ExitStack) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:
    """PyTorch's tensors of 2:4 weights, with its CUTLASS back end."""
    torch = product.torch
    kind = torch.sparse.SparseSemiStructuredTensorCUTLASS
    w, x = kind.from_dense(product.weights), product.lowered.t()

    def launch() -> Any:
        return torch.mm(w, x)

    error = product.check(launch().t(), "exact")
    yield "PyTorch semi-structured int8, CUTLASS", launch, {"error": error, "output": "int32"}


def cusparse(product: Product, _: ExitStack) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:
    """The same weights as compressed rows of float16, through PyTorch."""
    torch = product.torch
    w, x = product.weights.half().to_sparse_csr(), product.lowered.t().half()

    def launch() -> Any:
        return torch.mm(w, x)

    error = product.check(launch().t(), "half")
    yield "cuSPARSE CSR float16", launch, {"error": error, "output": "float16"}


def cusparse_blocks(product: Product, _: ExitStack) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:
    """The same weights as blocks of 32 x 32, none of which is empty, through PyTorch."""
    torch = product.torch
    w, x = product.weights.half().to_sparse_bsr((32, 32)), product.lowered.t().half().contiguous()

    def launch() -> Any:
        return torch.mm(w, x)

    error = product.check(launch().t(), "half")
    yield "torch.sparse blocks of 32 x 32, float16", launch, {"error": error, "output": "float16"}


class ContextLost(Exception):
    """A side that left the GPU's context unusable: the process has to end. ``side``: its label."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(f"{side}: {reason}")
        self.side, self.reason = side, reason.splitlines()[0][:200]


def settled(device: TorchDevice, side: str) -> None:
    """Wait for the GPU. Raises ContextLost when that fails: no later call would succeed."""
    try:
        device.synchronize()
    except RuntimeError as error:
        raise ContextLost(side, str(error)) from None


class Cutlass:
    """The products of ``cutlass/``. Raises MissingDependency when the library cannot be loaded."""

    def __init__(self, path: Path) -> None:
        try:
            library = ctypes.CDLL(str(path))
            name, self._open, self._launch, self._close = (
                getattr(library, f"sparse_{what}") for what in ("name", "open", "launch", "close")
            )
        except (OSError, AttributeError) as error:
            build = "build it with benchmarks/shared/cutlass.sh benchmarks/sparse/cutlass"
            raise MissingDependency(f"{path}: no library of CUTLASS's sparse products ({error}); {build}") from None
        pointer = ctypes.c_void_p
        name.restype, self._open.restype = ctypes.c_char_p, pointer
        self._open.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int), pointer, pointer, pointer, ctypes.c_float]
        self._launch.argtypes, self._close.argtypes = [pointer, pointer], [pointer]
        self.names = [name(i).decode() for i in range(library.sparse_count())]

    def __call__(
        self, product: Product, stack: ExitStack
    ) -> Iterator[tuple[str, Callable[[], None], dict[str, Any]]]:  # fmt: skip
        """The fastest right instance. Raises WrongResult when there is none."""
        torch, x, w = product.torch, product.lowered, product.weights
        y = torch.empty((len(x), len(w)), dtype=torch.int8, device=x.device)
        found: list[tuple[float, str, float, Callable[[], None]]] = []
        failed = []
        for index, name in enumerate(self.names):
            sizes = (ctypes.c_int * 3)(len(w), len(x), w.shape[1])
            held = self._open(index, sizes, w.data_ptr(), x.data_ptr(), y.data_ptr(), SCALE)
            if held is None:
                failed.append(f"{name}: does not take this product")
                continue
            stack.callback(self._close, held)

            def launch(held: int = held) -> None:
                if self._launch(held, torch.cuda.current_stream().cuda_stream):
                    raise RuntimeError("CUTLASS could not launch")

            try:
                y.fill_(77)
                launch()
                error = product.check(y, "scaled")
                several = [product.device.elapsed_us(launch) for _ in range(1 + WARM)][1:]
                found.append((min(several), name, error, launch))
            except (RuntimeError, WrongResult) as problem:
                failed.append(f"{name}: {str(problem)[:100]}")
        if not found:
            raise WrongResult("; ".join(failed)[:300])
        _, name, error, best = min(found, key=lambda one: one[0])
        about = {"error": error, "output": "int8", "plan": name, "tried": {one[1]: round(one[0], 2) for one in found}}
        yield "CUTLASS 2:4 int8 to int8", best, {**about, "failed": failed}


def library_sides(
    product: Product, stack: ExitStack, cutlass: Make | str, crashed: Mapping[str, str]
) -> tuple[list[Side], list[dict[str, str]]]:  # fmt: skip
    """Each library's sides of a product, those that multiply 2:4 weights also with the lowering; and what is absent,
    with the reason. ``cutlass``: its products, or why there are none; ``crashed``: labels that are left alone, and
    why. Raises ContextLost."""
    makes: dict[str, Make | str] = {
        "cuBLAS dense int8": cublas, "cuSPARSELt": cusparselt, "CUTLASS 2:4": cutlass,
        "PyTorch semi-structured, CUTLASS": semi_structured, "cuSPARSE CSR": cusparse,
        "torch.sparse blocks": cusparse_blocks,
    }  # fmt: skip
    sides, absent = [], []
    for label, make in makes.items():
        try:
            if label in crashed:
                raise Unsupported(crashed[label])
            if isinstance(make, str):
                raise MissingDependency(make)
            for name, launch, about in make(product, stack):
                about = {"side": label, **about}
                sides.append(Side(name, about, product.device, launch, 0))
                if product.lower is not None and label in ("cuSPARSELt", "CUTLASS 2:4"):
                    both = after(product.lower, launch)
                    sides.append(Side(f"{name}, with lowering", about, product.device, both, 0))
            settled(product.device, label)
        except ContextLost:
            raise
        except Exception as error:  # libraries raise what they like; each is recorded
            settled(product.device, label)
            absent.append({"side": label, "reason": f"{type(error).__name__}: {error}"[:300]})
    if product.lower is not None:
        sides.append(Side("lowering", {"side": "lowering"}, product.device, product.lower, 0))
    return sides, absent


def after(first: Callable[[], None], second: Callable[[], Any]) -> Callable[[], None]:
    """Enqueues both."""

    def both() -> None:
        first()
        second()

    return both
