"""``subbyte doctor``: what this machine can do, what it lacks, and what to install."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from subbyte.cache import VARIABLE, cache_bytes, cache_root, why_not_kept
from subbyte.cli.arguments import command_parser, emit
from subbyte.device import ARCHS
from subbyte.errors import MissingDependency, SubbyteError
from subbyte.gpu.driver import GpuInfo, detect
from subbyte.records.store import VARIABLE as STORE
from subbyte.records.store import Store, store_path

PINS = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
"""The only tested pair of versions: a newer ffi crashes during serialization."""

_OK, _NOTE, _MISSING = "ok", "note", "missing"


@dataclass(frozen=True)
class Check:
    """One line of the report. ``state`` is ``ok``, ``note`` (optional) or ``missing`` (essential)."""

    name: str
    state: str
    found: str
    advice: str = ""


def add_parser(subparsers: Any) -> None:
    """Add the arguments of ``subbyte doctor``."""
    command_parser(
        subparsers,
        "doctor",
        "Report what this machine can do: GPU, driver, compilers, native or emulated instructions, landscapes.",
        "subbyte doctor",
    )


def run(args: argparse.Namespace) -> int:
    """Print the report. 0 if kernels can be built and run (emulated without a GPU), 3 if something essential is
    missing."""
    report = examine()
    emit("doctor", report, args, _text(report))
    return MissingDependency.exit_code if report["missing"] else 0


def examine() -> dict[str, Any]:
    """The whole report as plain data: checks, GPUs, architectures, landscapes, cache."""
    gpus, why = _gpus()
    checks = [
        Check("python", _OK, platform.python_version()),
        *(_pinned(name) for name in PINS),
        _nvrtc(gpus),
        _gpu(gpus, why),
        _extra(gpus),
        _compiler(bool(gpus)),
        _optional("nvidia-cuda-nvdisasm", "machine code (SASS) is shown", "pip install 'subbyte[cuda13]' (or cuda12)"),
        _optional("nvidia-ml-py", "clocks and power are recorded", "pip install nvidia-ml-py"),
        _optional("xgboost", "the cost-model strategies run", "pip install xgboost"),
        *_kept(),
    ]
    missing = [check.name for check in checks if check.state == _MISSING]
    return {
        "ok": not missing,
        "missing": missing,
        "checks": [asdict(check) for check in checks],
        "gpus": [gpu.to_dict() for gpu in gpus],
        "architectures": [_architecture(name, gpus) for name in ARCHS],
        "landscapes": _landscapes(),
        "cache": _cache(),
        "store": _store(),
        "without_gpu": "building up to machine code, runs on the CPU, tuning and races on recorded "
        "landscapes, every notebook",
    }


def _gpus() -> tuple[list[GpuInfo], str]:
    try:
        return detect(), ""
    except SubbyteError as error:
        return [], str(error)


def _gpu(gpus: list[GpuInfo], why: str) -> Check:
    if not gpus:
        return Check("gpu", _NOTE, "none", why)
    shown = ", ".join(f"cuda:{gpu.ordinal} {gpu.name} ({gpu.arch}, {gpu.sms} SMs)" for gpu in gpus)
    unknown = sorted({gpu.arch for gpu in gpus} - set(ARCHS))
    if unknown:
        return Check("gpu", _NOTE, shown, f"no kernels for {', '.join(unknown)}; there are some for {', '.join(ARCHS)}")
    return Check("gpu", _OK, shown)


def _extra(gpus: list[GpuInfo]) -> Check:
    """Which CUDA extra fits the driver, and whether that one is installed."""
    installed = _version("cuda-bindings")
    if not gpus:
        return Check("cuda extra", _OK if installed else _NOTE, f"cuda-bindings {installed or 'not installed'}",
                     "any extra builds without a GPU: cuda13 or cuda12")  # fmt: skip
    supported = gpus[0].cuda_version
    driver = f"driver {gpus[0].driver_version or '(version unknown)'}, CUDA up to {supported}"
    fitting = fitting_extra(supported)
    if fitting is None:
        return Check("cuda extra", _NOTE, driver, "this driver is too old for kernels built with CUDA 12; update it")
    major = (installed or "0").split(".")[0]
    if installed and int(major) <= int(fitting[4:]):
        return Check("cuda extra", _OK, f"{driver}; cuda-bindings {installed}")
    return Check("cuda extra", _NOTE, f"{driver}; cuda-bindings {installed or 'not installed'}",
                 f"install the extra that fits: pip install 'subbyte[{fitting}]'")  # fmt: skip


def fitting_extra(cuda_version: str) -> str | None:
    """``cuda13`` or ``cuda12``: the newest extra whose kernels a driver with this CUDA version can load, else None."""
    major = int(cuda_version.partition(".")[0])
    return "cuda13" if major >= 13 else "cuda12" if major == 12 else None


def _pinned(name: str) -> Check:
    installed = _version(name)
    if installed == PINS[name]:
        return Check(name, _OK, installed)
    return Check(name, _MISSING, installed or "not installed", f"pip install {name}=={PINS[name]}")


def _nvrtc(gpus: list[GpuInfo]) -> Check:
    from subbyte.kernel.nvrtc import version

    try:
        return Check("nvrtc", _OK, version())
    except SubbyteError:
        extra = (fitting_extra(gpus[0].cuda_version) if gpus else None) or "cuda13"
        return Check("nvrtc", _MISSING, "not importable", f"pip install 'subbyte[{extra}]'")


def _compiler(have_gpu: bool) -> Check:
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++", "c++")):
        path = shutil.which(name)
        if path:
            return Check("c++ compiler", _OK, path)
    advice = "the emulator needs one: sudo apt-get install g++"
    return Check("c++ compiler", _NOTE if have_gpu else _MISSING, "none", advice)


def _optional(name: str, use: str, advice: str) -> Check:
    installed = _version(name)
    return Check(name, _OK, installed) if installed else Check(name, _NOTE, "not installed", f"with it {use}: {advice}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _architecture(name: str, gpus: list[GpuInfo]) -> dict[str, Any]:
    return {**ARCHS[name].described(), "here": any(gpu.arch == name for gpu in gpus)}


def _landscapes() -> list[str]:
    from subbyte.records.landscape import shipped

    return list(shipped())


def _kept() -> list[Check]:
    """A line for the report if built kernels cannot be cached."""
    why = why_not_kept()
    advice = f"every process rebuilds its kernels; set a folder of your own with {VARIABLE}"
    return [Check("kernel cache", _NOTE, why, advice)] if why else []


def _cache() -> dict[str, Any]:
    return {"folder": str(cache_root()), "bytes": cache_bytes()}


def _store() -> dict[str, Any]:
    """Where the user's own records are, and how many there are; ``problem`` says why they cannot be read."""
    try:
        path = store_path()
        count = len(Store(path).rows()) if path is not None else 0
    except SubbyteError as error:
        return {"file": os.environ.get(STORE) or "", "records": 0, "problem": str(error)}
    return {"file": str(path or ""), "records": count, "problem": ""}


