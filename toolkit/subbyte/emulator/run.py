"""Runs a kernel's CUDA text on the CPU: buffers in, outputs in place, findings and trace out."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from subbyte.device.joined_text import separate
from subbyte.device.launch import Launch
from subbyte.emulator.compiler import load_library
from subbyte.emulator.findings import FINDING_DTYPE, Finding, describe
from subbyte.emulator.trace import TRACE_DTYPE
from subbyte.emulator.translate import Translation, translate
from subbyte.errors import InvalidInput, Unsupported, WrongResult, did_you_mean
from subbyte.html import element

_WRITTEN_TWICE = np.uint32(0x80000000)
_HANDED_ON = ("A", "Res")  # arguments that an earlier layer has written
TRACE_LIMIT = 8_000_000  # rows, 450 MB
_LOCK = threading.Lock()  # a library holds the state of one run


class _Region(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("argument", ctypes.c_int32),
        ("is_output", ctypes.c_int16),
        ("is_dependent", ctypes.c_int16),
        ("writer", ctypes.c_void_p),
    )


class _Request(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("registers_per_thread", ctypes.c_uint32),
        ("step_limit", ctypes.c_uint64),
        ("seed", ctypes.c_uint64),
        ("checking", ctypes.c_uint32),
        ("tracing", ctypes.c_uint32),
        ("region_count", ctypes.c_uint32),
        ("block_count", ctypes.c_uint32),
        ("regions", ctypes.POINTER(_Region)),
        ("blocks", ctypes.POINTER(ctypes.c_uint32)),
        ("findings", ctypes.c_void_p),
        ("finding_count", ctypes.c_uint64),
        ("trace", ctypes.c_void_p),
        ("trace_count", ctypes.c_uint64),
        ("trace_limit", ctypes.c_uint64),
        ("trace_full", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class EmulatorRun:
    """The result of a run besides the outputs, which are written into the caller's arrays.

    ``unwritten`` and ``rewritten`` count, per output, the elements that no thread wrote and those that more than one
    thread wrote; both are empty for unchecked runs. ``instructions`` names the numbers in the trace's ``instruction``
    field.
    """

    entry: str
    findings: tuple[Finding, ...]
    unwritten: dict[str, int]
    rewritten: dict[str, int]
    blocks: int
    all_blocks: bool
    checked: bool
    seconds: float
    arguments: tuple[str, ...]
    instructions: tuple[str, ...]
    trace: NDArray[np.void] | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    """The CUDA text that ran: ``line`` in the trace is a line of it, counted from 1."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Findings, and outputs not written exactly once, as text; empty if the run is clean."""
        texts = [str(finding) for finding in self.findings]
        missing = self.unwritten if self.all_blocks else {}
        texts += [f"output {name}: {number} elements never written" for name, number in missing.items() if number]
        for name, number in self.rewritten.items():
            if number:
                texts.append(f"output {name}: {number} elements written by more than one thread")
        return tuple(texts)

    def _repr_html_(self) -> str:
        """The report for a notebook."""
        return element("pre", str(self))

    def __str__(self) -> str:
        """A short report."""
        mode = "checked" if self.checked else "unchecked"
        head = f"{self.entry}: {self.blocks} blocks, {mode}, {self.seconds:.2f} s"
        if self.trace is not None:
            head += f", {len(self.trace)} trace rows"
        return "\n".join([head, *(self.problems or (["no findings"] if self.checked else []))])


def require_clean(run: EmulatorRun) -> EmulatorRun:
    """Return ``run`` if it was checked and nothing was found.

    Raises WrongResult if the run has findings, or output elements that are unwritten or written twice (all are listed),
    InvalidInput if the run was not checked.
    """
    if not run.checked:
        raise InvalidInput("this run was made with check=False, so it shows nothing; run it again with check=True")
    if run.problems:
        raise WrongResult(f"kernel {run.entry} is not clean on the emulator:\n" + "\n".join(run.problems))
    return run


@lru_cache(maxsize=64)
def _translated(cuda_text: str, entry: str) -> Translation:
    return translate(cuda_text, entry)


