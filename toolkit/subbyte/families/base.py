"""The interface of a kind of kernel, so that no other package needs to know which kinds exist.

A family is one folder in :mod:`subbyte.families` and one line in :mod:`subbyte.families.registry`. Planning,
building, searching, exporting and explaining all go through the class described here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subbyte.device.arch import Arch
from subbyte.families.planned import Function, Plan, Space
from subbyte.families.topic import Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.fusion import NOTHING, Fusion
from subbyte.numerics.thresholds import Thresholds
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.former_names import FormerNames
from subbyte.spaces.knob import Value
from subbyte.workload.conv import ConvWorkload
from subbyte.workload.coverage import FOUR_BITS
from subbyte.workload.operand import Operand

__all__ = ["RETIRED", "Expected", "ExportParts", "Family", "Function", "PixelTile", "Plan", "Space", "Way"]

ADDED = (*FOUR_BITS, Operand(8))
"""Types of values that kernels can add before rounding."""
RETIRED = "retired"
"""Kind of reason for kernels that could be built when they were measured: their results are kept."""
Way = tuple[tuple[int, ...], float]
"""Images of each launch of a batch, and the expected total time in microseconds."""


@dataclass(frozen=True)
class ExportParts:
    """What a kernel's family contributes to its C header.

    ``sections``: C texts by name, in addition to those of the template or replacing them. ``weights`` holds the
    function ``prepare_weights``; a kernel of other operands than int4 provides ``index``, ``operands`` and ``output``
    as well. ``words`` replace ``@name@`` in them, ``defines`` are constants of the header.
    """

    sections: Mapping[str, str]
    weight_shape: tuple[int, ...]
    words: Mapping[str, str]
    defines: Mapping[str, int | str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Shapes of the words of other arguments, if these are not blocks of packed values."""
    parameters: Mapping[str, str | list[int]] = field(default_factory=dict)
    """The caller's arrays behind the parameters: empty, bias, multiplier and shift."""


class Expected(NamedTuple):
    """The expected time in microseconds of a kernel that was never measured, on the GPU ``device``.

    ``low`` and ``high`` are its error bar: how far off such times were on ``layers`` layers that were measured
    afterwards and that the model was not trained on. None if no such layers were measured, and for a time derived from
    the kernel's measurement at another batch size (``measured``).
    """

    microseconds: float
    device: str
    low: float | None = None
    high: float | None = None
    layers: int = 0
    measured: bool = False


@dataclass(frozen=True)
class PixelTile:
    """Output pixels (rows, columns) whose input is loaded together by a block, or by one of its ``warps``."""

    block: tuple[int, int]
    warps: int
    warp: tuple[int, int]


