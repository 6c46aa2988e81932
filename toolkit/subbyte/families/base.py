"""What a kind of kernel gives, so that no other folder has to know which kinds there are.

A family is one folder below :mod:`subbyte.families` and one line in :mod:`subbyte.families.registry`. Planning,
building, searching, exporting and explaining all go through the object described here.
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
"""Types of values that kernels can add before they round."""
RETIRED = "retired"
"""Kind of reason of kernels that could be built when they were measured: their results are kept."""
Way = tuple[tuple[int, ...], float]
"""Images of each launch of a batch, and the microseconds that are expected of all."""


@dataclass(frozen=True)
class ExportParts:
    """What the C header of a kernel needs of its family.

    ``sections``: C texts by name, beside those of the template or in their place. ``weights`` gives the function
    ``prepare_weights``; a kernel of other operands than int4 brings ``index``, ``operands`` and ``output`` as well.
    ``words`` are what stands for ``@name@`` in them, ``defines`` constants of the header.
    """

    sections: Mapping[str, str]
    weight_shape: tuple[int, ...]
    words: Mapping[str, str]
    defines: Mapping[str, int | str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of the words of other arguments, where these are not blocks of packed values."""
    parameters: Mapping[str, str | list[int]] = field(default_factory=dict)
    """The caller's array behind the parameters: empty, bias, multiplier and shift."""


class Expected(NamedTuple):
    """A time in microseconds that is expected of a kernel that nobody measured, on the GPU ``device``.

    ``low`` and ``high`` are its error bar: how far off such times were on ``layers`` layers that were measured
    afterwards and that the model was not trained on. None where no such layers were measured, and of what the kernel
    took at another batch (``measured``).
    """

    microseconds: float
    device: str
    low: float | None = None
    high: float | None = None
    layers: int = 0
    measured: bool = False


@dataclass(frozen=True)
class PixelTile:
    """Output pixels (rows, columns) whose input is loaded together: by a block, by one of the ``warps`` sharing it."""

    block: tuple[int, int]
    warps: int
    warp: tuple[int, int]


