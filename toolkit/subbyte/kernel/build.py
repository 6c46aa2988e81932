"""From workload and configuration to machine code, with two caches: plan to CUDA text, and CUDA text to cubin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from subbyte.arguments import one_of
from subbyte.cache import cache_folder, read_cached, write_cached
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency, Unsupported, shown
from subbyte.families.base import Plan
from subbyte.families.registry import family_named, family_names, family_of, who_fuses
from subbyte.kernel import nvrtc
from subbyte.kernel.recommended import recommended_text
from subbyte.kernel.resources import Resources, read_resources
from subbyte.numerics.fusion import SEPARATOR, Fusion, base_of
from subbyte.numerics.requant import check_clip
from subbyte.records.launches import SplitLaunches
from subbyte.workload.conv import ConvWorkload

REQUANT_FORMS = ("fixed", "general")


def make_plan(workload: Any, config: Any, arch: Arch | str, output: str | None, clip: Any, requant: str) -> Plan:
    """The checked plan for a request. ``output`` and ``clip`` default to the workload's output type and its full range.

    Raises InvalidInput, or Unsupported with the reason when the kernel cannot be built.
    """
    one_of(requant, "requant", REQUANT_FORMS)
    family = family_of(config)
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload={shown(workload)}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    types = workload.precision
    given = types.output.name if output is None else output
    fused = ""
    if SEPARATOR in str(given):
        given, fused = base_of(given), Fusion.of(given).text
    one_of(given, "output", types.outputs)
    ends = (types.output.least, types.output.largest) if clip is None else check_clip(clip, types.output)
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    fusion = Fusion.of(given + fused)
    plan = family.plan(workload, config, target, given + fused, ends, requant)
    reason = family.check(plan) if family.can_fuse(fusion) else f"output: {who_fuses(fusion)}"
    if reason is not None:
        raise Unsupported(f"{workload} with {config.key} on {target.name} cannot be built: {reason}")
    return plan


def part_plans(
    workload: ConvWorkload, config: Any, arch: Arch | str, output: str | None, clip: Any, requant: str
) -> list[Plan]:
    """The plans of the launches that compute a workload, in order: one but for a :class:`SplitLaunches`. Raises as
    :func:`make_plan`."""
    if not isinstance(config, SplitLaunches):
        return [make_plan(workload, config, arch, output, clip, requant)]
    if sum(config.images) != workload.n:
        raise InvalidInput(f"{config.key!r:.200}: these are not the {workload.n} images of {workload}")
    parts = zip(config.images, config.configs, strict=True)
    return [make_plan(replace(workload, n=n, name=""), one, arch, output, clip, requant) for n, one in parts]


def cuda_text(plan: Plan) -> str:
    """The CUDA C++ text of a plan, from the cache or generated with TVM."""
    path = cache_folder("kernels") / f"{_plan_key(plan)}.cu"
    cached = read_cached(path)
    if cached is not None:
        return cached.decode()
    try:
        import subbyte.tirx.load  # noqa: F401
    except ImportError as error:
        kept = recommended_text(plan)
        if kept is None:
            raise MissingDependency(
                f"TVM cannot be loaded ({error}); without it only recommended configurations can be built. "
                "Install it with: pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"
            ) from error
        return kept
    text = generated_text(plan)
    write_cached(path, text.encode())
    return text


def generated_text(plan: Plan) -> str:
    """The CUDA C++ text of a plan, always generated anew with TVM. Raises BuildFailed with the reason."""
    from subbyte.tirx import lower

    try:
        function = family_of(plan.config).emit(plan)
    except Exception as error:  # TVM's parser wraps what a kernel's emitter raises, which hides it from the reader
        reason = (str(error) or type(error).__name__).splitlines()[0]
        said = f"{plan.workload} with {plan.config.key}: the kernel's text cannot be formed ({reason})"
        raise BuildFailed(f"{said}; other values of its knobs may work") from error
    return lower.cuda(function, plan.arch.name, plan.launch, f"{plan.config.key} for {plan.workload}")


def tir_text(plan: Plan) -> str:
    """The TIRx script of a plan, from the cache or generated with TVM."""
    return _kept(f"{_plan_key(plan)}.tir", lambda: str(family_of(plan.config).emit(plan).script()))


def ptx_text(text: str, arch: str) -> str:
    """The PTX for a CUDA text, from the cache or NVRTC. Raises BuildFailed."""
    return _kept(f"{_text_key(text, arch)}.ptx", lambda: nvrtc.compile_ptx(text, arch))


def _kept(name: str, make: Callable[[], str]) -> str:
    """A text from the cache, made and stored there if it is missing. Only for texts that a person asks to read: they
    take space."""
    path = cache_folder("kernels") / name
    cached = read_cached(path)
    if cached is not None:
        return cached.decode()
    text = make()
    write_cached(path, text.encode())
    return text


def machine_code(plan: Plan, text: str) -> tuple[bytes, Resources]:
    """Cubin and resources of a CUDA text for the plan's architecture, from the cache or NVRTC."""
    family = family_of(plan.config)
    cubin, log = compiled(text, plan.arch.name, family.report)
    resources = read_resources(log, plan.arch, plan.launch.block[0], plan.shared_bytes)
    reason = family.refused(cubin, log, resources.local_bytes)
    if reason is not None:
        raise BuildFailed(f"{plan.workload} with {plan.config.key}: {reason}")
    return cubin, resources


def compiled(text: str, arch: str, more: Callable[[str], list[str]] = lambda ptx: []) -> tuple[bytes, str]:
    """Cubin and compiler report for a CUDA text, from the cache or NVRTC; ``more`` derives extra report lines from the
    PTX. Raises BuildFailed."""
    stem = _text_key(text, arch)
    cubin_path, log_path = (cache_folder("kernels") / f"{stem}.{suffix}" for suffix in ("cubin", "log"))
    cubin, log = read_cached(cubin_path), read_cached(log_path)
    if cubin is None or log is None:
        cubin, ptx, report = nvrtc.compile_both(text, arch)
        log = "\n".join([report, *more(ptx)]).encode()
        write_cached(cubin_path, cubin)
        write_cached(log_path, log)
    return cubin, log.decode()


def _text_key(text: str, arch: str) -> str:
    """Digest of everything that machine code depends on: the CUDA text, the architecture and the compiler."""
    content = json.dumps([text, arch, nvrtc.OPTIONS, nvrtc.version()])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _plan_key(plan: Plan) -> str:
    """Digest of everything the CUDA text depends on: the plan, the generator's own source and TVM's version."""
    fields = [
        plan.workload.spec, plan.config.to_dict(), asdict(plan.arch), plan.output, plan.clip, plan.requant,
        plan.launch.to_dict(),
        generator_digest(family_of(plan.config).name), version_of("apache-tvm"), version_of("apache-tvm-ffi"),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:32]


def generator(*families: str) -> str:
    """The generator of the CUDA texts of some families as records name it: the digest of their sources and TVM's
    version."""
    return f"{generator_digest(*families)[:16]} tvm {version_of('apache-tvm') or 'none'}"


def version_of(package: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def generator_digest(*names: str) -> str:
    """Digest of the source files that determine the kernel text of the named families; without names, of all
    families."""
    package = Path(__file__).parents[1]
    what = [package / "workload" / name for name in ("conv.py", "operand.py", "precision.py")]
    places = [package / "tirx", *what, package / "families" / "shared"]
    files = []
    sources = (place for name in names or family_names() for place in family_named(name).sources)
    for place in (*places, *sources):
        files += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
