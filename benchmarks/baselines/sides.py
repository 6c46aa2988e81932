"""The sides of a layer, loaded, compared with the exact answer and ready to be launched: our kernel, plans of cuDNN's
graph API, instances of CUTLASS. ``rounds`` times them in turns.

Where a layer's output fits its input, each side has a chain of ``CHAIN`` such layers too, each with weights and buffers
of its own. Ours is a true chain: a layer reads the packed words that the one before wrote, launched with overlap where
the kernel can. The baselines' layers stand back to back in one graph, each launch after the end of the one before:
cuDNN's graph API and CUTLASS's convolutions have no programmatic launch. They read what the one before wrote where it
has the type of their input and is scaled (int8 to int8, fp8 to fp8); sums stored as they are would grow out of their
type within four layers, so these read an input of their own with the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from benchmarks.baselines.cutlass_driver import FORM as CUTLASS_FORM
from benchmarks.baselines.cutlass_driver import SIDE as CUTLASS
from benchmarks.baselines.cutlass_driver import Driver, launcher, sizes_of
from benchmarks.baselines.overlapped import OWN_OUTPUT, reads_from
from benchmarks.network.chains import differing, operands
from benchmarks.shared.kernel_pack import Packed
from subbyte.errors import InvalidInput, WrongResult
from subbyte.gpu.chain import GpuChain
from subbyte.gpu.device import CudaDevice
from subbyte.gpu.launched import GpuKernel
from subbyte.gpu.timing import TimedDevice
from subbyte.measure.baselines import TorchDevice
from subbyte.measure.baselines import operands as tensors_of
from subbyte.measure.case import Case
from subbyte.measure.cudnn_graph import FORMS, SCALE, GraphForm, OpenGraph, check_graph, open_graph
from subbyte.measure.rounds import Entry, Replays
from subbyte.measure.sidebyside import EPILOGUE

CHAIN = 4
OURS = "subbyte"
GRAPH_SIDES = {form.side: form for form in FORMS}
WITH_OVERLAP = "true chain, launches overlap"
WITHOUT_OVERLAP = "true chain, each launch after the end of the one before: this kernel cannot overlap"
BACK_TO_BACK = "back to back, each launch after the end of the one before: the API has no programmatic launch"


@dataclass(frozen=True)
class Side:
    """One side of a layer. ``launch`` enqueues one layer, ``chains`` (by kind: ``chain``, ``plain_chain``) ``CHAIN`` of
    them; ``nbytes`` is what one layer reads and writes."""

    name: str
    about: dict[str, Any]
    device: TimedDevice
    launch: Callable[[], None]
    nbytes: int
    chains: dict[str, Callable[[], None]] = field(default_factory=dict)

    def entries(self, replays: Replays) -> list[Entry]:
        """What is sampled of it: hot, cold, and its chains."""
        found = [Entry(self.name, "hot", replays.hot(self.device, self.launch)),
                 Entry(self.name, "cold", replays.cold(self.device, self.launch))]  # fmt: skip
        chains = ((kind, replays.hot(self.device, launch, CHAIN)) for kind, launch in self.chains.items())
        return found + [Entry(self.name, kind, sample) for kind, sample in chains]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        fits = self.nbytes <= self.device.info.l2_bytes
        return {"name": self.name, **self.about, "bytes": self.nbytes, "fits_l2": fits}


def chains_with_itself(packed: Packed) -> bool:
    """Whether the layer's output can be its input."""
    w = packed.workload
    return reads_from(packed.launch) == OWN_OUTPUT and (w.k, w.p, w.q) == (w.c, w.h, w.w)


