"""The interface of a kernel's plan, its emitted function and a space of configurations, for all families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field
from typing import ClassVar, Protocol

from subbyte.device.arch import Arch
from subbyte.device.atoms import Atom
from subbyte.device.launch import Launch
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload


class Plan(Protocol):
    """Everything about one kernel that is known before its code is generated; a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    @property
    def workload(self) -> ConvWorkload:
        """The workload that the kernel computes."""
        ...

    @property
    def config(self) -> Configuration:
        """The schedule."""
        ...

    @property
    def arch(self) -> Arch:
        """The architecture it is built for."""
        ...

    @property
    def output(self) -> str:
        """``int4`` (requantized) or ``int32`` (raw sums)."""
        ...

    @property
    def clip(self) -> tuple[int, int]:
        """Smallest and largest value of a requantized output."""
        ...

    @property
    def requant(self) -> str:
        """``fixed``: one multiplication; ``general``: a shift per channel."""
        ...

    @property
    def atom(self) -> Atom:
        """The matrix instruction."""
        ...

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of output pixels per block."""
        ...

    @property
    def columns(self) -> int:
        """Output channels per block."""
        ...

    @property
    def layout(self) -> str:
        """Layout of activations and outputs in memory."""
        ...

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block in bytes."""
        ...

    @property
    def parameter_form(self) -> str:
        """Layout of the requantization parameters."""
        ...

    @property
    def launch(self) -> Launch:
        """Grid, block and arguments."""
        ...


class Function(Protocol):
    """A TIRx function (``tvm.tirx.PrimFunc``), as :func:`subbyte.tirx.function.kernel_function` makes one."""

    def script(self) -> str:
        """The TIRx script."""
        ...


class Space(Protocol):
    """All listed configurations of a workload on an architecture; an index is a mixed radix over ``knobs``."""

    @property
    def workload(self) -> ConvWorkload:
        """The workload."""
        ...

    @property
    def arch(self) -> Arch:
        """The compilation target."""
        ...

    @property
    def kind(self) -> str:
        """Which value lists it has."""
        ...

    @property
    def knobs(self) -> Mapping[str, tuple[Value, ...]]:
        """Value lists in order; the first knob varies fastest."""
        ...

    @property
    def fixed(self) -> Mapping[str, Value]:
        """Fields that do not vary."""
        ...

    @property
    def hash(self) -> str:
        """Changes when the meaning of an index or the constraints change."""
        ...

    @property
    def index_hash(self) -> str:
        """Changes when the meaning of an index changes."""
        ...

    @property
    def hopeless(self) -> str | None:
        """Why none of its configurations can be built, if that can be seen at once; None when some may."""
        ...

    @property
    def valid(self) -> Sequence[int]:
        """Indices of the configurations that can be built, ascending."""
        ...

    def __len__(self) -> int: ...
    def config(self, index: int) -> Configuration:
        """The configuration at ``index``."""
        ...

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput for one outside the space."""
        ...

    def plan(self, which: int | Configuration, /) -> Plan:
        """The plan of a configuration, given itself or by its index."""
        ...

    def check(self, which: int | Configuration, /) -> str | None:
        """Why a constraint rejects it, or None."""
        ...
