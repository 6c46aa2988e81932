"""Layers on a device: weights and parameters are placed there once; the caller's arrays never pass through the host.

Values to values is a list of launches: values are packed, each layer reads the words of the one before,
and the last words are unpacked. With packed words as input or output, the first or last step is omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from numpy.typing import NDArray

from subbyte.device.launch import Argument, Launch
from subbyte.errors import InvalidInput
from subbyte.gpu.borrowed import borrowed, stream_handle
from subbyte.gpu.seen import HOST, Seen
from subbyte.kernel.place import Place, Program, Run
from subbyte.numerics.residual import source_of

WORDS = ("int32", "uint32")
_SLOT = 256
"""Alignment in bytes of each buffer between launches."""
VECTOR = 16
"""Alignment in bytes that packed words need: kernels copy this many bytes at once."""


@dataclass(frozen=True)
class Link:
    """One layer: its program, and its resident input words by argument name. ``residual`` is the number
    of the layer whose kept sums or values it adds; -1 is the input of the first layer."""

    program: Program
    constants: Mapping[str, NDArray[Any]]
    residual: int | None = None


@dataclass(frozen=True)
class Ends:
    """Values [N,H,W,C] that go in and values [N,P,Q,K] of dtype ``gives`` that come out, with the programs that pack
    and unpack them. If there are none, ``reason`` says why."""

    takes: tuple[int, int, int, int]
    returns: tuple[int, int, int, int]
    gives: str
    pack: Program | None
    unpack: Program | None
    reason: str = ""
    pack_alignment: int = VECTOR
    accepts: str = "int8"
    """The dtype of the input values."""


@dataclass
class _Step:
    """A launch in the list: where each argument's address comes from."""

    run: Run
    addresses: list[int]
    slots: list[tuple[int, int]] = field(default_factory=list)
    """Arguments, each with its byte offset in the working memory."""
    given: list[tuple[int, int]] = field(default_factory=list)
    """Arguments, each with 0 for the caller's array or 1 for the result."""
    overlap: bool = False


_X, _OUT = 0, 1


