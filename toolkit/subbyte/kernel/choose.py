"""Which kernel to use for a convolution: family and configuration from records, else by estimate, never one that
fails."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from subbyte.arguments import checked, share
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import BuildFailed, InvalidInput, Unsupported, shown
from subbyte.families.base import Family
from subbyte.families.registry import (
    asked_families,
    config_from_dict,
    family_of,
    finding_zeros,
    newest_first,
    tried_in_order,
    usual,
    who_fuses,
)
from subbyte.kernel.build import make_plan
from subbyte.kernel.coverage import covered
from subbyte.kernel.default import TRIES, default_config, tried_at_most
from subbyte.kernel.kernel import Kernel
from subbyte.kernel.live_shares import between_shares
from subbyte.kernel.own import Own, beaten, own_records, reason_of
from subbyte.kernel.recommended import recommendation
from subbyte.kernel.remembered import Asked, remembered_launches
from subbyte.kernel.split import Built, SplitKernel, in_parts
from subbyte.kernel.what_wins import RECORDED_ON, what_wins
from subbyte.numerics.fusion import SEPARATOR, Fusion
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as workload_named
from subbyte.workload.coverage import dense_types, four_bits_alone, int4_twin
from subbyte.workload.operand import DENSE
from subbyte.workload.sparsity import FOUND, with_sparsity

RECORDS, FUSED = (Path(__file__).with_name(name) for name in ("best.json", "fused.json"))
TWIN = "; measured on int4 values, which its instructions only read with another sign"
"""Appended to the reason for a kernel on uint4 values."""


class Choice(NamedTuple):
    """A configuration to try, and why; with its time and GPU if a record holds a measurement (``measured``)."""

    family: Family
    config: Configuration
    reason: str
    measured: bool
    microseconds: float | None = None
    device: str = ""
    own: bool = False
    """Whether the user's own search found it."""

    @property
    def source(self) -> str:
        """``own``, ``shipped`` (a record in the package) or ``predicted`` (never measured)."""
        return "own" if self.own else "predicted" if self.microseconds is None else "shipped"


@checked
def compile(  # noqa: A001 - the name users expect; the builtin is not needed here
    workload: ConvWorkload | str,
    arch: Arch | str = "sm_90a",
    *,
    family: str = "auto",
    output: str | None = None,
    clip: tuple[int, int] | None = None,
    requant: str = "fixed",
    reads: str = "",
    writes: str = "",
    sparsity: str = DENSE,
    density: float | None = None,
    store: str | os.PathLike[str] | None = None,
    gpu: str | None = None,
) -> Kernel:
    """The kernel to use for ``workload``: the fastest one that the user's own searches found, else the fastest recorded
    one shipped with the package, else the one with the best estimate for the newest instruction that covers the
    convolution. For a batch size that was never measured, two launches that split the batch are used when they are
    expected to be faster. ``Kernel.reason`` says which was chosen and why.

    Own records are those in ``store`` (default: the usual one, :func:`subbyte.records.store.store_path`) that were
    measured on a GPU of this machine, or on the GPU named by ``gpu``, with the kernel text generated today. A shipped
    record from a GPU of the same name is taken instead if it is faster than all samples of the own record.

    ``family`` (a name from :func:`subbyte.families.families`) restricts the choice to one family; the other options are
    those of :func:`subbyte.build`. ``reads`` and ``writes`` require kernels whose input and output words have this
    layout: in a chain, ``argument("Out").form`` of one kernel is ``argument("A").form`` of the next. ``sparsity`` is
    that of the weights, ``dense``, ``2:4`` or ``blocks:0.25``; a dense kernel is taken if it is faster on them.
    ``condense`` asks for a kernel that finds zeros anywhere in both operands; given the ``density`` of both (the
    fraction of nonzeros), a dense one is taken if it is faster. No GPU is needed. Raises InvalidInput for an unknown
    workload, architecture or option, Unsupported with the reason when no requested family covers it.
    """
    found = with_sparsity(workload_named(workload), sparsity)
    target = arch_named(arch) if isinstance(arch, str) else arch
    if sparsity == FOUND:
        finding = finding_zeros(family)
        family, reason = finding.name, None if density is None else finding.dense_at(found, share(density, "density"))
        if reason is not None:
            dense = compile(found, target, output=output, clip=clip, requant=requant, reads=reads, writes=writes,
                            store=store, gpu=gpu)  # fmt: skip
            return replace(dense, reason=f"{dense.reason}; {reason}")
    elif density is not None:
        raise InvalidInput(f"density={shown(density)}: it applies to sparsity={FOUND!r} only; leave it out")
    asked = Asked(target, family, output, clip, requant, reads, writes, store, gpu)
    return remembered(found, asked) or two_launches(one := _built(found, asked), asked) or one.kernel