def run_cuda(
    cuda_text: str,
    launch: Launch,
    buffers: Mapping[str, NDArray[np.generic]],
    *,
    seed: int = 0,
    check: bool = True,
    trace: bool = False,
    blocks: Iterable[int] | None = None,
    max_steps: int = 20_000_000,
) -> EmulatorRun:
    """Run the kernel ``launch.entry`` of ``cuda_text`` on the CPU and write its outputs in place.

    Args:
        cuda_text: CUDA C++ as TVM generates it.
        launch: grid, block, dynamic shared bytes and arguments.
        buffers: one C-contiguous array per argument, by name, of exactly the argument's bytes.
        seed: order of warps, lanes and copy completions in a checked run.
        check: look for hazards; without it, the kernel is trusted and runs many times faster.
        trace: record every access of the run.
        blocks: run only these block indices (x fastest), for example to trace one block, together with the other
            blocks of their clusters.
        max_steps: loop iterations, accesses and collectives of one thread after which the run is stopped.

    Raises:
        InvalidInput: a buffer is missing, unknown, of the wrong size or not contiguous; a block index is out of range;
            the trace would exceed ``TRACE_LIMIT`` rows.
        Unsupported: the kernel uses something that the emulator does not cover.
        MissingDependency: there is no C++ compiler.
        BuildFailed: the compiler refused the translated text.
        WrongResult: an unchecked run had a deadlock or an endless loop (a checked run reports them as findings).
    """
    if launch.parts:
        return _parts_run(cuda_text, launch, buffers, check, trace or blocks is not None, seed, max_steps)
    started = time.perf_counter()
    translation = _translated(cuda_text, launch.entry)
    arrays = [_array(launch, buffers, name) for name in _argument_names(translation, launch)]
    cluster = _cluster(translation, launch)
    chosen = _blocks(launch, cluster, blocks)
    checked = check or trace
    library = load_library(translation, checked, prod(launch.grid) * prod(launch.block))
    aligned = [_aligned(array) for array in arrays]
    regions, writers = _regions(translation, launch, aligned, check)
    request = _request(launch, regions, chosen, seed, check, trace, max_steps)
    request.cluster = (ctypes.c_uint32 * 3)(*cluster)
    request.registers_per_thread = translation.registers
    finding_rows, trace_rows = _execute(library, request, launch)
    for array, copy in zip(arrays, aligned, strict=True):
        if copy is not array:
            array[...] = copy
    names = ["private memory", "shared memory", *translation.arguments, *(a.name for a in translation.shared)]
    lines = cuda_text.split("\n")
    unwritten, rewritten = _coverage(launch, writers)
    findings = tuple(describe(row, names[int(row["region"])], lines) for row in finding_rows)
    if findings and not check:  # the run stopped early, so the outputs are invalid
        raise WrongResult(f"kernel {launch.entry} did not end:\n" + "\n".join(map(str, findings)))
    return EmulatorRun(
        entry=launch.entry,
        findings=findings,
        unwritten=unwritten,
        rewritten=rewritten,
        blocks=len(chosen),
        all_blocks=blocks is None,
        checked=check,
        seconds=time.perf_counter() - started,
        arguments=tuple(_argument_names(translation, launch)),
        instructions=translation.instructions,
        trace=trace_rows if trace else None,
        text=cuda_text,
    )