def our_side(stack: ExitStack, packed: Packed, case: Case, device: CudaDevice) -> Side:
    """Our kernel, every element of every layer compared, alone and in the chain. Raises WrongResult, CudaError."""
    kernel = stack.enter_context(GpuKernel(packed.cubin, packed.launch, device))
    outputs = kernel.run({argument.name: case.operand(argument).ravel() for argument in kernel.inputs})
    for argument in kernel.outputs:
        report = case.check(outputs[argument.name], argument)
        if not report.ok:
            raise WrongResult(str(report))
    chains = our_chains(stack, packed, case, device) if chains_with_itself(packed) else {}
    about = {
        "side": OURS, "plan": packed.config.key, "epilogue": EPILOGUE, "error": 0.0,
        "chain_how": (WITH_OVERLAP if packed.launch.dependent_launch else WITHOUT_OVERLAP) if chains else None,
    }  # fmt: skip
    nbytes = sum(argument.nbytes for argument in packed.launch.arguments)
    return Side(OURS, about, device, kernel.launcher(), nbytes, chains)


def our_chains(stack: ExitStack, packed: Packed, case: Case, device: CudaDevice) -> dict[str, Callable[[], None]]:
    """Chains of the kernel with overlap and without; every layer's output compared in both. Raises WrongResult."""
    layers = [packed] * CHAIN
    inputs, expected = operands(layers, first=case)
    chain = stack.enter_context(GpuChain([(packed.cubin, packed.launch)] * CHAIN, inputs, device))
    for overlap in (False, True):
        chain.run(overlap=overlap)
        wrong = sum(differing(packed, chain.output(i), expected[i]) for i in range(CHAIN))
        if wrong:
            raise WrongResult(f"{packed.config.key}: {wrong} elements differ in a chain, overlap {overlap}")
    return {"chain": chain.launcher(overlap=True), "plain_chain": chain.launcher(overlap=False)}


def baseline_sides(
    stack: ExitStack, case: Case, device: TorchDevice, driver: Driver | None, side: str, plans: tuple[str, ...],
    chained: bool,
) -> tuple[list[Side], list[dict[str, str]]]:  # fmt: skip
    """The named plans of a side that are there and right, and why the others are not."""
    if side == CUTLASS:
        if driver is None:
            reason = (
                "the library of CUTLASS's instances was not given (--cutlass, made by benchmarks/shared/cutlass.sh)"
            )
            return [], [{"side": side, "plan": plan, "reason": reason} for plan in plans]

        def one(plan: str) -> Side:
            return cutlass_side(stack, case, device, driver, plan, chained)
    else:
        try:
            opened = stack.enter_context(open_graph(case, device, GRAPH_SIDES[side]))
        except Exception as error:  # the frontend's own
            return [], [absence(side, plan, error) for plan in plans]

        def one(plan: str) -> Side:
            return graph_side(opened, case, device, plan, chained)

    found, absent = [], []
    for plan in plans:
        try:
            found.append(one(plan))
        except Exception as error:  # one plan fails, the others go on
            absent.append(absence(side, plan, error))
    return found, absent


def absence(side: str, plan: str, error: Exception) -> dict[str, str]:
    """A line of what is absent."""
    return {"side": side, "plan": plan, "reason": f"{type(error).__name__}: {error}"[:300]}


def graph_side(opened: OpenGraph, case: Case, device: TorchDevice, plan: str, chained: bool) -> Side:
    """A plan of cuDNN. Raises InvalidInput when it is not offered, WrongResult, the frontend's exceptions."""
    if plan not in opened.names:
        raise InvalidInput(f"cuDNN offers no plan {plan!r} here, of {len(opened.names)}")
    index, form = opened.names.index(plan), opened.form
    opened.build(index)
    launch = opened.launcher(index)
    error = opened.checked(launch, case)
    chains, how = {}, None
    if chained:
        given, how = buffers_of(opened.x, opened.w, opened.y, form, device)
        several = [opened.launcher(index, one) for one in given]
        for one, (x, _, y) in zip(several, given, strict=True):
            x.copy_(opened.x)  # the one before has written here by now
            opened.checked(one, case, y)
        chains = {"chain": in_turn(several)}
    counts = {"offered": len(opened.names), "distinct": len(set(opened.names))}
    about = {
        "side": form.side, "plan": plan + opened.padding, "epilogue": form.epilogue, "error": error, "counts": counts,
        "chain_how": how,
    }  # fmt: skip
    nbytes = sum(nbytes_of(tensor) for tensor in (opened.x, opened.w, opened.y))
    return Side(f"{form.side}, {plan}", about, device, launch, nbytes, chains)