def remembered(workload: ConvWorkload, asked: Asked, every: bool = False) -> SplitKernel | None:
    """Two launches from the user's own store, if no record of a single launch is faster; with ``every`` even if one is.
    None if there are none."""
    own = own_records(workload, asked.arch, asked.output, asked.store, asked.gpu)
    first = next(choices(workload, *asked[:3], *asked[5:7], own), None) if own.two else None
    return remembered_launches(workload, asked, own, first, every)


def two_launches(one: Built, asked: Asked) -> SplitKernel | None:
    """Two kernels that split the batch, to replace one kernel for all of it; None when they are not expected to be
    faster. ``asked`` is the request that ``one`` was built for."""
    return in_parts(one, lambda part: _built(part, asked))


def _built(workload: ConvWorkload, asked: Asked) -> Built:
    """The kernel to use in a single launch, built. Raises Unsupported."""
    arch, family, output, clip, requant, reads, writes, store, gpu = asked
    failed: list[str] = []
    own = own_records(workload, arch, output, store, gpu)
    for choice in choices(workload, arch, family, output, reads, writes, own):
        try:
            plan = make_plan(workload, choice.config, arch, output, clip, requant)
            kernel = Kernel(plan, reason=choice.reason + what_wins(plan, arch, recorded_best()))
            if kernel.resources:  # builds, without a fault
                first = _expected(workload, arch, family)
                if not (choice.measured or choice.family is first or four_bits_alone(workload)):
                    why = failed[0] if failed else first.covers(workload, arch)  # a different one was to be expected
                    kernel = replace(kernel, reason=f"{choice.family.name} family, because {why}{own.left_text}")
                return Built(kernel, choice.microseconds)
        except (BuildFailed, Unsupported) as error:  # raw sums may not fit even if int4 values do
            failed.append(str(error))
    raise _not_covered(workload, arch, family, failed or _nobody(workload, arch, family, output, reads, writes))


def _expected(workload: ConvWorkload, arch: Arch, family: str) -> Family:
    """The family expected to provide a layer's kernel."""
    asked = tried_in_order(workload, arch, family)
    return next((one for one in asked if not (one.special and one.hopeless(workload, arch))), asked[0])


def _nobody(workload: ConvWorkload, arch: Arch, family: str, output: str | None, reads: str, writes: str) -> list[str]:
    """Why there was nothing to try, if the layer alone is not the reason."""
    if covered(workload, arch, family) is not None:
        return []
    words = (f" and reads {reads}" if reads else "") + (f" and writes {writes}" if writes else "")
    given = output or workload.precision.output.name
    fused = _why_not_fused(workload, arch, family, given) if SEPARATOR in given else ""
    return [f"no kernel of it gives {given}{words}{fused}"]


def _why_not_fused(workload: ConvWorkload, arch: Arch, family: str, output: str) -> str:
    """Why the first kernel to try cannot fuse what ``output`` asks for."""
    fusion = Fusion.of(output)
    first = tried_in_order(workload, arch, family)
    able = [one for one in first if one.can_fuse(fusion) and not one.hopeless(workload, arch)]
    for config in (config for one in able for config in islice(one.candidates(workload, arch), 1)):
        try:
            make_plan(workload, config, arch, output, None, "fixed")
        except Unsupported as error:
            return f": {error}"
    return "" if able else f": {who_fuses(fusion)}"


@checked
def best_known(
    workload: ConvWorkload, arch: Arch | str = "sm_90a", family: str = "auto", *, output: str | None = None,
    reads: str = "", store: str | os.PathLike[str] | None = None, gpu: str | None = None,
) -> tuple[Configuration, str]:  # fmt: skip
    """The configuration that :func:`compile` tries first, and why. Nothing is built, so it returns at once.

    Considers all families (``auto``) or one; the other arguments are those of :func:`compile`. Raises InvalidInput for
    an unknown family, Unsupported with the reason when no configuration fits.
    """
    target = arch_named(arch) if isinstance(arch, str) else arch
    own = own_records(workload, target, output, store, gpu)
    choice = _best_known(workload, target, family, output, reads, own)
    return choice.config, choice.reason