def _parts_run(
    cuda_text: str, launch: Launch, buffers: Mapping[str, NDArray[np.generic]], check: bool, some: bool, seed: int,
    max_steps: int,
) -> EmulatorRun:  # fmt: skip
    """The launches of one that has parts, each with its own text on its own bytes of the buffers."""
    if some:
        raise Unsupported(
            f"{launch.entry} is {len(launch.parts)} launches: trace them, or some of their blocks, separately"
        )
    whole = {one.name: _array(launch, buffers, one.name) for one in launch.arguments}
    runs = []
    for part, text in zip(launch.parts, separate(cuda_text), strict=True):
        given = {}
        for of, one, begin in zip(launch.arguments, part.launch.arguments, part.begins, strict=True):
            given[one.name] = whole[of.name].reshape(-1).view(np.uint8)[begin : begin + one.nbytes].view(one.dtype)
        runs.append(run_cuda(text, part.launch, given, seed=seed, check=check, max_steps=max_steps))
    unwritten, rewritten = (
        {name: sum(getattr(one, what).get(name, 0) for one in runs) for name in getattr(runs[0], what)}
        for what in ("unwritten", "rewritten")
    )
    return replace(
        runs[0], entry=launch.entry, findings=tuple(found for one in runs for found in one.findings),
        unwritten=unwritten, rewritten=rewritten, blocks=sum(one.blocks for one in runs),
        seconds=sum(one.seconds for one in runs), text=cuda_text,
    )  # fmt: skip


def _execute(library: ctypes.CDLL, request: _Request, launch: Launch) -> tuple[NDArray[np.void], NDArray[np.void]]:
    """Run the request; its findings and trace, copied out of the library."""
    with _LOCK:
        if library.emulator_run(ctypes.byref(request)):
            size = f"{prod(launch.block)} threads and {launch.shared_bytes} shared bytes"
            raise InvalidInput(f"the emulator cannot run {launch.entry} with blocks of {size}")
        if request.trace_full:
            more = f"exceeds {TRACE_LIMIT:,} rows; trace some blocks only, for example blocks=[0]"
            raise InvalidInput(f"the trace of {launch.entry} {more}")
        findings = _rows(request.findings, request.finding_count, FINDING_DTYPE)
        return findings, _rows(request.trace, request.trace_count, TRACE_DTYPE)


def _argument_names(translation: Translation, launch: Launch) -> list[str]:
    """Names of the launch's arguments in the order of the kernel's parameters (``A_ptr`` is argument A)."""
    known = {argument.name for argument in launch.arguments}
    names = []
    for parameter in translation.arguments:
        name = parameter if parameter in known else parameter.removesuffix("_ptr")
        if name not in known:
            closest = did_you_mean(name, known)
            raise InvalidInput(
                f"kernel {launch.entry}: parameter {parameter!r} is no argument of the launch; {closest}"
            )
        names.append(name)
    return names


def _array(launch: Launch, buffers: Mapping[str, NDArray[np.generic]], name: str) -> NDArray[np.generic]:
    argument = next(argument for argument in launch.arguments if argument.name == name)
    if name not in buffers:
        raise InvalidInput(f"no buffer for argument {name!r} of {launch.entry}; given: {', '.join(buffers) or 'none'}")
    array = np.asarray(buffers[name])
    if not array.flags.c_contiguous:
        raise InvalidInput(f"buffer {name!r} must be a C-contiguous numpy array; use numpy.ascontiguousarray")
    expected = np.dtype(argument.dtype).itemsize * prod(argument.shape)
    if array.nbytes != expected:
        raise InvalidInput(
            f"buffer {name!r} has {array.nbytes} bytes, but {launch.entry} takes {argument.dtype} {argument.shape}, "
            f"which is {expected} bytes"
        )
    if argument.role == "out" and not array.flags.writeable:
        raise InvalidInput(f"buffer {name!r} is an output and must be writeable")
    return array


