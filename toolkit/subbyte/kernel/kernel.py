"""A built kernel: its texts, its machine code, and the ways to run it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from subbyte.arguments import checked, one_of
from subbyte.device.launch import Argument, Launch
from subbyte.errors import BuildFailed, InvalidInput, Unsupported
from subbyte.families.base import Plan
from subbyte.html import table
from subbyte.kernel import disassemble, operands
from subbyte.kernel.build import cuda_text, machine_code, make_plan, ptx_text, tir_text
from subbyte.kernel.resources import Resources
from subbyte.numerics import LayerResult, Requantization, Thresholds
from subbyte.numerics.fusion import Fusion
from subbyte.numerics.thresholds import LINE, THRESHOLDS
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.operand import DENSE
from subbyte.workload.precision import SUMS
from subbyte.workload.sparsity import FOUND, with_sparsity

if TYPE_CHECKING:
    from subbyte.device.arch import Arch
    from subbyte.emulator import EmulatorRun
    from subbyte.gpu.timing import Timing, TimingProtocol
    from subbyte.kernel.device_layer import DeviceLayer

_REQUANTIZATION = "subbyte.Requantization.from_scale(0.01, k=K)"
_COMPARISON = "subbyte.Thresholds.from_batch_norm(gamma, beta, mean, variance)"


Array = TypeVar("Array")
"""A numpy, torch or CuPy array."""


@dataclass(frozen=True)
class Kernel:
    """A convolution kernel. Texts and machine code are generated on first access and cached on disk.

    ``plan`` holds everything that was decided before generation.
    """

    plan: Plan
    """Everything that was decided before generation."""
    reason: str = field(default="", compare=False, kw_only=True)
    """Why :func:`subbyte.compile` chose it, or :func:`subbyte.build` if that took the user's own find; empty if
    the caller chose it."""

    @property
    def workload(self) -> ConvWorkload:
        """The workload that the kernel computes."""
        return self.plan.workload

    @property
    def config(self) -> Configuration:
        """The schedule: a configuration of its family."""
        return self.plan.config

    @property
    def key(self) -> str:
        """The configuration's key, such as ``wgp-tw7-tr2``."""
        return self.config.key

    @property
    def arch(self) -> str:
        """The architecture the kernel is built for, such as ``sm_90a``."""
        return self.plan.arch.name

    @property
    def output(self) -> str:
        """The workload's output type (``int4``, requantized) or ``int32`` (raw sums)."""
        return self.plan.output

    @property
    def fusion(self) -> Fusion:
        """What the kernel does between sums and output besides requantizing: pooling, adding a residual, keeping
        sums."""
        return Fusion.of(self.output)

    @property
    def launch(self) -> Launch:
        """Grid, block, shared memory and arguments."""
        return self.plan.launch

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels launched one after the other, each for part of the batch: only this one, unless
        :func:`subbyte.compile` split the batch into two launches."""
        return (self,)

    @cached_property
    def tir(self) -> str:
        """The kernel as TVM TIRx script."""
        return tir_text(self.plan)

    @cached_property
    def cuda(self) -> str:
        """The generated CUDA C++ text."""
        return cuda_text(self.plan)

    @cached_property
    def ptx(self) -> str:
        """The PTX of the CUDA text."""
        return ptx_text(self.cuda, self.arch)

    @cached_property
    def _machine_code(self) -> tuple[bytes, Resources]:
        return machine_code(self.plan, self.cuda)

    @property
    def cubin(self) -> bytes:
        """Machine code for the architecture."""
        return self._machine_code[0]

    @property
    def resources(self) -> Resources:
        """Registers, local and shared memory, occupancy."""
        return self._machine_code[1]

    @cached_property
    def sass(self) -> str:
        """The machine code as SASS text."""
        return disassemble.sass(self.cubin)

    @property
    def instructions(self) -> Counter[str]:
        """How often each machine instruction occurs."""
        return disassemble.instruction_counts(self.sass)

    @checked
    def argument(self, name: str) -> Argument:
        """The launch argument called ``name`` (A, Out, Prm, Wt). Raises InvalidInput that lists the existing ones."""
        named = {argument.name: argument for argument in self.launch.arguments}
        return named[one_of(name, "name", named)]

    def for_requantization(self, requant: Requantization | Thresholds | None) -> Kernel:
        """This kernel, or its variant with the clip and the multiplication form that ``requant`` needs.

        Raises InvalidInput when ``requant`` is missing for an int4 output, or given for an int32 one.
        """
        if self.output == SUMS:
            if requant is not None:
                raise InvalidInput('requant given, but this kernel was built with output="int32"')
            return self
        compares = self.plan.parameter_form in (THRESHOLDS, LINE)
        if requant is None:
            example = _COMPARISON if compares else _REQUANTIZATION
            raise InvalidInput(
                f"{'an' if self.output.startswith('int') else 'a'} {self.output} output needs requant=, for example "
                f'{example}; or build with output="int32" for the raw sums'
            )
        if not isinstance(requant, Requantization | Thresholds if compares else Requantization):
            such = f"Thresholds, such as {_COMPARISON}, or a " if compares else "a "
            raise InvalidInput(
                f"requant is {type(requant).__name__}: expected {such}Requantization, such as {_REQUANTIZATION}"
            )
        if compares:
            on_line = replace(self.plan, requant="fixed").parameter_form == LINE and operands.on_line(
                self.workload, Thresholds.of(requant)
            )
            plan = replace(self.plan, requant="fixed" if on_line else "general")
            return self if plan.parameter_form == self.plan.parameter_form else Kernel(plan, reason=self.reason)
        assert isinstance(requant, Requantization)
        if (requant.added is None) != (self.fusion.added is None):
            said = "has no multiplier for one" if requant.added is None else "has a multiplier for one"
            raise InvalidInput(
                f"residual: the requantization {said} (added=), this kernel's output is {self.output}; an output "
                f"that adds values is, for example, {self.workload.precision.output.name}+addint4"
            )
        fast = operands.fast_words(replace(self.plan, requant="fixed").parameter_form, self.workload, requant)
        plan = replace(self.plan, clip=requant.clip, requant="general" if fast is None else "fixed")
        return self if plan == self.plan else Kernel(plan, reason=self.reason)

    def pack(
        self, x: NDArray[np.int8], w: NDArray[np.int8], requant: Requantization | Thresholds | None = None,
        residual: NDArray[np.integer] | None = None,
    ) -> dict[str, NDArray[np.generic]]:  # fmt: skip
        """Input buffers by argument name: ``x`` [N,H,W,C] and ``w`` [K,R,S,C], values of the workload's types (int4:
        int8, -8..7) or their :class:`~subbyte.numerics.PlaneWords` in any layout; ``residual``, for a kernel that adds
        one, is sums int32 [N,P,Q,channels] or values int8 [N,P,Q,K]. Raises InvalidInput.
        """
        types = self.workload.precision
        x, w = (operands.as_values(x, types.activations, "x"), operands.as_values(w, types.weights, "w"))
        if self.output != SUMS and requant is None:
            raise InvalidInput(f"output {self.output} needs requant=, such as {_REQUANTIZATION}")
        buffers: dict[str, NDArray[np.generic]] = {
            "A": operands.activation_words(self.argument("A"), self.workload, x),
            **self.constants(w, None if self.output == SUMS else requant),
        }
        fused = self.fusion
        adds = fused.residual > 0 or fused.added is not None
        if (residual is not None) != adds:
            raise InvalidInput(
                f"residual {'missing' if residual is None else 'given'}: this kernel's output is {self.output}, "
                f"{'which adds one' if adds else 'without a residual'}; `run_layer` takes one"
            )
        if residual is not None and fused.added is not None:
            buffers["Res"] = operands.added_words(self.argument("Res"), self.workload, fused.added, residual)
        elif residual is not None:
            buffers["Res"] = operands.residual_words(self.argument("Res"), self.workload, self.fusion, residual)
        return buffers

    def constants(
        self, w: NDArray[np.int8], requant: Requantization | Thresholds | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """The words of the weights ``w`` [K,R,S,C] and of the parameters, by argument name: the inputs that stay the
        same from call to call. Raises InvalidInput."""
        found: dict[str, NDArray[np.generic]] = {"Wt": operands.weight_words(self.argument("Wt"), self.workload, w)}
        if requant is not None:
            found["Prm"] = operands.parameter_words(self.argument("Prm"), self.workload, requant, w)
        return found

    def unpack(self, words: NDArray[np.generic]) -> NDArray[np.integer]:
        """Output words as values of the output type (int4: int8) or int32 [N,P,Q,K], with P and Q after pooling."""
        return operands.output_values(self.argument("Out"), self.workload, words, self.fusion.pool)

    def run(
        self, x: Array, w: object, requant: Requantization | Thresholds | None = None, device: str = "auto"
    ) -> Array:
        """Convolve: ``x`` int8 [N,H,W,C] with ``w`` int8 [K,R,S,C], values of the workload's types (int4: -8..7), on
        ``device``: ``auto`` (a GPU that this kernel fits, else the CPU), ``cuda:0`` or ``emulator``.

        This is the checked path: every value is validated, arrays on a GPU go through the host, and a kernel on a
        GPU runs twice, on outputs filled with a poison value, and synchronizes. :meth:`on_device` does none of this.

        Takes numpy, torch and CuPy arrays, for bit planes also :class:`~subbyte.numerics.PlaneWords`, and returns
        values of the output type (int4: int8) or int32 [N,P,Q,K] as an array of x's library. Raises InvalidInput for
        wrong shapes, dtypes or values, MissingDependency when the device does not exist, WrongResult when the two runs
        differ.
        """
        from subbyte.kernel.execute import run

        found: Array = run(self.for_requantization(requant), x, w, requant, device)
        return found

    def run_layer(
        self, x: Array, w: object, requant: Requantization | Thresholds, residual: Array | None = None,
        device: str = "auto",
    ) -> LayerResult:  # fmt: skip
        """A whole layer, for kernels that add a residual or keep their sums (``output="bipolar1+add64+keep"``): returns
        what :meth:`run` returns and, if they are kept, the sums int32 [N,P,Q,K] including the residual; else None.

        ``residual`` is int32 [N,P*by,Q*by,channels] as described by ``fusion``. Raises InvalidInput, also for a
        residual that may push kept sums beyond their bits, and MissingDependency when the device does not exist.
        """
        from subbyte.kernel.execute import run_layer

        return run_layer(self.for_requantization(requant), x, w, requant, residual, device)

    @checked
    def on_device(
        self, w: object, requant: Requantization | Thresholds | None = None, device: str = "cuda:0"
    ) -> DeviceLayer:
        """This layer on a device, with its weights int8 [K,R,S,C] and parameters placed there once, to be called with
        arrays on that device: torch, CuPy, JAX, or any with ``__dlpack__``. A call enqueues its work and returns at
        once.

        ``device`` is ``cuda:0`` (or another number), ``auto``, or ``emulator`` for arrays on the host. Raises
        InvalidInput for wrong shapes, dtypes or values, MissingDependency when the device does not exist, Unsupported
        for a kernel that adds a residual; use a :class:`Chain` for those.
        """
        from subbyte.kernel.placed import on_device

        return on_device(self, w, requant, device)

    @checked
    def time(self, protocol: TimingProtocol | None = None, device: str = "auto", seed: int = 0) -> Timing:
        """Time by CUDA-graph replay on random operands, after comparing every output element with the reference.

        Raises MissingDependency without a GPU, WrongResult on a mismatch.
        """
        from subbyte.kernel.execute import time

        return time(self, protocol, device, seed)

    @checked
    def trace(self, blocks: tuple[int, ...] = (0,), seed: int = 0) -> EmulatorRun:
        """Every load, store, shuffle and matrix instruction of some blocks, recorded while the kernel runs on the
        CPU."""
        from subbyte.kernel.execute import trace

        return trace(self, blocks, seed)

    @checked
    def export(self, folder: str | Path) -> list[Path]:
        """Write the cubin, launch data and a C header for use from C or C++. Returns the files."""
        from subbyte.kernel.export import export

        return export(self, Path(folder))

    def __repr__(self) -> str:
        return f"Kernel({self.workload}, {self.config.key}, {self.arch}, output={self.output!r})"

    def _repr_html_(self) -> str:
        r, launch = self.resources, self.launch
        facts = {
            "workload": self.workload.label, "configuration": self.config.key, "architecture": self.arch,
            "instruction": self.plan.atom.name, "grid": f"{' x '.join(map(str, launch.grid))} blocks",
            "block": f"{launch.block[0]} threads", "shared memory": f"{launch.shared_bytes:,} bytes",
            "registers": f"{r.registers} per thread, {r.local_bytes} bytes of local memory",
            "blocks per multiprocessor": r.blocks_per_sm,
        }  # fmt: skip
        if self.reason:
            facts["chosen"] = self.reason
        return table(facts.items(), upright=True)


@checked
def build(
    workload: ConvWorkload | str,
    config: Configuration | None = None,
    arch: Arch | str = "sm_90a",
    *,
    output: str | None = None,
    clip: tuple[int, int] | None = None,
    requant: str = "fixed",
    sparsity: str = DENSE,
    store: str | Path | None = None,
    gpu: str | None = None,
) -> Kernel:
    """Build a kernel: TIRx, CUDA text, machine code. No GPU is needed.

    ``config`` is a configuration of any family, such as an MmaConfig. The default is the best known one of the family
    whose kernels run on every architecture, or if that does not cover the workload, of one that does
    (:func:`subbyte.compile` chooses among all families): the user's own find from ``store`` (default: the usual one),
    measured on a GPU of this machine or on the GPU named by ``gpu``, else the shipped one. ``output`` is the workload's
    output type (``int4``, also the default) or ``int32``; kernels on bit planes can also pool and add:
    ``bipolar1+pool2``, ``bipolar1+add64+keep`` (:class:`subbyte.numerics.fusion.Fusion`). ``clip`` is a range within
    the output type. ``requant`` is ``fixed`` (one multiplication) or ``general`` (any multiplier and shift).
    ``sparsity`` is that of the weights, ``dense``, ``2:4`` or ``blocks:0.25``; ``condense`` asks for a kernel that
    finds zeros anywhere, if no configuration is given. Raises InvalidInput for an unknown workload, architecture or
    sparsity, Unsupported with the reason when the configuration cannot be built, and BuildFailed.
    """
    from subbyte.kernel.default import default_configs, finding_configs, own_default

    found = with_sparsity(workload_named(workload), sparsity)
    failed: BuildFailed | None = None
    usual = finding_configs if sparsity == FOUND else default_configs
    own = own_default(found, arch, output, store, gpu) if config is None and sparsity != FOUND else None
    if own is not None:
        with suppress(BuildFailed, Unsupported):  # the find was measured with another output
            kernel = Kernel(make_plan(found, own[0], arch, output, clip, requant), reason=own[1])
            _ = kernel.cubin
            return kernel
    for chosen in usual(found, arch) if config is None else [config]:
        kernel = Kernel(make_plan(found, chosen, arch, output, clip, requant))
        try:
            _ = kernel.cubin
        except BuildFailed as error:
            failed = failed or error
            continue
        return kernel
    raise failed or Unsupported(f"{found}: no configuration can be built")
