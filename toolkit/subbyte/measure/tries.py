"""``compile`` with measurements: the most promising configurations are built in parallel, verified and timed on this
GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from subbyte.arguments import checked, whole
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import InvalidInput, MissingDependency, SubbyteError
from subbyte.families.registry import family_of, newest_first
from subbyte.gpu.timing import TimingProtocol
from subbyte.kernel.build import make_plan
from subbyte.kernel.choose import compile as choose
from subbyte.kernel.choose import likeliest, remembered, two_launches
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.own import Memory, own_records
from subbyte.kernel.remembered import Asked
from subbyte.kernel.split import Built
from subbyte.measure.noise import rank_interleaved
from subbyte.measure.runner import Device, Runner, parse_device, results_of
from subbyte.numerics.fusion import SEPARATOR
from subbyte.records.result import Failed, Measured, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.operand import DENSE
from subbyte.workload.sparsity import FOUND, with_sparsity

MOST = 1_000
FINALISTS, ROUNDS = 4, 9
"""How many of the fastest are timed again, interleaved, and how often each."""
BRIEF = TimingProtocol(cold=False, min_total_ms=5.0, repeats=5)
"""How long each candidate is timed; the finalists are compared more closely afterwards."""


class Winner(NamedTuple):
    """The fastest of ``measured`` verified candidates out of ``tried``; its ``times`` when measured against the others,
    and the time of the first choice (None if that failed)."""

    config: Configuration
    times: tuple[float, ...]
    microseconds: float
    measured: int
    tried: int
    first: float | None


@checked
def compile(  # noqa: A001 - the name users expect; the builtin is not needed here
    workload: ConvWorkload | str,
    arch: Arch | str = "sm_90a",
    *,
    family: str = "auto",
    output: str | None = None,
    clip: tuple[int, int] | None = None,
    requant: str = "fixed",
    reads: str = "",
    writes: str = "",
    sparsity: str = DENSE,
    density: float | None = None,
    store: str | os.PathLike[str] | None = None,
    gpu: str | None = None,
    tries: int = 0,
    device: int | str = 0,
) -> Kernel:
    """The kernel to use for ``workload``; ``Kernel.reason`` says which it is and why.

    Without ``tries`` nothing is measured and no GPU is needed (:func:`subbyte.kernel.compile`). The kernel is the
    fastest that the user's own searches found on this GPU, as long as its text has not changed; else the fastest one
    recorded in the package; else the one with the best estimate, on the newest instruction that covers the convolution.
    Only for a batch above 64 images without a record, two launches that split it are considered as well.

    With ``tries=16`` the 16 most promising configurations, best first, are built in parallel on the processors of this
    machine. On the GPU ``device`` (a number, ``cuda:1``) every output element of each is compared with the exact result
    and each is timed; the fastest four are timed again, interleaved. The winner is kept in the user's own ``store`` (a
    file; default: the usual one in the cache folder, or the one that ``SUBBYTE_STORE`` names; ``off``: none), where
    ``compile``, ``build`` and ``conv2d`` find it. Two launches for a batch above 64 images that are expected to be
    faster are verified and timed against it; if they are faster, they are returned, and kept as well for ``compile``.
    ``gpu`` uses the store's records for the GPU with this name.

    ``family`` (the name of one of :func:`subbyte.families.families`) restricts the choice to one family; ``output``,
    ``clip``, ``requant`` and ``sparsity`` are those of :func:`subbyte.build`. ``reads`` and ``writes`` select kernels
    whose input and output words have this layout: in a chain, ``argument("Out").form`` of one kernel is
    ``argument("A").form`` of the next. ``sparsity="condense"`` selects a kernel that finds zeros anywhere in both
    operands; if ``density``, the fraction of nonzero values in both, is given, a dense kernel is used if it is faster.

    Raises InvalidInput for an unknown workload, architecture or option, and Unsupported with the reason when no
    requested family covers it; with ``tries`` also MissingDependency without a GPU of the architecture.
    """
    plainly = partial(
        choose, arch=arch, family=family, output=output, clip=clip, requant=requant, reads=reads, writes=writes,
        sparsity=sparsity, density=density, store=store, gpu=gpu,
    )  # fmt: skip
    if not whole(tries, "tries", 0, MOST):
        return plainly(workload)
    found = with_sparsity(workload_named(workload), sparsity)
    _refuse(sparsity, output)
    target = arch_named(arch) if isinstance(arch, str) else arch
    number = _gpu_of(device, target, tries)
    own = own_records(found, target, output, store, gpu)
    # Of what is found early little fits where something is fused or words have a given layout.
    soon = 0 if reads or writes or SEPARATOR in (output or "") else tries // 2
    with ThreadPoolExecutor(1) as beside:
        early = beside.submit(_early, found, target, family, soon)
        with _open(number, output, tries) as runner:
            _build_ahead(runner, found, early.result())  # builders begin while this process puts all in order
            configs = likeliest(found, target, tries, family, output, reads, writes, own)
            won = fastest(found, configs, runner)
            on = dict(runner.device)
    if isinstance(won, Failed):
        kernel = plainly(workload)
        return replace(kernel, reason=f"{kernel.reason}; none of {len(configs)} could be measured: {won.reason}")
    name = str(on.get("name"))
    kernel = Kernel(make_plan(found, won.config, target, output, clip, requant), reason=_reason(won, name))
    asked = Asked(target, family, output, clip, requant, reads, writes, store, gpu)
    _keep(found, won.config, won.times, on, won.measured, asked)
    two = _faster_in_two(kernel, won, asked, number, name)
    if two is None:
        return kernel
    _keep(found, two[0].plan.config, two[1], on, won.measured, asked)
    return two[0]


def _keep(
    workload: ConvWorkload, config: Configuration, times: Sequence[float], device: Mapping[str, Any], measured: int,
    asked: Asked,
) -> None:  # fmt: skip
    """Store a result in the user's own store as if from a search of its own: the record of a single launch is not
    replaced by that of two, which some calls never use."""
    memory = Memory(workload, asked.arch.name, "tries", asked.store, asked.output)
    memory.seen.add(config)
    memory.settle(config, times, device, measured)


def _faster_in_two(
    kernel: Kernel, won: Winner, asked: Asked, device: int, name: str
) -> tuple[Kernel, tuple[float, ...]] | None:
    """Two launches instead of the fastest single kernel, with their times, if they were expected or remembered to
    be faster and are: every output element is compared, and both are timed on the same GPU."""
    found = remembered(kernel.workload, asked, every=True), two_launches(Built(kernel, None), asked)
    ways = {one.plan.config.key: one for one in found if one is not None}
    best, times, least = None, won.times, won.microseconds
    for one in ways.values():
        try:
            timing = one.time(BRIEF, f"cuda:{device}")
        except SubbyteError:  # the single launch is correct, and its time is known
            continue
        if timing.microseconds < least:
            best, times, least = one, timing.samples, timing.microseconds
    if best is None:
        return None
    sizes = " and ".join(str(one.workload.n) for one in best.parts)
    reason = (
        f"two launches, of {sizes} images, {least:.2f} us measured now on {name}, verified; one launch, the fastest of "
        f"{won.measured} measured: {won.microseconds:.2f} us"
    )
    return replace(best, reason=reason), times


def _early(workload: ConvWorkload, arch: Arch, family: str, count: int) -> Sequence[Configuration]:
    """Up to ``count`` configurations that are probably among the likeliest, well before all are in order."""
    found = (one.early(workload, arch) for one in newest_first(family)) if count else ()
    return next(filter(None, found), ())[:count]


def _build_ahead(runner: Runner, workload: ConvWorkload, configs: Sequence[Configuration]) -> None:
    hint: Callable[..., None] | None = getattr(runner, "build_ahead", None)
    if hint is not None:
        hint(workload, configs)


def fastest(workload: ConvWorkload, configs: list[Configuration], runner: Runner) -> Winner | Failed:
    """The fastest of several configurations on a runner: each is verified and timed, the fastest ones again interleaved
    if the runner can; if none has a time, the first failure."""
    _build_ahead(runner, workload, configs)
    prepare: Callable[[ConvWorkload], None] | None = getattr(runner, "prepare", None)
    if prepare is not None:
        prepare(workload)
    results: list[Result] = [one for part in results_of(runner, workload, configs) for one in part]
    timed = [
        (result, config)
        for result, config in zip(results, configs, strict=True)
        if isinstance(result, Measured) and result.verified
    ]
    if not timed:
        return next(
            (one for one in results if isinstance(one, Failed)), Failed("wrong", "the outputs were not compared")
        )
    timed.sort(key=lambda one: one[0].microseconds)
    result, config = timed[0]
    times, microseconds = result.samples or (result.microseconds,), result.microseconds
    rematch = getattr(runner, "rematch", None)
    if rematch is not None and len(timed) > 1:
        finalists = [config for _, config in timed[:FINALISTS]]
        try:
            first = rank_interleaved(rematch(workload, finalists, ROUNDS))[0]
            config, times, microseconds = finalists[first.place], first.samples, first.microseconds
        except SubbyteError:  # the time of each alone is known
            pass
    first_result = results[0]
    alone = first_result.microseconds if isinstance(first_result, Measured) else None
    return Winner(config, tuple(times), microseconds, len(timed), len(configs), alone)


def _reason(won: Winner, name: str) -> str:
    first = "which failed" if won.first is None else f"{won.first:.2f} us"
    before = f"; the first choice before measuring: {first}"
    return (
        f"{family_of(won.config).name} family, fastest of {won.measured} measured now ({won.microseconds:.2f} us on "
        f"{name}, verified, of {won.tried} tried{before})"
    )


def _open(device: int, output: str | None, count: int) -> Runner:
    from subbyte.measure.cuda_runner import CudaRunner
    from subbyte.measure.gpu_worker import usable_cpus

    how = None if output is None else partial(build, output=output)
    return CudaRunner(device, BRIEF, build=how, workers=max(1, min(usable_cpus(), count)), warm=True)


def _gpu_of(device: Device, target: Arch, tries: int) -> int:
    """The number of the GPU to measure on. Raises MissingDependency, InvalidInput."""
    from subbyte.gpu.driver import detect

    numbers = parse_device(device)
    try:
        gpus = {one.ordinal: one for one in detect()}
    except MissingDependency as error:
        reason = str(error).partition(";")[0]
        raise MissingDependency(
            f"tries={tries} measures on a GPU, and there is none here ({reason}): without tries, records or the "
            "estimate choose the kernel"
        ) from None
    if numbers is not None and len(numbers) > 1:
        raise InvalidInput(f"device={device!r}: tries measures on one GPU; name one")
    fitting = [one for one in gpus.values() if one.arch == target.name]
    chosen = gpus.get(numbers[0]) if numbers is not None else next(iter(fitting), None)
    if chosen is None:
        listed = ", ".join(f"cuda:{one.ordinal} {one.name} ({one.arch})" for one in gpus.values()) or "none"
        raise MissingDependency(f"device={device!r}: no such GPU of {target.name} is here; found: {listed}")
    if chosen.arch != target.name:
        raise MissingDependency(
            f"tries={tries} measures on GPU {chosen.ordinal} ({chosen.name}), which is {chosen.arch}, and the kernel "
            f"is for {target.name}: give arch={chosen.arch!r}"
        )
    return chosen.ordinal


def _refuse(sparsity: str, output: str | None) -> None:
    if sparsity == FOUND:
        raise InvalidInput(
            f"tries with sparsity={FOUND!r}: the time of such a kernel depends on where its operands are zero, so "
            "random operands say nothing; leave out tries, or time it with `subbyte bench --densities`"
        )
    if output is not None and SEPARATOR in output:
        raise InvalidInput(
            f"tries with output={output!r}: kernels with a fused layer are not measured by compile; leave out "
            "tries, or time one with Kernel.time()"
        )