class Family(FormerNames, ABC):
    """A kind of kernel. Instances hold no state; all that varies is in configurations, plans and spaces."""

    name: ClassVar[str]
    """As users write it."""
    title: ClassVar[str]
    """Behind the name where families are listed: the instruction and where it exists."""
    rank: ClassVar[int]
    """Of families that cover a layer nobody measured, the one of the highest rank is taken."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Names of earlier versions, still understood."""
    configurations: ClassVar[tuple[type[Configuration], ...]]
    """The configurations of its kernels; the first is the usual one."""
    kinds: ClassVar[Mapping[str, str]]
    """Kinds of spaces, with one line each."""

    def kind_of(self, workload: ConvWorkload, arch: Arch) -> str:
        """The kind of space that is searched for a layer where none is named."""
        return next(iter(self.kinds))

    old_kinds: ClassVar[Mapping[str, str]] = {}
    """Kinds of earlier versions, with the one that takes their place."""
    parts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Kinds of spaces with others of which landscapes hold a part, the best one first."""
    space_version: ClassVar[int] = 1
    """Goes up when other indices of its spaces become valid: a test compares sample layers."""
    features: ClassVar[tuple[str, ...]]
    """Names of what :meth:`feature_row` gives."""

    # ---- configurations -----------------------------------------------------------------------------------------

    def owns(self, config: object) -> bool:
        """Whether a configuration is of this family."""
        return isinstance(config, self.configurations)

    def decode(self, values: Mapping[str, object]) -> Configuration | None:
        """The configuration of recorded fields, None when they are of another family. Raises InvalidInput."""
        for kind in self.configurations:
            if set(values) <= set(kind.rows):
                return kind.from_dict(values)
        return None

    def from_key(self, key: str) -> Configuration | None:
        """The configuration that a key names, None when the key is of another family. Raises InvalidInput."""
        for kind in self.configurations:
            if kind.prefix and key.startswith(kind.prefix):
                return kind.from_key(key)
        return None

    def changed(self, config: Configuration, values: Mapping[str, object]) -> Configuration:
        """A configuration with some fields replaced, whose names may be those of earlier versions. Raises
        InvalidInput."""
        return config.with_values(values)

    def stand_in(self, config: Configuration) -> Configuration:
        """The configuration by whose plan a recorded one is estimated that cannot be built any more; any other
        itself."""
        return config

    @property
    def knobs(self) -> tuple[str, ...]:
        """Names of all knobs and switches of its kernels."""
        return tuple(dict.fromkeys(name for kind in self.configurations for name in kind.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all knobs and switches of its kernels, also of earlier versions."""
        return tuple(dict.fromkeys((*self.knobs, *self.removed)))

    @property
    def plain(self) -> Configuration:
        """A configuration with every knob at its default."""
        return self.configurations[0]()

    starts_plain: ClassVar[bool] = True
    """Values given alone change the plain configuration, which can be built for most layers; else the best known."""

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
        """The plan of a kernel; it exists also for configurations that :meth:`check` refuses."""

    @abstractmethod
    def check(self, plan: Plan) -> str | None:
        """Why the plan cannot be built ("kind: details"), None when it can."""

    @abstractmethod
    def hopeless(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no configuration can be built, whatever it is, found at once; None when some may."""

    def leads(self, workload: ConvWorkload, arch: Arch) -> bool:
        """Whether its estimates come before those of families of a higher rank."""
        return False

    def first_estimate(self, workload: ConvWorkload, arch: Arch) -> float | None:
        """Of a layer that nobody measured one like, in any family: the cycles that its first candidate is estimated at,
        by which families that give one are put in order. None of any other layer, and where it has no candidate."""
        return None

    @abstractmethod
    def covers(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Why no kernel of the family computes the workload on the architecture, None when one does."""

    @abstractmethod
    def space(self, workload: ConvWorkload, arch: Arch, kind: str, fixed: Mapping[str, object]) -> Space:
        """The space of a kind; ``fixed`` are fields to hold at other values than the usual. Raises InvalidInput."""

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
        """The space of a record's header under today's constraints. One of an earlier version, whose constraints are
        no more, keeps the hash of the record."""

    removed: ClassVar[Mapping[str, Value]] = {}
    """Fields that records of earlier versions name and configurations no longer have, with their usual values."""
    fuses: ClassVar[bool] = False
    """Its kernels can pool, add earlier sums and keep their own (:class:`subbyte.numerics.fusion.Fusion`)."""
    adds_values: ClassVar[bool] = False
    """Its kernels can add a tensor of int4, uint4 or int8 values before they round."""

    def can_fuse(self, fusion: Fusion) -> bool:
        """Whether its kernels can do what is to be fused: nothing, or parts that they know."""
        if fusion == NOTHING:
            return True
        if fusion.added is None:
            return self.fuses
        return self.adds_values and replace(fusion, added=None) == NOTHING and fusion.added in ADDED

    special: ClassVar[bool] = False
    """Its kernels are made for some layers: of others nobody expects one, and its reason is of no interest."""
    slow_to_list: ClassVar[bool] = False
    """Finding all valid configurations of a space takes noticeable time."""

    def earlier(self, kind: str, knobs: Mapping[str, Sequence[Value]]) -> bool:
        """Whether a kind of space with these value lists is of an earlier version: its indices mean something else."""
        return kind in self.old_kinds

    def still_there(self, knobs: Mapping[str, tuple[Value, ...]]) -> Mapping[str, tuple[Value, ...]]:
        """Recorded value lists without knobs that are no more. Raises Unsupported where some kernels had one."""
        return knobs

    @abstractmethod
    def held(self, fixed: Mapping[str, object]) -> dict[str, Value]:
        """All fields that a space holds fixed, with those of ``fixed`` set. Raises InvalidInput for a knob."""

    # ---- choosing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def candidates(self, workload: ConvWorkload, arch: Arch) -> Iterable[Configuration]:
        """Configurations that can be built, the one estimated fastest first."""

    def expectation(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> str:
        """What is expected of a candidate that nobody measured, and by what; "" of a family that only puts them in
        order."""
        return ""

    def expected(self, workload: ConvWorkload, config: Configuration, arch: Arch) -> Expected | None:
        """The same as a number with its error bar; None of a family that only puts candidates in order."""
        return None

    def launches(self, workload: ConvWorkload, arch: Arch) -> Sequence[Way]:
        """Ways to compute a batch by more than one launch, the one expected to be fastest first. None of a family that
        expects no times."""
        return ()

    def dense_instead(self, workload: ConvWorkload, arch: Arch) -> str | None:
        """Of weights with a pattern of zeros: why kernels that multiply the zeros too are to be taken; None where those
        that skip them are expected to be faster."""
        return "no kernel of it skips zeros"

    zero_spaces: ClassVar[Mapping[str, str]] = {}
    """Sparsities of which it has kernels that leave out zeros -> kind of their space; ``blocks`` of any share."""
    finds_zeros: ClassVar[bool] = False
    """Its kernels find out while they run which products to leave out, of either operand: ``--sparsity condense``."""

    def dense_at(self, workload: ConvWorkload, density: float) -> str | None:
        """Of a family that finds zeros: why dense kernels are to be taken where this share of both operands is not 0;
        None where finding zeros is faster."""
        return "its kernels find no zeros"

    def keeps(self, plan: Plan, x: NDArray[np.int8], w: NDArray[np.int8]) -> dict[str, float] | None:
        """Of a kernel that finds zeros, by name: the share of the products that it keeps of these operands, as expected
        and as counted, and what else it takes from them. None of other kernels."""
        return None

    @abstractmethod
    def estimate(self, plan: Plan) -> float:
        """A rough count of cycles, good enough to rank configurations of one workload."""

    @abstractmethod
    def feature_row(self, plan: Plan) -> list[float]:
        """What a cost model sees of a plan, in the order of ``features``."""

    @abstractmethod
    def made_up_share(self, workload: ConvWorkload, config: Configuration) -> float:
        """The share of the peak that the fake runner makes up, in (0, 1): smooth in the knobs."""

    # ---- generating ---------------------------------------------------------------------------------------------

    @abstractmethod
    def emit(self, plan: Plan) -> Function:
        """The TIRx function of a plan."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Path, ...]:
        """Folders and files of this package that decide the generated text, beside those that all families share."""

    @abstractmethod
    def weight_words(self, form: str, w: NDArray[np.int8]) -> NDArray[np.uint32] | None:
        """Weights int8 [K,R,S,C] in a form that this family's kernels read; None for a form of another family."""

    def threshold_words(self, form: str, w: NDArray[np.int8], thresholds: Thresholds) -> NDArray[np.int32] | None:
        """What a kernel compares sums of the weights int8 [K,R,S,C] with, in a form that this family's kernels read;
        None for a form of another family, and of kernels that multiply instead."""
        return None

    def report(self, ptx: str) -> list[str]:
        """Lines to add to the compiler's report of a kernel: what its PTX shows and its machine code does not."""
        return []

    def refused(self, cubin: bytes, log: str, local_bytes: int) -> str | None:
        """Why a compiled kernel is not handed out, None when it is."""
        return None

    @abstractmethod
    def export(self, plan: Plan) -> ExportParts:
        """What a C header of the kernel needs."""

    # ---- showing ------------------------------------------------------------------------------------------------

    @property
    def instruction(self) -> str:
        """What its kernels are built on, as the title begins."""
        return self.title.partition(",")[0]

    @property
    def topics(self) -> Mapping[str, Topic[InfoRecord]]:
        """What can be shown of its kernels, by the name of the command."""
        return {}

    def loads_together(self, plan: Plan) -> PixelTile:
        """The output pixels whose input a block, and each of its warps, loads together."""
        return PixelTile(plan.tile, 1, plan.tile)