def _aligned(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """The array itself, or a copy aligned to 16 bytes, which the host's vector accesses need."""
    if array.ctypes.data % 16 == 0:
        return array
    space = np.empty(array.nbytes + 16, np.uint8)
    start = -space.ctypes.data % 16
    copy = space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _cluster(translation: Translation, launch: Launch) -> tuple[int, int, int]:
    """Blocks of a cluster along x, y and z, from the launch or from the kernel's text."""
    asked = (launch.cluster, 1, 1)
    cluster = translation.cluster or asked
    if translation.cluster and asked[0] > 1 and asked != translation.cluster:
        raise InvalidInput(f"{launch.entry} is written for clusters of {cluster} blocks, launched with {asked}")
    if any(blocks % size for blocks, size in zip(launch.grid, cluster, strict=True)):
        raise InvalidInput(
            f"the grid {launch.grid} of {launch.entry} cannot be divided into clusters of {cluster} blocks"
        )
    return cluster


def _blocks(launch: Launch, cluster: tuple[int, int, int], blocks: Iterable[int] | None) -> list[int]:
    """The blocks to run; those of a cluster follow each other by rank."""
    count = prod(launch.grid)
    numbers = np.arange(count).reshape(launch.grid[::-1])  # z, y, x
    split = [part for n, size in zip(launch.grid[::-1], cluster[::-1], strict=True) for part in (n // size, size)]
    by_cluster = numbers.reshape(split).transpose(0, 2, 4, 1, 3, 5).reshape(-1, prod(cluster))
    if blocks is None:
        return [int(block) for block in by_cluster.reshape(-1)]
    chosen = [int(block) for block in blocks]
    bad = [block for block in chosen if not 0 <= block < count]
    if bad:
        raise InvalidInput(f"block {bad[0]} does not exist; the grid {launch.grid} has blocks 0 to {count - 1}")
    rows = dict.fromkeys(int(np.flatnonzero((by_cluster == block).any(axis=1))[0]) for block in chosen)
    return [int(block) for row in rows for block in by_cluster[row]]


def _regions(
    translation: Translation, launch: Launch, arrays: list[NDArray[np.generic]], check: bool
) -> tuple[list[_Region], dict[str, NDArray[np.uint32]]]:
    shared_total = translation.static_bytes + launch.shared_bytes
    regions = [_Region(0, 0, -1), _Region(0, shared_total, -1)]
    writers: dict[str, NDArray[np.uint32]] = {}
    roles = {argument.name: argument.role for argument in launch.arguments}
    shared_with_others = {one.name for one in launch.arguments if one.role == "out" or one.name in _HANDED_ON}
    names = _argument_names(translation, launch)
    order = [argument.name for argument in launch.arguments]
    for name, array in zip(names, arrays, strict=True):
        writer = 0
        if roles[name] == "out" and check:
            writers[name] = np.zeros(array.nbytes, np.uint32)
            writer = writers[name].ctypes.data
        dependent = launch.dependent_launch and name in shared_with_others
        place = (array.ctypes.data, array.nbytes, order.index(name))
        regions.append(_Region(*place, roles[name] == "out", dependent, writer))
    for shared in translation.shared:
        size = launch.shared_bytes if shared.dynamic else shared.size
        regions.append(_Region(shared.offset, size, -1))
    return regions, writers


def _request(
    launch: Launch, regions: list[_Region], blocks: list[int], seed: int, check: bool, trace: bool, max_steps: int
) -> _Request:
    return _Request(
        grid=(ctypes.c_uint32 * 3)(*launch.grid),
        block=(ctypes.c_uint32 * 3)(*launch.block),
        step_limit=max_steps,
        seed=seed & (2**64 - 1),
        checking=check,
        tracing=trace,
        trace_limit=TRACE_LIMIT,
        region_count=len(regions),
        block_count=len(blocks),
        regions=(_Region * len(regions))(*regions),
        blocks=(ctypes.c_uint32 * max(1, len(blocks)))(*blocks),
    )


def _rows(address: int | None, count: int, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """A copy of ``count`` rows that the library holds at ``address``."""
    rows = np.empty(count, dtype)
    if address and count:
        ctypes.memmove(rows.ctypes.data, address, rows.nbytes)
    return rows


def _coverage(launch: Launch, writers: dict[str, NDArray[np.uint32]]) -> tuple[dict[str, int], dict[str, int]]:
    """Elements of each output that no thread wrote, and that more than one thread wrote."""
    unwritten, rewritten = {}, {}
    for argument in launch.arguments:
        if argument.name not in writers:
            continue
        per_element = writers[argument.name].reshape(-1, np.dtype(argument.dtype).itemsize)
        unwritten[argument.name] = int((per_element == 0).any(axis=1).sum())
        rewritten[argument.name] = int((per_element & _WRITTEN_TWICE).any(axis=1).sum())
    return unwritten, rewritten