def likeliest(
    workload: ConvWorkload, arch: Arch, count: int, family: str = "auto", output: str | None = None, reads: str = "",
    writes: str = "", own: Own | None = None,
) -> list[Configuration]:  # fmt: skip
    """The first ``count`` distinct configurations in the order in which :func:`compile` would try them. Raises
    Unsupported when there are none."""
    found: dict[Configuration, None] = {}
    for choice in choices(workload, arch, family, output, reads, writes, own or Own(), count):
        found.setdefault(choice.config)
        if len(found) == count:
            break
    if not found:
        raise _not_covered(workload, arch, family, _nobody(workload, arch, family, output, reads, writes))
    return list(found)


@checked
def best_twins(workload: ConvWorkload, arch: Arch | str = "sm_90a") -> list[Configuration]:
    """For weights with a pattern of zeros: the best known configuration that skips zeros and the best that does not, as
    far as they exist. Empty for other weights."""
    if workload.precision.weights.sparsity == DENSE:
        return []
    target = arch_named(arch) if isinstance(arch, str) else arch
    chosen = (choice.config for choice in choices(workload, target, "auto"))
    able = [one for one in newest_first() if any(kind.skips_zeros for kind in one.configurations)]
    more = (config for one in able if one.hopeless(workload, target) is None
            for config in one.candidates(workload, target))  # fmt: skip
    found: dict[bool, Configuration] = {}
    for config in chain(chosen, more):
        found.setdefault(config.skips_zeros, config)
        if len(found) == 2:
            break
    return list(found.values())


def known_config(workload: ConvWorkload, arch: Arch | str, family: Family) -> Configuration:
    """A configuration of the family to start from: the one :func:`subbyte.build` takes, or the best known. Raises
    Unsupported."""
    if family is usual():
        return default_config(workload, arch)
    return best_known(workload, arch, family.name)[0]


@cache
def _best_known(workload: ConvWorkload, arch: Arch, family: str, output: str | None, reads: str, own: Own) -> Choice:
    choice = next(choices(workload, arch, family, output, reads, own=own), None)
    if choice is None:
        raise _not_covered(workload, arch, family, _nobody(workload, arch, family, output, reads, ""))
    return choice


@cache
def recorded_best() -> dict[str, dict[str, Any]]:
    """The fastest measured configuration by workload spec, with its time and origin; entries under the names of other
    families hold the fastest of each, if it was measured in comparison."""
    return _recorded_in(RECORDS)


@cache
def recorded_fused() -> dict[str, dict[str, Any]]:
    """The same for kernels with a fused epilogue, by "spec output"."""
    return _recorded_in(FUSED)


