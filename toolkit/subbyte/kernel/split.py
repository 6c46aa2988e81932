"""A batch as two launches: two kernels, each for part of the images, instead of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import NamedTuple

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.joined_text import joined
from subbyte.device.launch import Argument, Launch, Part
from subbyte.errors import SubbyteError, Unsupported
from subbyte.families.base import Plan, Way
from subbyte.families.registry import family_of
from subbyte.html import table
from subbyte.kernel.build import compiled, part_plans
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.operands import BESIDE, PLACE
from subbyte.kernel.resources import Resources
from subbyte.numerics import Requantization, Thresholds
from subbyte.numerics.fusion import NOTHING
from subbyte.records.launches import SplitLaunches
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload.conv import BATCH_GROUP

FORMS = ("nhwcnc", "nhwc")
"""Layouts whose outermost dimension is the group of images: part of the batch is part of the words."""
SHARED = ("A", "Out")
"""Arguments of which each kernel gets a slice."""
JOINED = ("Wt", "Prm")
"""Arguments that each kernel has in its own layout; they are concatenated."""
GAIN = 0.03
"""The minimum expected gain of two launches over one."""
MOST = 2
"""How many ways to split a batch are built and compared."""


@dataclass(frozen=True)
class SplitPlan:
    """The plans of kernels that compute ``workload`` together, with the interface of a plan. Properties with a single
    value are those of the first kernel, which computes the most images."""

    workload: ConvWorkload
    plans: tuple[Plan, ...]

    @property
    def config(self) -> SplitLaunches:
        """All configurations."""
        return SplitLaunches(tuple(one.workload.n for one in self.plans), tuple(one.config for one in self.plans))

    @property
    def arch(self) -> Arch:
        """The architecture they are built for."""
        return self.plans[0].arch

    @property
    def output(self) -> str:
        """Their output type."""
        return self.plans[0].output

    @property
    def clip(self) -> tuple[int, int]:
        """Smallest and largest value of a requantized output."""
        return self.plans[0].clip

    @property
    def requant(self) -> str:
        """``fixed`` or ``general``."""
        return self.plans[0].requant

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        return self.plans[0].parameter_form

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        return self.plans[0].atom

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        return self.plans[0].tile

    @property
    def columns(self) -> int:
        """Output channels per block."""
        return self.plans[0].columns

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        return self.plans[0].layout

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes, the largest of the kernels."""
        return max(one.shared_bytes for one in self.plans)

    @cached_property
    def launch(self) -> Launch:
        """Their launches, one after the other with the same arguments."""
        launches = [one.launch for one in self.plans]
        arguments, begins = [], []
        for same in zip(*(one.arguments for one in launches), strict=True):
            words = [prod(one.shape) for one in same]
            if same[0].name in JOINED:
                words = [-(-count // PLACE) * PLACE for count in words]
            sizes = [0, *accumulate(one.nbytes // prod(one.shape) * n for one, n in zip(same, words, strict=True))]
            form = BESIDE.join(one.form for one in same) if same[0].name in JOINED else same[0].form
            arguments.append(Argument(same[0].name, same[0].dtype, (sum(words),), same[0].role, form))
            begins.append(sizes[:-1])
        entries = [_entry(one.entry, place) for place, one in enumerate(launches)]
        parts = tuple(
            Part(replace(one, entry=entry), tuple(start[place] for start in begins))
            for place, (one, entry) in enumerate(zip(launches, entries, strict=True))
        )
        blocks = sum(prod(one.grid) for one in launches)
        first = launches[0]
        return Launch("+".join(entries), (blocks, 1, 1), first.block, self.shared_bytes, tuple(arguments), 1,
                      first.dependent_launch, parts)  # fmt: skip


@dataclass(frozen=True)
class SplitKernel(Kernel):
    """Kernels that compute a batch together, launched one after the other; callers use it like a single kernel.

    Input and output words are those of the whole batch; ``Wt`` and ``Prm`` concatenate what each kernel reads.
    Made by :func:`subbyte.compile`; :attr:`parts` are the kernels, to read, trace and export.
    """

    of: tuple[Kernel, ...] = ()

    @staticmethod
    def joining(workload: ConvWorkload, parts: Sequence[Kernel], reason: str = "") -> SplitKernel:
        """Combine kernels that together cover all images, in order. Raises Unsupported for kernels that cannot be
        combined."""
        if why := why_not(workload, parts):
            raise Unsupported(f"{workload} as {' + '.join(str(one.workload.n) for one in parts)} images: {why}")
        return SplitKernel(SplitPlan(workload, tuple(one.plan for one in parts)), tuple(parts), reason=reason)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels, in launch order."""
        return self.of

    @cached_property
    def cuda(self) -> str:
        """The CUDA texts of all kernels, concatenated."""
        pairs = zip(self.launch.parts, self.of, strict=True)
        return joined([re.sub(rf"\b{one.launch.entry}\b", part.launch.entry, one.cuda) for part, one in pairs])

    @cached_property
    def tir(self) -> str:
        """The TIRx scripts of all kernels, concatenated."""
        return "\n\n".join(one.tir for one in self.of)

    @cached_property
    def _machine_code(self) -> tuple[bytes, Resources]:
        every = [one.resources for one in self.of]  # each is built, without a fault
        most = {name: max(getattr(one, name) for one in every) for name in every[0].to_dict()}
        fewest = {name: min(getattr(one, name) for one in every) for name in ("blocks_per_sm", "occupancy")}
        return compiled(self.cuda, self.arch)[0], Resources(**{**most, **fewest})

    @property
    def resources(self) -> Resources:
        """For each figure, that of the kernel that needs the most."""
        return self._machine_code[1]

    def for_requantization(self, requant: Requantization | Thresholds | None) -> Kernel:
        """This kernel, or its variant with the layouts that ``requant`` needs. Raises InvalidInput."""
        fitting = tuple(one.for_requantization(requant) for one in self.of)
        return self if fitting == self.of else SplitKernel.joining(self.workload, fitting, self.reason)

    def export(self, folder: str | Path) -> list[Path]:
        """Raises Unsupported: a header describes a single launch."""
        raise Unsupported(
            f"{self.workload.label} is {len(self.of)} launches, and a C header starts one: export each of "
            "kernel.parts, and give each its images"
        )

    def __repr__(self) -> str:
        return f"SplitKernel({self.workload}, {self.key}, {self.arch}, output={self.output!r})"

    def _repr_html_(self) -> str:
        facts = {"workload": self.workload.label, "launches": str(len(self.of))}
        for one in self.of:
            grid = " x ".join(map(str, one.launch.grid))
            facts[f"{one.workload.n} images"] = f"{one.key}: {grid} blocks of {one.launch.block[0]} threads"
        if self.reason:
            facts["chosen"] = self.reason
        return table(facts.items(), upright=True)


def split_plan(workload: ConvWorkload, key: str, arch: Arch) -> SplitPlan:
    """The plan of the kernels that a key names (:attr:`SplitLaunches.key`), with the usual output. Raises InvalidInput
    for another text."""
    return SplitPlan(workload, tuple(part_plans(workload, SplitLaunches.of_key(key), arch, None, None, "fixed")))


class Built(NamedTuple):
    """A kernel with its recorded time, None if it was never measured."""

    kernel: Kernel
    recorded: float | None

    @property
    def microseconds(self) -> float | None:
        """The recorded time, else its family's estimate; None if the family makes none."""
        if self.recorded is not None:
            return self.recorded
        plan = self.kernel.plan
        found = family_of(plan.config).expected(plan.workload, plan.config, plan.arch)
        return None if found is None else found.microseconds


def why_not(workload: ConvWorkload, parts: Sequence[Kernel]) -> str | None:
    """Why these kernels cannot compute a workload together; None if they can."""
    if any(one.workload.n % BATCH_GROUP for one in parts[:-1]):
        return f"each part but the last has a multiple of {BATCH_GROUP} images"
    if any(replace(one.workload, n=workload.n, name="") != replace(workload, name="") for one in parts) or (
        sum(one.workload.n for one in parts) != workload.n
    ):
        return "the parts are no parts of it"
    for one, other in pairwise(parts):
        if (one.arch, one.output) != (other.arch, other.output):
            return "architecture and output of its kernels differ"
        if [a.name for a in one.launch.arguments] != [a.name for a in other.launch.arguments]:
            return "its kernels take other arguments"
    if {one.name for one in parts[0].launch.arguments} - {*SHARED, *JOINED}:
        return "its kernels read or keep what other layers have"
    for name in SHARED:
        forms = {one.argument(name).form for one in parts}
        if len(forms) > 1 or not forms <= set(FORMS):
            return f"words of {name} in {' and '.join(sorted(forms))}, which parts cannot share"
    return None


def ways_ahead(workload: ConvWorkload, config: Configuration, arch: Arch, fused: bool = False) -> tuple[Way, ...]:
    """Ways to split a batch into several launches that are expected to beat a single kernel that was never measured by
    at least ``GAIN``, fastest first. Empty if something is ``fused`` into the kernel, or if it has no estimate."""
    family = family_of(config)
    ways = () if fused else family.launches(workload, arch)
    whole = family.expected(workload, config, arch) if ways else None
    return () if whole is None else tuple(one for one in ways if one[1] < (1.0 - GAIN) * whole.microseconds)


def in_parts(one: Built, built: Callable[[ConvWorkload], Built]) -> SplitKernel | None:
    """Two launches instead of one kernel if they are expected to be faster, else None. ``built`` makes the kernel of a
    part.

    A kernel with a recorded time is never replaced: estimates of parts are not compared with a measurement.
    """
    kernel, plan, whole = one.kernel, one.kernel.plan, one.microseconds
    if one.recorded is not None or whole is None:
        return None
    most, best = (1.0 - GAIN) * whole, None
    for sizes, _ in ways_ahead(plan.workload, plan.config, plan.arch, kernel.fusion != NOTHING)[:MOST]:
        try:
            parts = [built(replace(kernel.workload, n=n, name="")) for n in sizes]
            times = [part.microseconds or float("inf") for part in parts]
            if sum(times) < most:
                reason = _reason(whole, parts, times)
                best = SplitKernel.joining(kernel.workload, [part.kernel for part in parts], reason)
                most = sum(times)
        except SubbyteError:  # a part that cannot be built, or cannot be combined with the other
            continue
    return best


def _reason(whole: float, parts: Sequence[Built], times: Sequence[float]) -> str:
    sizes = " and ".join(str(one.kernel.workload.n) for one in parts)
    said = " and ".join(f"{time:.2f}" for time in times)
    each = "; ".join(f"{one.kernel.workload.n} images: {one.kernel.reason}" for one in parts)
    return f"two launches, of {sizes} images: {sum(times):.2f} us expected ({said}), of one {whole:.2f}; {each}"


def _entry(name: str, place: int) -> str:
    return f"{name}_{place}" if place else name
