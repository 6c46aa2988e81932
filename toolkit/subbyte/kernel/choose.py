"""The kernel to use for a convolution: family and configuration from records, else by estimate, never a failing one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.arguments import checked, one_of
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import BuildFailed, InvalidInput, Unsupported, did_you_mean
from subbyte.kernel.build import make_plan
from subbyte.kernel.coverage import ASKED, candidates, covered
from subbyte.families.mma.estimate import default_config
from subbyte.kernel.kernel import Kernel, build
from subbyte.kernel.recommended import recommendation
from subbyte.families.mma.config import ConvConfig
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.rules import hopeless_warpgroup
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named

RECORDS = Path(__file__).with_name("warpgroup_best.json")
TRIES = 8
"""Estimated configurations that are built before the other family is taken."""


@checked
def compile(  # noqa: A001 - the name users expect; the builtin is not needed here
    workload: ConvWorkload | str,
    arch: Arch | str = "sm_90a",
    *,
    family: str = "auto",
    output: str = "int4",
    clip: tuple[int, int] = (-8, 7),
    requant: str = "fixed",
) -> Kernel:
    """The kernel to use for ``workload``: of the warpgroup family where it exists and covers the convolution, else of
    the warp family. ``Kernel.reason`` says why.

    ``family`` (``warp`` or ``warpgroup``) asks for one family alone; the other options are those of
    :func:`subbyte.build`. No GPU is needed. Raises InvalidInput for an unknown workload, architecture or option,
    Unsupported with the reason when no family that was asked for covers it.
    """
    found = workload_named(workload)
    target = arch_named(arch) if isinstance(arch, str) else arch
    if family not in ASKED:
        raise InvalidInput(f"family={family!r}: {did_you_mean(family, ASKED)}")
    options: dict[str, Any] = {"output": output, "clip": clip, "requant": requant}
    if family == "warp":
        return build(found, None, target, **options)
    faster = _faster_warp(found, target) if family == "auto" else None
    if faster is not None:
        with suppress(BuildFailed, Unsupported):
            return replace(build(found, faster[0], target, **options), reason=faster[1])
    reasons = []
    for config, reason in _warpgroup(found, target):
        try:
            kernel = Kernel(make_plan(found, config, target, output, clip, requant), reason=reason)
            if kernel.resources:  # built, and found without a fault
                return kernel
        except (BuildFailed, Unsupported) as error:  # raw sums may not fit where int4 values do
            reasons.append(str(error))
    why = reasons[0] if reasons else covered(found, target, "warpgroup")
    if family == "warpgroup":
        raise _not_covered(found, target, why)
    try:
        return replace(build(found, None, target, **options), reason=f"warp family, because {why}")
    except Unsupported as error:
        raise Unsupported(f"{error} (the warp family); {why} (the warpgroup family)") from None


def warpgroup_config(workload: ConvWorkload, arch: Arch | str = "sm_90a") -> WarpgroupConfig:
    """The configuration of the warpgroup family to try first. Raises Unsupported with the reason when none fits."""
    found = best_known(workload, arch, "warpgroup")[0]
    assert isinstance(found, WarpgroupConfig)
    return found


def best_known(
    workload: ConvWorkload, arch: Arch | str = "sm_90a", family: str = "auto"
) -> tuple[ConvConfig | WarpgroupConfig, str]:
    """The configuration that :func:`compile` tries first, and why: nothing is built, so it answers at once.

    Of all families (``auto``) or of one. Raises InvalidInput for an unknown family, Unsupported with the reason when no
    configuration fits.
    """
    one_of(family, "family", ASKED)
    return _best_known(workload, arch_named(arch) if isinstance(arch, str) else arch, family)


@cache
def _best_known(workload: ConvWorkload, arch: Arch, family: str) -> tuple[ConvConfig | WarpgroupConfig, str]:
    faster = _faster_warp(workload, arch) if family == "auto" else None
    if faster is not None:
        return faster
    found = next(_warpgroup(workload, arch), None) if family != "warp" else None
    if found is not None:
        return found
    if family == "warpgroup":
        raise _not_covered(workload, arch, covered(workload, arch, "warpgroup"))
    kept = recommendation(workload.spec, arch.name)
    known = f"fastest measured configuration ({kept.microseconds:.2f} us on {kept.device})" if kept else "by estimate"
    return default_config(workload, arch), f"warp family, {known}"


def _not_covered(workload: ConvWorkload, arch: Arch, why: str | None) -> Unsupported:
    return Unsupported(
        f'{workload.label} on {arch.name} in the warpgroup family: {why}; the warp family (family="warp", '
        "--family warp) may cover it"
    )


@cache
def recorded_best() -> dict[str, dict[str, Any]]:
    """The fastest measured configuration of the warpgroup family by workload spec, with its time and origin; under
    ``warp`` the fastest of the other family, where it was measured beside it."""
    found: dict[str, dict[str, Any]] = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.is_file() else {}
    return found


def _faster_warp(workload: ConvWorkload, arch: Arch) -> tuple[ConvConfig, str] | None:
    """The recorded configuration of the warp family where it is the faster one, with the reason to take it."""
    best = recorded_best().get(workload.spec, {})
    other = best.get("warp")
    if arch.name != "sm_90a" or other is None or other["microseconds"] >= best["microseconds"]:
        return None
    text = (
        f"warp family, fastest measured configuration ({other['microseconds']:.2f} us on {best['device']}; the "
        f"warpgroup family's best needs {best['microseconds']:.2f} us)"
    )
    return ConvConfig.from_dict(other["config"]), text


def _warpgroup(workload: ConvWorkload, arch: Arch) -> Iterator[tuple[WarpgroupConfig, str]]:
    """Configurations of the warpgroup family in the order to try them, each with the reason it stands there."""
    best = recorded_best().get(workload.spec)
    if best is not None and hopeless_warpgroup(workload, arch) is None:
        when = f"{best['microseconds']:.2f} us on {best['device']}, generator {best['generator'].split(',')[0]}"
        text = f"warpgroup family, fastest measured configuration ({when})"
        yield WarpgroupConfig.from_dict(best["config"]), text
    for config in candidates(workload, arch)[:TRIES]:
        yield config, "warpgroup family, chosen by estimate: not measured yet"