def _recorded_in(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def choices(
    workload: ConvWorkload, arch: Arch, family: str, output: str | None = None, reads: str = "", writes: str = "",
    own: Own = Own(), most: int = TRIES,  # noqa: B008 - plain frozen data
) -> Iterator[Choice]:  # fmt: skip
    """Configurations in the order to try them, limited to those that support the output and the word layouts, with at
    most ``most`` estimated ones per family. Every reason mentions records in the user's store that are not taken."""
    for choice in _in_order(workload, arch, family, output, reads, writes, own, most):
        yield choice._replace(reason=choice.reason + own.left_text)


def _in_order(
    workload: ConvWorkload, arch: Arch, family: str, output: str | None, reads: str, writes: str, own: Own, most: int
) -> Iterator[Choice]:
    """The same, ignoring records in the store that are not taken."""

    def fits(one: Family, config: Configuration) -> bool:
        return _fits(one, workload, config, arch, output, {"A": reads, "Out": writes})

    wanted = [one for one in tried_in_order(workload, arch, family) if one.hopeless(workload, arch) is None]
    recorded = _recorded(workload, arch, output)
    twin = int4_twin(workload)
    if not recorded and twin is not None:
        recorded = [choice._replace(reason=choice.reason + TWIN) for choice in _recorded(twin, arch, output)]
    zeros = ""
    if not recorded and workload.precision.weights.sparsity != DENSE and wanted:
        reasons = [one.dense_instead(workload, arch) for one in wanted]
        if None not in reasons:  # a kernel measured on dense weights takes as long on these
            zeros = f"; it multiplies zeros too: {reasons[0]}"
            dense = replace(workload, precision=dense_types(workload.precision))
            recorded = _recorded(dense, arch, output) or _recorded(int4_twin(dense) or dense, arch, output)
    recorded = [choice._replace(reason=choice.reason + zeros) for choice in recorded]
    known = [one for one in _with_own(own, recorded) if one.family in wanted and fits(one.family, one.config)]
    yield from known
    given = {one.config for one in known}
    for one in wanted:
        kept = recommendation(workload.spec, arch.name)
        if kept is not None and one.owns(kept.config) and fits(one, kept.config):
            time = f"fastest measured configuration ({kept.microseconds:.2f} us on {kept.device})"
            yield Choice(one, kept.config, f"{one.name} family, {time}", False, kept.microseconds, kept.device)
        fitting = (config for config in one.candidates(workload, arch) if config not in given and fits(one, config))
        for config in islice(fitting, tried_at_most(most, output)):
            more = "" if config.skips_zeros else zeros
            said = one.expectation(workload, config, arch)
            yield Choice(one, config, f"{one.name} family, chosen by estimate: {said}{more}", False)


def _with_own(own: Own, recorded: list[Choice]) -> list[Choice]:
    """The user's own finds, then the shipped records; a shipped one goes first if it was faster on the same GPU
    model."""
    finds = [
        Choice(family_of(one.configuration), one.configuration, reason_of(one), True, one.microseconds, one.gpu, True)
        for one in own.taken
    ]
    first = own.taken[:1]
    faster = [one for one in recorded if first and beaten(first[0], one.microseconds, one.device)]
    slower = f"; your own record needs {first[0].microseconds:.2f} us: {first[0].config}" if first else ""
    faster = [one._replace(reason=one.reason + slower) for one in faster]
    configs = {one.config for one in faster}
    return [*faster, *finds, *(one for one in recorded if one.config not in configs)]


def _fits(
    family: Family, workload: ConvWorkload, config: Configuration, arch: Arch, output: str | None, forms: dict[str, str]
) -> bool:
    """Whether a configuration supports an output with a fused epilogue, and its arguments have the given layouts (""
    means any). Without either, every candidate does."""
    fused = output is not None and SEPARATOR in output
    if not fused and not any(forms.values()):
        return True
    if output is not None and not family.can_fuse(Fusion.of(output)):
        return False
    try:
        plan = make_plan(workload, config, arch, output, None, "fixed")
    except Unsupported:
        return False
    return all(forms.get(one.name, "") in ("", one.form) for one in plan.launch.arguments)


def _recorded(workload: ConvWorkload, arch: Arch, output: str | None) -> list[Choice]:
    """Measurements of the workload, fastest first, with its fused epilogue if that was measured. Another family's is
    included only if it is faster: a slower one is already the recommendation of its own landscape. For weights with a
    pattern of zeros, the best kernel of the other kind (skipping zeros or not) is included as well, because it was
    measured nowhere else."""
    best = recorded_fused().get(f"{workload.spec} {output}", recorded_best().get(workload.spec))
    if arch.name != RECORDED_ON:
        return []
    if best is None:
        near = between_shares(workload, recorded_best())
        return [Choice(one := family_of(config), config, f"{one.name} family, {text}", False) for config, text in near]
    generator = f", generator {best['generator'].split(',')[0]}"
    entries = [(best["microseconds"], config_from_dict(best["config"]), generator)]
    beside = [one for one in best.values() if isinstance(one, dict) and "microseconds" in one]  # of others
    faster = [
        one
        for one in beside
        if one["microseconds"] < best["microseconds"] or workload.precision.weights.sparsity != DENSE
    ]
    entries += [(one["microseconds"], config_from_dict(one["config"]), "") for one in faster]
    entries.sort(key=lambda entry: entry[0])
    found = []
    for microseconds, config, origin in entries:
        one = family_of(config)
        slower = [(time, _side(other, config)) for time, other, _ in entries if time > microseconds]
        slower_ones = "".join(f"; {name} needs {time:.2f} us" for time, name in slower)
        text = f"fastest measured configuration ({microseconds:.2f} us on {best['device']}{origin}{slower_ones})"
        found.append(Choice(one, config, f"{one.name} family, {text}", True, microseconds, str(best["device"])))
    return found


def _side(other: Configuration, beside: Configuration) -> str:
    """Describes a measured configuration in comparison with another one of the same workload."""
    if other.skips_zeros == beside.skips_zeros:
        return f"the {family_of(other).name} family's best"
    return "the best kernel that skips zeros" if other.skips_zeros else "the best dense kernel"


def _not_covered(workload: ConvWorkload, arch: Arch, family: str, failed: list[str]) -> Unsupported:
    why = failed[0] if failed else covered(workload, arch, family)
    alone = asked_families(family)
    if len(alone) > 1:
        return Unsupported(f"{workload.label} on {arch.name}: {why}")
    other = 'another family (family="auto", --family auto) may cover it'
    if alone[0].finds_zeros:
        other = "take another sparsity (2:4, blocks:0.25, dense)"
    return Unsupported(f"{workload.label} on {arch.name} in the {alone[0].name} family: {why}; {other}")
