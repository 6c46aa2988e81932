"""The programs that measure instructions, readable like kernels: CUDA text, PTX, machine code and resources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.device.atom_cases import cases
from subbyte.device.atom_texts import THREADS
from subbyte.errors import InvalidInput, Unsupported, did_you_mean
from subbyte.kernel.build import compiled
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.resources import Resources, read_resources


@dataclass(frozen=True)
class AtomKernel(Kernel):
    """One instruction in a loop, as ``subbyte bench atoms`` times it. It can be read, but computes no convolution."""

    text: str = ""
    has_tir = False

    @cached_property
    def cuda(self) -> str:
        """The CUDA text."""
        return self.text

    @cached_property
    def tir(self) -> str:
        """Not available. Raises Unsupported."""
        raise Unsupported("the program of an instruction starts from its CUDA text and has no TIRx")

    @cached_property
    def _machine_code(self) -> tuple[bytes, Resources]:
        cubin, log = compiled(self.text, self.arch)
        return cubin, read_resources(log, self.plan.arch, THREADS, self.plan.shared_bytes)

    def run(self, *_: Any, **__: Any) -> Any:
        """Raises Unsupported."""
        raise Unsupported("this program computes no convolution; `subbyte bench atoms` runs and times it on a GPU")

    time = trace = export = run

    def __repr__(self) -> str:
        return f"AtomKernel({self.plan.atom.name}, {self.arch})"


def atom_kernel(name: str, arch: Arch | str = "sm_90a") -> AtomKernel:
    """The program of one instruction, by the name that ``subbyte bench atoms`` prints; no GPU is needed.

    Raises InvalidInput for an unknown name and for an architecture without the instruction.
    """
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    every = {case.atom: case for case in cases()}
    case = every.get(name)
    if case is None:
        raise InvalidInput(f"unknown instruction {name!r}: {did_you_mean(name, every)}")
    if target.name not in case.archs:
        raise InvalidInput(f"{name} is not measured on {target.name}, but on {', '.join(case.archs)}")
    runs = "native" if target.name in case.native else "emulated"
    plan: Any = SimpleNamespace(
        workload=SimpleNamespace(label=f"the measured peak of {name}", spec=name),
        config=SimpleNamespace(key=f"{case.title} ({runs})", threads=THREADS),
        arch=target, atom=SimpleNamespace(name=name), output="int32", launch=case.launch(1),
        shared_bytes=case.shared_bytes,
    )  # fmt: skip
    return AtomKernel(plan, case.text)