def cutlass_side(
    stack: ExitStack, case: Case, device: TorchDevice, driver: Driver, plan: str, chained: bool
) -> Side:  # fmt: skip
    """An instance of CUTLASS. Raises InvalidInput when there is none of this name, RuntimeError, WrongResult."""
    if plan not in driver.names:
        raise InvalidInput(f"the library of CUTLASS's instances has no {plan!r}")
    torch, where, wl, index = device.torch, f"cuda:{device.info.ordinal}", case.workload, driver.names.index(plan)
    x, w = tensors_of(case, torch.int8, where, CUTLASS_FORM.multiple)
    y = torch.empty((wl.n, wl.k, wl.p, wl.q), dtype=torch.int8, device=where, memory_format=torch.channels_last)

    def ready(one: tuple[Any, Any, Any]) -> Callable[[], None]:
        pointers = (one[0].data_ptr(), one[1].data_ptr(), one[2].data_ptr())
        held = driver.open(index, sizes_of(wl, int(x.shape[1])), pointers, SCALE)
        if held is None:
            raise RuntimeError("does not take this convolution")
        stack.callback(driver.close, held)
        enqueue = launcher(driver, held, torch)

        def launch(tensors: tuple[Any, Any, Any] = one) -> None:  # a graph's replays need them as long as it lives
            enqueue()

        return launch

    def compare(launch: Callable[[], None], out: Any) -> float:
        out.fill_(77)
        launch()
        device.synchronize()
        return check_graph(out.permute(0, 2, 3, 1).double(), device.exact(case), CUTLASS_FORM)

    launch = ready((x, w, y))
    error = compare(launch, y)
    chains, how = {}, None
    if chained:
        given, how = buffers_of(x, w, y, CUTLASS_FORM, device)
        several = [ready(one) for one in given]
        for one, (into, _, out) in zip(several, given, strict=True):
            into.copy_(x)
            compare(one, out)
        chains = {"chain": in_turn(several)}
    padding = f", channels padded to {x.shape[1]}" if x.shape[1] != wl.c else ""
    about = {
        "side": CUTLASS, "plan": plan + padding, "epilogue": CUTLASS_FORM.epilogue, "error": error,
        "counts": {"offered": len(driver.names), "distinct": len(set(driver.names))}, "chain_how": how,
    }  # fmt: skip
    return Side(f"{CUTLASS}, {plan}", about, device, launch, sum(map(nbytes_of, (x, w, y))), chains)


def buffers_of(
    x: Any, w: Any, y: Any, form: GraphForm, device: TorchDevice
) -> tuple[list[tuple[Any, Any, Any]], str]:  # fmt: skip
    """``(x, w, y)`` for each layer of a baseline's chain, and what the layers read."""
    linked = form.scaled and x.dtype == y.dtype and x.shape == y.shape
    given: list[tuple[Any, Any, Any]] = []
    for _ in range(CHAIN):
        into = given[-1][2] if linked and given else device.torch.clone(x)
        given.append((into, device.torch.clone(w), device.torch.empty_like(y)))
    reads = "each reads what the one before wrote" if linked else "each reads an input of its own"
    return given, f"{BACK_TO_BACK}; {reads}"


def in_turn(launches: list[Callable[[], None]]) -> Callable[[], None]:
    """Enqueues all of them."""

    def several() -> None:
        for launch in launches:
            launch()

    return several


def nbytes_of(tensor: Any) -> int:
    """Bytes of a PyTorch tensor."""
    return int(tensor.numel() * tensor.element_size())
