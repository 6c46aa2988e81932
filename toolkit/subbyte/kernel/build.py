"""From workload and configuration to machine code, through two caches: plan to CUDA text, text to cubin."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from subbyte.arguments import one_of
from subbyte.cache import cache_folder, read_cached, write_cached
from subbyte.numerics.requant import check_clip
from subbyte.device.arch import Arch
from subbyte.device.arch import arch as arch_named
from subbyte.errors import BuildFailed, InvalidInput, MissingDependency, Unsupported, shown
from subbyte.kernel import nvrtc
from subbyte.families.wgmma.faults import fault, wrapped_indices
from subbyte.kernel.recommended import recommended_text
from subbyte.kernel.resources import Resources, read_resources
from subbyte.families.mma.config import ConvConfig
from subbyte.families.mma.plan import Plan
from subbyte.families.wgmma.config import WarpgroupConfig
from subbyte.families.wgmma.plan import WarpgroupPlan
from subbyte.workload.conv import ConvWorkload

AnyPlan = Plan | WarpgroupPlan
OUTPUTS = ("int4", "int32")
SERIALIZED = re.compile(r"wgmma\.mma_async instructions are serialized(?: due to (.*?) (?:in|for) the function)?")
"""What the CUDA assembler says when it waits behind every wgmma, with its reason (messages C7510 to C7520)."""
WRAPPED = "subbyte: index in too few bits:"
"""How the lines begin that are added to the compiler's report where its PTX holds such a fault."""
LESS = "choose fewer rows, less unroll, load_ahead=1, weight_ring=0, weights_ahead=0 or in_flight=1"
REQUANT_FORMS = ("fixed", "general")


def make_plan(workload: Any, config: Any, arch: Arch | str, output: str, clip: Any, requant: str) -> AnyPlan:
    """The plan of a request, checked. Raises InvalidInput, and Unsupported with the reason when it cannot be built."""
    from subbyte.families.mma.rules import why_not
    from subbyte.families.wgmma.rules import why_not_warpgroup

    one_of(output, "output", OUTPUTS)
    one_of(requant, "requant", REQUANT_FORMS)
    if not isinstance(config, (ConvConfig, WarpgroupConfig)):
        raise InvalidInput(
            f"config is {type(config).__name__}: expected a ConvConfig, such as ConvConfig(chunk=2), or a "
            "WarpgroupConfig"
        )
    if not isinstance(workload, ConvWorkload):
        raise InvalidInput(f"workload={shown(workload)}: expected a ConvWorkload, as subbyte.workload(NAME) gives")
    target = arch if isinstance(arch, Arch) else arch_named(arch)
    ends = check_clip(clip)
    plan: AnyPlan
    if isinstance(config, WarpgroupConfig):
        plan = WarpgroupPlan(workload, config, target, output, ends, requant)
        reason = why_not_warpgroup(plan)
    else:
        plan = Plan(workload, config, target, output, ends, requant)
        reason = why_not(plan)
    if reason is not None:
        raise Unsupported(f"{workload} with {config.key} on {target.name} cannot be built: {reason}")
    return plan


def cuda_text(plan: AnyPlan) -> str:
    """The CUDA C++ text of a plan, from the cache or through TVM."""
    path = cache_folder("kernels") / f"{_plan_key(plan)}.cu"
    cached = read_cached(path)
    if cached is not None:
        return cached.decode()
    try:
        from subbyte.kernel import lower
    except ImportError as error:
        kept = recommended_text(plan)
        if kept is None:
            raise MissingDependency(
                f"TVM cannot be loaded ({error}); without it only recommended configurations can be built. "
                "Install it with: pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"
            ) from error
        return kept
    try:
        function = lower.tir(plan)
    except Exception as error:  # TVM's parser wraps what a kernel's generator raises, and hides it from the reader
        reason = (str(error) or type(error).__name__).splitlines()[0]
        said = f"{plan.workload} with {plan.config.key}: the kernel's text cannot be formed ({reason})"
        raise BuildFailed(f"{said}; other values of its knobs may do") from error
    text = lower.cuda(plan, function)
    write_cached(path, text.encode())
    return text


def tir_text(plan: AnyPlan) -> str:
    """The TIRx script of a plan."""
    from subbyte.kernel import lower

    return str(lower.tir(plan).script())


def machine_code(plan: AnyPlan, text: str) -> tuple[bytes, Resources]:
    """Cubin and resources of a CUDA text for the plan's architecture, from the cache or through NVRTC."""
    content = json.dumps([text, plan.arch.name, nvrtc.OPTIONS, nvrtc.version()])
    stem = hashlib.sha256(content.encode()).hexdigest()[:32]
    cubin_path, log_path = (cache_folder("kernels") / f"{stem}.{suffix}" for suffix in ("cubin", "log"))
    cubin, log = read_cached(cubin_path), read_cached(log_path)
    if cubin is None or log is None:
        cubin, ptx, report = nvrtc.compile_both(text, plan.arch.name)
        wrapped = wrapped_indices(ptx) if isinstance(plan, WarpgroupPlan) else []
        log = "\n".join([report, *(f"{WRAPPED} {line}" for line in wrapped)]).encode()
        write_cached(cubin_path, cubin)
        write_cached(log_path, log)
    resources = read_resources(log.decode(), plan.arch, plan.config.threads, plan.shared_bytes)
    if isinstance(plan, WarpgroupPlan):
        reason = _why_refused(cubin, log.decode(), resources)
        if reason is not None:
            raise BuildFailed(f"{plan.workload} with {plan.config.key}: {reason}")
    return cubin, resources


def _why_refused(cubin: bytes, log: str, resources: Resources) -> str | None:
    """Why a kernel of the warpgroup family is not handed out, although it was compiled; None when it is."""
    serialized = SERIALIZED.search(log)
    if serialized:
        return (
            f"the compiler serialized the wgmma instructions ({serialized[1] or 'no reason given'}), which makes them "
            f"several times slower; {LESS}"
        )
    if resources.local_bytes:
        return f"the compiler put {resources.local_bytes} bytes of a thread into local memory; {LESS}"
    if WRAPPED in log:
        return "the compiler computes an index in too few bits; choose another tile_rows, channel_groups or load_ahead"
    reason = fault(cubin)
    return reason and f"{reason}; choose another tile_rows, ring or load_ahead"


def _plan_key(plan: AnyPlan) -> str:
    """Digest of everything the CUDA text depends on: the plan, the generator's own source and TVM's version."""
    fields = [
        plan.workload.spec, plan.config.to_dict(), asdict(plan.arch), plan.output, plan.clip, plan.requant,
        plan.launch.to_dict(),
        _generator(), _version("apache-tvm"), _version("apache-tvm-ffi"),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:32]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _generator() -> str:
    """Digest of the source files that decide the generated text."""
    here = Path(__file__).parent
    files = [here / "lower.py", here.parent / "workload" / "conv.py"]
    for folder in (here / "tirx", here.parent / "schedule"):
        files += sorted(folder.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
