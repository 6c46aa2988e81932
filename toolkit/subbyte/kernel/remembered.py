"""Two launches for a batch that the user's own measurements found faster than one: when they are used, and building
them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from subbyte.device.arch import Arch
from subbyte.errors import SubbyteError
from subbyte.families.registry import asked_families
from subbyte.kernel.build import part_plans
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.own import Own, beaten, reason_of
from subbyte.kernel.split import SplitKernel
from subbyte.records.launches import SplitLaunches
from subbyte.records.own import OwnRecord
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    from subbyte.kernel.choose import Choice


class Asked(NamedTuple):
    """What a caller asks for besides the workload."""

    arch: Arch
    family: str
    output: str | None
    clip: tuple[int, int] | None
    requant: str
    reads: str
    writes: str
    store: str | os.PathLike[str] | None
    gpu: str | None


def launches_ahead(own: Own, first: Choice | None, family: str = "auto") -> Iterable[OwnRecord]:
    """The user's own records of two launches that take precedence over the ``first`` choice of a single launch, fastest
    first. Only requested families count, and none if the user's own find of one launch was as fast, or a shipped record
    from a GPU of the same name was faster than all samples."""
    names = {one.name for one in asked_families(family)}
    for record in own.two:
        if first is not None and first.own and (first.microseconds or 0.0) <= record.microseconds:
            continue
        if first is not None and beaten(record, first.microseconds, first.device):
            continue
        if set(record.family.split("+")) <= names:
            yield record


def remembered_launches(
    workload: ConvWorkload, asked: Asked, own: Own, first: Choice | None, every: bool = False
) -> SplitKernel | None:
    """The kernels of the first such record that can be built and has the requested word layouts; with ``every``
    whatever the ``first`` choice is. None if there is none."""
    for record in own.two if every else launches_ahead(own, first, asked.family):
        if not isinstance(config := record.configuration, SplitLaunches):
            continue
        try:
            plans = part_plans(workload, config, asked.arch, asked.output, asked.clip, asked.requant)
            kernel = SplitKernel.joining(workload, [Kernel(one) for one in plans], reason_of(record) + own.left_text)
            wanted = {"A": asked.reads, "Out": asked.writes}
            if all(wanted.get(one.name, "") in ("", one.form) for one in kernel.launch.arguments):
                _ = kernel.resources  # builds, without a fault
                return kernel
        except SubbyteError:  # raw sums may not fit even if int4 values do
            continue
    return None
