"""Which configuration of a family to take when the user names none."""

from __future__ import annotations

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import Unsupported
from subbyte.families.registry import families, usual
from subbyte.kernel.recommended import recommendation
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


def default_config(workload: ConvWorkload, arch: Arch | str) -> Configuration:
    """The recommended configuration of this workload and architecture, else the one estimated fastest: of the usual
    family, or where that has no kernel of the one ranked highest that has. Raises Unsupported when none has."""
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    found = recommendation(workload.spec, target.name)
    if found is not None:
        return found.config
    reason = usual().covers(workload, target)
    if reason is None:
        return next(iter(usual().candidates(workload, target)))
    for family in sorted(families().values(), key=lambda one: -one.rank):
        first = None if family.covers(workload, target) else next(iter(family.candidates(workload, target)), None)
        if first is not None:
            return first
    raise Unsupported(f"{workload}: no kernel computes it on {target.name}: {reason.removeprefix('not covered: ')}")