class DeviceLayer:
    """Layers resident on a device, ready to be called with arrays on it. Made by :meth:`Kernel.on_device`,
    :meth:`Chain.on_device` and :func:`subbyte.load_chain`.

    A call takes ``x`` [N,H,W,C] of int8 values (uint8 for a layer on uint8), or the packed words of the first kernel's
    input, int32 or uint32. It returns values [N,P,Q,K], int8 (or uint8, or int32 sums), or with ``packed`` the words of
    the last kernel's output; by default it returns the same kind as ``x``. It enqueues its launches and returns without
    waiting, so a CUDA graph can capture it. Values are not checked: those outside -8..7 are clipped. :meth:`Kernel.run`
    does check them.
    """

    def __init__(self, links: Sequence[Link], place: Place, ends: Ends) -> None:
        if not links:
            raise InvalidInput("no layer: a device needs at least one")
        self.place, self.ends = place, ends
        self._first = _argument(links[0].program.launch, "A")
        self._last = _argument(links[-1].program.launch, "Out")
        self._kept: list[object] = []
        self._plans: dict[tuple[bool, bool], tuple[list[_Step], int]] = {}
        self._layers = [self._placed(link) for link in links]
        self._residuals = [link.residual for link in links]
        self._launches = [link.program.launch for link in links]
        self._added_later = {
            link.residual
            for link, launch in zip(links, self._launches, strict=True)
            if link.residual is not None and source_of(_argument(launch, "Res").form) == "Out"
        }
        self._pack, self._unpack = (None if one is None else _Lazy(place, one) for one in (ends.pack, ends.unpack))

    @property
    def device(self) -> str:
        """The device: ``cuda:0``, or ``emulator``."""
        return _device_name(self.place.ordinal)

    def _placed(self, link: Link) -> tuple[Run, dict[str, int]]:
        held = {}
        for name, words in link.constants.items():
            held[name], owner = self.place.keep(words)
            self._kept.append(owner)
        return self.place.load(link.program), held

    def __call__(self, x: Any, out: Any = None, *, packed: bool | None = None, stream: Any = None) -> Any:
        """Enqueue the layers on ``x``; returns an array of x's library, or ``out``.

        ``stream`` is a stream of torch, CuPy or cuda-core; by default the current stream of x's library. Raises
        InvalidInput for an array on another device or with a wrong dtype, shape, stride or alignment, and for a stream
        that is closed or of another GPU; CudaError for a launch that the driver rejects.
        """
        library = borrowed(x, "x")
        place = self.place
        queue = library.stream(place.ordinal) if stream is None else stream_handle(stream, place.ordinal)
        seen = library.look(x, "x", queue)
        words_in = self._takes_words(seen)
        words_out = words_in if packed is None else packed
        steps, workspace = self._plans.get((words_in, words_out)) or self._planned(words_in, words_out)
        shape, dtype = (self._last.shape, "int32") if words_out else (self.ends.returns, self.ends.gives)
        if out is None:
            result, address = library.empty(shape, dtype, x, queue)
        else:
            held = borrowed(out, "out").look(out, "out", queue)
            if not getattr(getattr(out, "flags", None), "writeable", True):
                raise InvalidInput("out is read-only: give an array that can be written")
            result, address = out, self._checked_out(held, shape, dtype, words_out)
        memory, base = library.empty((workspace,), "uint8", x, queue) if workspace else (None, 0)
        base += -base % _SLOT
        ends = (seen.address, address)
        for step in steps:
            addresses = step.addresses.copy()
            for index, start in step.slots:
                addresses[index] = base + start
            for index, which in step.given:
                addresses[index] = ends[which]
            step.run(addresses, queue, step.overlap)
        del memory  # its library reuses the memory only for later work on the same stream
        return result if out is not None else library.finished(result, queue)

    def _takes_words(self, seen: Seen) -> bool:
        """Whether an array holds packed words. Raises InvalidInput if it holds neither words nor values."""
        self._check_place(seen, "x")
        if seen.dtype in WORDS and prod(seen.shape) == prod(self._first.shape):
            _check_dense(seen, "x", VECTOR)
            return True
        if seen.dtype == self.ends.accepts and seen.shape == self.ends.takes:
            if self._pack is None:
                raise InvalidInput(f"x is {seen.dtype} {list(seen.shape)}: {self.ends.reason}; give packed words")
            _check_dense(seen, "x", self.ends.pack_alignment)
            return False
        raise InvalidInput(
            f"x is {seen.dtype} {list(seen.shape)}: must be {self.ends.accepts} {list(self.ends.takes)} [N,H,W,C], or "
            f"packed words in {self._first.form}, int32 or uint32 {list(self._first.shape)}"
        )

    def _check_place(self, seen: Seen, name: str) -> None:
        if seen.ordinal == self.place.ordinal:
            return
        where = "in host memory" if seen.ordinal == HOST else f"on cuda:{seen.ordinal}"
        advice = "; Kernel.run takes arrays of the host" if seen.ordinal == HOST else ""
        raise InvalidInput(f"{name} is {where}: must be on {self.device}, where the weights are{advice}")

    def _checked_out(self, seen: Seen, shape: tuple[int, ...], dtype: str, words: bool) -> int:
        self._check_place(seen, "out")
        fits = (prod(seen.shape), seen.dtype) if words else (seen.shape, seen.dtype)
        if fits not in [(prod(shape), one) for one in WORDS] if words else fits != (shape, dtype):
            raise InvalidInput(f"out is {seen.dtype} {list(seen.shape)}: must be {dtype} {list(shape)}")
        _check_dense(seen, "out", VECTOR)
        return seen.address

    def _planned(self, words_in: bool, words_out: bool) -> tuple[list[_Step], int]:
        """The launches for this kind of input and output, planned on first use, and the working memory they need."""
        if not words_out and self._unpack is None:
            raise InvalidInput(f"values out: {self.ends.reason}; ask for packed=True")
        memory = _Memory()
        steps: list[_Step] = []
        source: int | None = None
        if not words_in:
            assert self._pack is not None
            source = memory.take(self._first.nbytes)
            steps.append(_Step(self._pack.run(), [0, 0], [(1, source)], [(0, _X)]))
        turns = [memory.take(size) for size in self._between(words_out)]
        sums: dict[int, int] = {}
        values: dict[int, int | None] = {-1: source}
        last = len(self._layers) - 1
        for number, ((run, held), launch) in enumerate(zip(self._layers, self._launches, strict=True)):
            step = _Step(run, [0] * len(launch.arguments), overlap=number > 0 and launch.dependent_launch)
            target = None if number == last and words_out else turns[number % 2]
            if number in self._added_later:  # a place of its own, since it is needed beyond the next layer
                values[number] = target = memory.take(_argument(launch, "Out").nbytes)
            for index, argument in enumerate(launch.arguments):
                if argument.name in held:
                    step.addresses[index] = held[argument.name]
                elif argument.name == "A":
                    _from(step, index, source, _X)
                elif argument.name == "Out":
                    _from(step, index, target, _OUT)
                elif argument.name == "Sum":
                    sums[number] = memory.take(argument.nbytes)
                    step.slots.append((index, sums[number]))
                elif source_of(argument.form) == "Out":
                    _from(step, index, values[self._residuals[number] or 0], _X)
                else:
                    step.slots.append((index, sums[self._residuals[number] or 0]))
            steps.append(step)
            source = target
        if not words_out:
            assert self._unpack is not None
            assert source is not None
            steps.append(_Step(self._unpack.run(), [0, 0], [(0, source)], [(1, _OUT)]))
        self._plans[words_in, words_out] = steps, memory.size
        return self._plans[words_in, words_out]

    def _between(self, words_out: bool) -> list[int]:
        """Sizes in bytes of the two buffers that hold words between launches in turn: no launch writes the buffer that
        it reads."""
        sizes = [_argument(launch, "Out").nbytes for launch in self._launches]
        if words_out:
            sizes.pop()
        return [max(sizes[turn::2], default=0) for turn in range(2)]