class Family(FormerNames, ABC):
    """A kind of kernel. Instances hold no state; everything that varies is in configurations, plans and spaces."""

    name: ClassVar[str]
    """The name that users write."""
    title: ClassVar[str]
    """Shown after the name in lists of families: the instruction and the architectures that have it."""
    rank: ClassVar[int]
    """Of the families that cover a layer without measurements, the one with the highest rank is used."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Names from earlier versions, still accepted."""
    configurations: ClassVar[tuple[type[Configuration], ...]]
    """The configuration classes of its kernels; the first is the default."""
    kinds: ClassVar[Mapping[str, str]]
    """Kinds of spaces, each with a one-line description."""

    def kind_of(self, workload: ConvWorkload, arch: Arch) -> str:
        """The kind of space to search for a layer if none is named."""
        return next(iter(self.kinds))

    old_kinds: ClassVar[Mapping[str, str]] = {}
    """Kinds from earlier versions, with their replacements."""
    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Kinds of spaces, each with other kinds whose landscapes cover part of it, best first."""
    space_version: ClassVar[int] = 1
    """Raised when other indices of its spaces become valid: a test compares sample layers."""
    features: ClassVar[tuple[str, ...]]
    """Names of the values that :meth:`feature_row` returns."""

    # ---- configurations -----------------------------------------------------------------------------------------

    def owns(self, config: object) -> bool:
        """Whether a configuration belongs to this family."""
        return isinstance(config, self.configurations)

    def decode(self, values: Mapping[str, object]) -> Configuration | None:
        """The configuration with recorded fields, None if they belong to another family. Raises InvalidInput."""
        for kind in self.configurations:
            if set(values) <= set(kind.rows):
                return kind.from_dict(values)
        return None

    def from_key(self, key: str) -> Configuration | None:
        """The configuration named by a key, None if the key belongs to another family. Raises InvalidInput."""
        for kind in self.configurations:
            if kind.prefix and key.startswith(kind.prefix):
                return kind.from_key(key)
        return None

    def changed(self, config: Configuration, values: Mapping[str, object]) -> Configuration:
        """A configuration with some fields replaced; field names from earlier versions are accepted. Raises
        InvalidInput."""
        return config.with_values(values)

    def stand_in(self, config: Configuration) -> Configuration:
        """The configuration whose plan is used to estimate a recorded one that can no longer be built; any other is
        returned unchanged."""
        return config

    @property
    def knobs(self) -> tuple[str, ...]:
        """Names of all knobs and switches of its kernels."""
        return tuple(dict.fromkeys(name for kind in self.configurations for name in kind.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all knobs and switches of its kernels, including those of earlier versions."""
        return tuple(dict.fromkeys((*self.knobs, *self.removed)))

    @property
    def plain(self) -> Configuration:
        """A configuration with every knob at its default."""
        return self.configurations[0]()

    starts_plain: ClassVar[bool] = True
    """Whether fields given without a configuration change the plain one, which can be built for most layers; otherwise
    they change the best known one."""

    # ---- plans and spaces ---------------------------------------------------------------------------------------

    @abstractmethod
    def plan(
        self,
        workload: ConvWorkload,
        config: Configuration,
        arch: Arch,
        output: str = "int4",
        clip: tuple[int, int] = (-8, 7),
        requant: str = "fixed",
    ) -> Plan:
        """The plan of a kernel; it exists even for configurations that :meth:`check` rejects."""

    @abstractmethod
    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built ("kind: details"), None when it can."""

    @abstractmethod
    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration at all can be built, if that can be seen at once; None when some may."""

    def leads(self, workload: ConvWorkload, arch: Arch) -> bool:
        """Whether its estimates are tried before those of families with a higher rank."""
        return False

    def first_estimate(self, workload: ConvWorkload, arch: Arch) -> float | None:
        """For a layer unlike any that was measured, in any family: the estimated cycles of its first candidate,
        by which families that return a number are ordered. None for any other layer, and without a candidate."""
        return None

    @abstractmethod
    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload on the architecture, None when one does."""

    @abstractmethod
    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> Space:
        """The space of a kind; ``fixed`` holds fields at values other than their defaults. Raises InvalidInput."""

    @abstractmethod
    def recorded_space(
        self,
        workload: ConvWorkload,
        arch: Arch,
        kind: str,
        knobs: Mapping[str, tuple[Value, ...]],
        fixed: Mapping[str, Value],
        recorded_hash: str = "",
    ) -> Space:
        """The space of a record's header under today's constraints. A space of an earlier version, whose constraints no
        longer exist, keeps the record's hash."""

    removed: ClassVar[Mapping[str, Value]] = {}
    """Fields in records of earlier versions that configurations no longer have, with their default values."""
    fuses: ClassVar[bool] = False
    """Whether its kernels can pool, add earlier sums and keep their own (:class:`subbyte.numerics.fusion.Fusion`)."""
    adds_values: ClassVar[bool] = False
    """Whether its kernels can add a tensor of int4, uint4 or int8 values before rounding."""

    def can_fuse(self, fusion: Fusion) -> bool:
        """Whether its kernels can fuse this: nothing, or parts that they support."""
        if fusion == NOTHING:
            return True
        if fusion.added is None:
            return self.fuses
        return self.adds_values and replace(fusion, added=None) == NOTHING and fusion.added in ADDED

    special: ClassVar[bool] = False
    """Whether its kernels are made for particular layers: for others they are not expected, and the reason is not
    reported."""
    slow_to_list: ClassVar[bool] = False
    """Whether finding all valid configurations of a space takes noticeable time."""

    def earlier(self, kind: str, knobs: Mapping[str, Sequence[Value]]) -> bool:
        """Whether a kind of space with these value lists is from an earlier version, so that its indices mean something
        else."""
        return kind in self.old_kinds

    def still_there(self, knobs: Mapping[str, tuple[Value, ...]]) -> Mapping[str, tuple[Value, ...]]:
        """Recorded value lists without removed knobs. Raises Unsupported if some recorded kernels used one."""
        return knobs

    @abstractmethod
    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """All fields that a space holds fixed, with those in ``fixed`` set. Raises InvalidInput for a knob."""

    # ---- choosing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """Configurations that can be built, best estimate first."""

    def early(self, workload: ConvWorkload, arch: Arch) -> Sequence[Configuration]:
        """Candidates found well before all are in order, most of them among the first; none if ordering is quick."""
        return ()

    def expectation(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> str:
        """Whether a candidate without a record was measured, and its expected time with the source, as text."""
        return "not measured yet"

    def expected(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> Expected | None:
        """The same as a number with its error bar; None if the family only ranks candidates."""
        return None

    def launches(self, workload: ConvWorkload, arch: Arch) -> Sequence[Way]:
        """Ways to split a batch into several launches, the one expected to be fastest first. Empty if the family
        predicts no times."""
        return ()

    def dense_instead(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """For weights with a pattern of zeros: why kernels that also multiply the zeros should be used; None if those
        that skip them are expected to be faster."""
        return "no kernel of it skips zeros"

    zero_spaces: ClassVar[Mapping[str, str]] = {}
    """Maps each sparsity for which it has kernels that skip zeros to the kind of their space; ``blocks`` stands for any
    fraction."""
    finds_zeros: ClassVar[bool] = False
    """Whether its kernels find at run time which products to skip, in either operand: ``--sparsity condense``."""

    def dense_at(self, workload: ConvWorkload, density: float) -> str | None:
        """For a family that finds zeros: why dense kernels should be used when this fraction of both operands is
        nonzero; None if finding zeros is faster."""
        return "its kernels find no zeros"

    def keeps(self, plan: Plan, x: NDArray[np.int8], w: NDArray[np.int8]) -> dict[str, float] | None:
        """For a kernel that finds zeros, by name: the fraction of the products of these operands that it keeps, as
        expected and as counted, and other figures derived from them. None for other kernels."""
        return None

    @abstractmethod
    def estimate(self, plan: Plan) -> float:
        """A rough cycle count, good enough to rank configurations of one workload."""

    @abstractmethod
    def feature_row(self, plan: Plan) -> list[float]:
        """The features of a plan for a cost model, in the order of ``features``."""

    @abstractmethod
    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """The fraction of peak that the fake runner makes up, in (0, 1): smooth in the knobs."""

    # ---- generating ---------------------------------------------------------------------------------------------

    @abstractmethod
    def emit(self, plan: Plan) -> Function:
        """The TIRx function of a plan."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Path, ...]:
        """Folders and files of this package that determine the generated text, in addition to those shared by all
        families."""

    @abstractmethod
    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights int8 [K,R,S,C] in a layout that this family's kernels read; None for a layout of another family."""

    def threshold_words(self, form: str, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32] | None:
        """The thresholds with which a kernel compares sums of the weights int8 [K,R,S,C], in a layout that this
        family's kernels read; None for a layout of another family, and for kernels that multiply instead."""
        return None

    def report(self, ptx: str) -> list[str]:
        """Lines to add to the compiler's report of a kernel: facts visible in its PTX but not in its machine code."""
        return []

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a compiled kernel is rejected, None when it is accepted."""
        return None

    @abstractmethod
    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs from the family."""

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def instruction(self) -> str:
        """The instruction its kernels are built on: the beginning of the title."""
        return self.title.partition(",")[0]

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """What can be shown of its kernels, by the name used on the command line."""
        return {}

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels whose input a block, and each of its warps, loads together."""
        return PixelTile(plan.tile, 1, plan.tile)
