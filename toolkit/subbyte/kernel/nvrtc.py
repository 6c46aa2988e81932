"""CUDA text to cubin or PTX with NVRTC: no CUDA toolkit and no GPU needed."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from subbyte.errors import BuildFailed, MissingDependency

OPTIONS = ("-default-device", "--std=c++17", "--ptxas-options=-v", "--disable-warnings")
"""Options of every compilation, beside the architecture; part of the cache key."""


@cache
def _library() -> ModuleType:
    """The NVRTC bindings, once they and the library behind them have answered."""
    try:
        from cuda.bindings import nvrtc

        _check(nvrtc, nvrtc.nvrtcVersion()[0])
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingDependency(
            f"the CUDA run-time compiler (NVRTC) cannot be loaded ({error}); "
            "install it with: pip install 'subbyte[cuda13]' (or cuda12, to match the driver; see: subbyte doctor)"
        ) from error
    return nvrtc


def version() -> str:
    """Version of the NVRTC in use, such as ``13.0``. Raises MissingDependency."""
    nvrtc = _library()
    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def compile_cubin(text: str, arch: str) -> tuple[bytes, str]:
    """Machine code for ``arch`` (such as ``sm_90a``) and the compiler's report. Raises BuildFailed with its log."""
    cubin, _, log = compile_both(text, arch)
    return cubin, log


def compile_both(text: str, arch: str) -> tuple[bytes, str, str]:
    """Machine code for ``arch``, the PTX it was made from and the compiler's report. Raises BuildFailed."""
    (cubin, ptx), log = _compile(text, arch, "CUBIN", "PTX")
    return cubin, ptx.rstrip(b"\0").decode(), log


def compile_ptx(text: str, arch: str) -> str:
    """PTX for the virtual architecture of ``arch``. Raises BuildFailed with the compiler's log."""
    (ptx,), _ = _compile(text, arch.replace("sm_", "compute_"), "PTX")
    return ptx.rstrip(b"\0").decode()


def _compile(text: str, arch: str, *kinds: str) -> tuple[list[bytes], str]:
    nvrtc = _library()
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, None, None)
    _check(nvrtc, status)
    try:
        options = [f"--gpu-architecture={arch}".encode(), *(option.encode() for option in OPTIONS)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        buffer = bytearray(size)
        nvrtc.nvrtcGetProgramLog(program, buffer)
        log = buffer.rstrip(b"\0").decode(errors="replace").strip()
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise BuildFailed(f"NVRTC refused the kernel for {arch}: {log[:2000]}")
        return [_result(nvrtc, program, kind) for kind in kinds], log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _result(nvrtc: ModuleType, program: object, kind: str) -> bytes:
    """What was compiled, as CUBIN or as PTX."""
    status, size = getattr(nvrtc, f"nvrtcGet{kind}Size")(program)
    _check(nvrtc, status)
    data = bytearray(size)
    (status,) = getattr(nvrtc, f"nvrtcGet{kind}")(program, data)
    _check(nvrtc, status)
    return bytes(data)


def _check(nvrtc: ModuleType, status: object) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildFailed(f"NVRTC failed: {status}")