def _text(report: dict[str, Any]) -> str:
    marks = {_OK: "ok", _NOTE: "--", _MISSING: "MISSING"}
    width = max(len(check["name"]) for check in report["checks"])
    lines = []
    for check in report["checks"]:
        lines.append(f"{marks[check['state']]:8}{check['name']:{width}}  {check['found']}")
        if check["advice"]:
            lines.append(" " * (10 + width) + check["advice"])
    lines += ["", "int4 matrix instructions"]
    for arch in report["architectures"]:
        here = "  <- this GPU" if arch["here"] else ""
        instructions = ARCHS[arch["name"]].instructions
        lines.append(f"  {arch['name']:8}{arch['gpus']:18}{arch['int4_instructions']} ({instructions}){here}")
    landscapes = ", ".join(report["landscapes"]) or "none"
    cache = report["cache"]
    lines += ["", f"recorded landscapes: {landscapes}"]
    lines.append(f"kernel cache: {cache['folder']} ({cache['bytes'] / 2**20:.1f} MiB)")
    store = report["store"]
    lines.append(f"own records: {store['problem'] or store['records']} ({store['file'] or 'none are kept'})")
    if report["missing"]:
        lines += ["", f"missing: {', '.join(report['missing'])}; see the advice above"]
    elif not report["gpus"]:
        lines += ["", f"works without a GPU: {report['without_gpu']}"]
    return "\n".join(lines)