class _Memory:
    """Places in one allocation of working memory."""

    def __init__(self) -> None:
        self._used = 0

    @property
    def size(self) -> int:
        """Bytes to allocate, so that the first place can be aligned."""
        return self._used + _SLOT if self._used else 0

    def take(self, count: int) -> int:
        """Reserve ``count`` bytes; returns the offset of the first."""
        start = self._used
        self._used += -(-count // _SLOT) * _SLOT
        return start


class _Lazy:
    """A conversion that is loaded on first use: callers that use packed words never need it."""

    def __init__(self, place: Place, program: Program) -> None:
        self._load: Callable[[], Run] = lambda: place.load(program)
        self._run: Run | None = None

    def run(self) -> Run:
        """The loaded conversion."""
        if self._run is None:
            self._run = self._load()
        return self._run


def _from(step: _Step, index: int, slot: int | None, which: int) -> None:
    if slot is None:
        step.given.append((index, which))
    else:
        step.slots.append((index, slot))


def _check_dense(seen: Seen, name: str, alignment: int) -> None:
    if not seen.dense:
        raise InvalidInput(f"{name} is not C-contiguous: make it contiguous first, for example with .contiguous()")
    if seen.address % alignment:
        raise InvalidInput(
            f"{name} starts at address {seen.address:#x}: must be a multiple of {alignment} bytes; pass a copy of it"
        )


def _device_name(ordinal: int) -> str:
    return "emulator" if ordinal == HOST else f"cuda:{ordinal}"


def _argument(launch: Launch, name: str) -> Argument:
    return next(one for one in launch.arguments if one.name == name)
