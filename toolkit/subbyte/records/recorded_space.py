"""The space of a landscape: what was recorded is valid, and constraints are not checked again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from subbyte.device.arch import arch as arch_named
from subbyte.families.base import Plan
from subbyte.families.registry import family_of, family_of_kind
from subbyte.records.describe import SpaceLike, arch_name, config_at
from subbyte.records.foreign import FOREIGN, ForeignSpace
from subbyte.records.landscape_space import space_today
from subbyte.records.log import read_header
from subbyte.spaces.configuration import Configuration
from subbyte.spaces.former_names import FormerNames
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    from subbyte.records.landscape import Landscape


class RecordedSpace(FormerNames):
    """The part of a convolution's space that a landscape holds; indices are those of the original space.

    A landscape of a whole space gives the same valid configurations as the space itself, at no cost; one of a part
    (a sample of a large space) gives that part.
    """

    listed = True

    def __init__(self, landscape: Landscape) -> None:
        self._header: Mapping[str, Any] = landscape.header["space"]
        self.workload: ConvWorkload = landscape.workload
        self.arch = landscape.arch
        self.kind = landscape.kind
        self.knobs: dict[str, tuple[Any, ...]] = {name: tuple(values) for name, values in self._header["knobs"].items()}
        self.fixed: dict[str, Any] = dict(self._header["fixed"])
        self.valid: Sequence[int] = tuple(sorted(landscape.results))
        digest = hashlib.sha256(f"{landscape.space_hash} {self.valid}".encode())
        self.hash = digest.hexdigest()[:16]

    def __len__(self) -> int:
        return int(self._header["size"])

    def config(self, index: int) -> Configuration:
        """The configuration at ``index``."""
        return config_at(self._header, index)

    def index(self, config: Configuration) -> int:
        """The index of a configuration. Raises InvalidInput."""
        family = family_of_kind(self.kind) or family_of(config)
        return family.recorded_space(self.workload, arch_named(self.arch), self.kind, self.knobs, self.fixed).index(
            config
        )

    @cached_property
    def _recorded(self) -> frozenset[int]:
        return frozenset(self.valid)

    def check(self, which: int | Configuration) -> str | None:
        """``unrecorded: ...`` for configurations that the landscape does not hold, else None."""
        index = which if isinstance(which, int) else self.index(which)
        return None if index in self._recorded else "unrecorded: the landscape does not hold this configuration"

    def plan(self, which: int | Configuration) -> Plan:
        """The plan of a configuration, from which it can be estimated."""
        config = self.config(which) if isinstance(which, int) else which
        family = family_of(config)
        return family.plan(self.workload, family.stand_in(config), arch_named(self.arch))


def as_logged(space: SpaceLike, log: str | os.PathLike[str] | None) -> SpaceLike:
    """``space``, or if the log to resume is of a space that it replaced, the space of the log, so that its
    indices keep their meaning. Raises InvalidInput and BrokenRecord for a file that is not a log."""
    header = {} if log is None else read_header(log)
    kind = header["space"]["kind"] if header else space.kind
    family = family_of_kind(kind)
    if family is None or family.old_kinds.get(kind, kind) != space.kind:
        return space
    if not family.earlier(kind, header["space"]["knobs"] if header else space.knobs):
        return space
    found: Any = space_today(header)
    if found is None or (found.workload.spec, arch_name(found)) != (space.workload.spec, arch_name(space)):
        return space
    return found if dict(found.fixed) == dict(space.fixed) else space


def space_of(landscape: Landscape) -> SpaceLike:
    """The space in which a landscape was recorded; only what it holds is valid."""
    if landscape.kind != FOREIGN:
        return RecordedSpace(landscape)
    workload: Any = landscape.workload
    space: Any = ForeignSpace(workload, landscape.arch, landscape.header["space"]["knobs"], landscape.results)
    found: SpaceLike = space
    return found
