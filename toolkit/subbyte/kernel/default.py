"""Which configuration of a family to use when the caller names none."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import Unsupported
from subbyte.families.registry import finding_zeros, newest_first, usual
from subbyte.kernel.own import Path, beaten, own_records, reason_of
from subbyte.kernel.recommended import recommendation
from subbyte.numerics.fusion import SEPARATOR, Fusion
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload.coverage import int4_twin

TRIES = 8
"""How many estimated configurations of a family are built before giving up on it."""
TIMES_ADDED = 4
"""Factor on that number when values are added to sums: candidates are ranked by the time of the plain layer, and
registers needed by the residual epilogue decide how many of the first are rejected."""


def tried_at_most(most: int, output: str | None) -> int:
    """How many estimated configurations of a family to try for an output, given ``most`` for the plain layer."""
    if output is None or SEPARATOR not in output or Fusion.of(output).added is None:
        return most
    return most * TIMES_ADDED


def default_config(workload: ConvWorkload, arch: Arch | str) -> Configuration:
    """The user's own find for this workload and architecture, else the recommended configuration, else the one with the
    best estimate: of the default family, or if that has no kernel, of the highest-ranked one that has. Raises
    Unsupported when none has."""
    own = own_default(workload, arch)
    return own[0] if own else next(default_configs(workload, arch))


def own_default(
    workload: ConvWorkload, arch: Arch | str, output: str | None = None, store: Path | None = None,
    gpu: str | None = None, every: bool = False,
) -> tuple[Configuration, str] | None:  # fmt: skip
    """The user's own fastest find and why it is taken: of the default family if that covers the workload, or of any
    with ``every``. None if there is none, or if the recommended one was faster on a GPU of the same name."""
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    alone = not every and usual().covers(workload, target) is None
    found = [one for one in own_records(workload, target, output, store, gpu).taken
             if not alone or one.family == usual().name]  # fmt: skip
    kept = recommendation(workload.spec, target.name)
    if not found or (kept is not None and beaten(found[0], kept.microseconds, kept.device)):
        return None
    return found[0].configuration, reason_of(found[0])


def default_configs(workload: ConvWorkload, arch: Arch | str) -> Iterator[Configuration]:
    """Configurations that follow the user's own finds, each to be tried if the compiler rejects the one before. Raises
    Unsupported when there are none."""
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    found = recommendation((int4_twin(workload) or workload).spec, target.name)
    if found is not None:
        yield found.config
        return
    reason = usual().covers(workload, target)
    if reason is None:
        yield next(iter(usual().candidates(workload, target)))
        return
    covering = [one for one in newest_first() if one.covers(workload, target) is None]
    if covering:
        for family in covering:
            yield from islice(family.candidates(workload, target), TRIES)
        return
    raise Unsupported(f"{workload}: no kernel computes it on {target.name}: {reason.removeprefix('not covered: ')}")


def finding_configs(workload: ConvWorkload, arch: Arch | str) -> Iterator[Configuration]:
    """Configurations of kernels that find zeros at run time, best estimate first. Raises Unsupported when none can be
    built."""
    target, family = arch if isinstance(arch, Arch) else arch_named(arch), finding_zeros()
    if reason := family.covers(workload, target):
        raise Unsupported(f"{workload} on {target.name} in the {family.name} family: {reason}")
    yield from islice(family.candidates(workload, target), TRIES)
