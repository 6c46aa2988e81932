"""Which configuration of a family to take when the user names none."""

from __future__ import annotations

from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import Unsupported
from subbyte.families.registry import usual
from subbyte.kernel.recommended import recommendation
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload


def default_config(workload: ConvWorkload, arch: Arch | str) -> Configuration:
    """The recommended configuration of this workload and architecture, else the one of the usual family that is
    estimated fastest. Raises Unsupported when no configuration can be built."""
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    found = recommendation(workload.spec, target.name)
    if found is not None:
        return found.config
    family = usual()
    reason = family.covers(workload, target)
    if reason is not None:
        raise Unsupported(f"{workload}: no kernel computes it on {target.name}: {reason.removeprefix('not covered: ')}")
    return next(iter(family.candidates(workload, target)))
