"""CUDA text to cubin or PTX with NVRTC: no CUDA toolkit and no GPU needed.

cuda-core holds the program and makes machine code; the version, and PTX, come from ``cuda.bindings``: cuda-core does
not expose the former, and for PTX it needs the driver, which a machine without a GPU does not have.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from subbyte.errors import BuildFailed, MissingDependency

if TYPE_CHECKING:
    from cuda.core import Program

OPTIONS = {
    "std": "c++17", "device_as_default_execution_space": True, "ptxas_options": "-v", "disable_warnings": True,
    "no_cache": True,  # a hit in the compiler's own cache comes without a report
}  # fmt: skip
"""Options of every compilation, besides the architecture; part of the cache key."""


@cache
def _library() -> ModuleType:
    """The NVRTC bindings, after checking that they, the library and cuda-core can be loaded."""
    try:
        import cuda.core  # noqa: F401
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


def compile_ptx(text: str, arch: str) -> str:
    """The PTX from which the machine code for ``arch`` is made, without making the machine code. Raises BuildFailed
    with the compiler's log."""
    nvrtc = _library()
    program, options = _program(text, f"compute_{arch.removeprefix('sm_')}")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program.handle, len(options), options)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _text_of(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, nvrtc, program)
            raise _refused(arch, log.strip() or str(status))
        return _text_of(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, nvrtc, program)
    finally:
        program.close()


def compile_both(text: str, arch: str) -> tuple[bytes, str, str]:
    """Machine code for ``arch``, the PTX it was made from and the compiler's report. Raises BuildFailed."""
    nvrtc = _library()
    program, _ = _program(text, arch)
    log = io.StringIO()
    try:
        cubin = bytes(program.compile("cubin", logs=log).code)
        ptx = _text_of(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, nvrtc, program)
        return cubin, ptx, log.getvalue().rstrip("\0").strip()
    except Exception as error:  # cuda-core has no public class for NVRTC's errors
        if "NVRTC_ERROR" not in str(error):
            raise
        reason = str(error).partition("compilation log:")[2].rstrip("\0").strip() or str(error)
        raise _refused(arch, reason) from None
    finally:
        program.close()


def _program(text: str, arch: str) -> tuple[Program, list[bytes]]:
    """A program before compilation, and the compiler options for it."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(name="kernel.cu", arch=arch, **OPTIONS)
    return Program(text, "c++", options), options.as_bytes("nvrtc")


def _refused(arch: str, reason: str) -> BuildFailed:
    return BuildFailed(f"NVRTC refused the kernel for {arch}: {reason[:2000]}")


def _text_of(
    size_of: Callable[[object], tuple[object, int]], get: Callable[[object, bytearray], tuple[object]],
    nvrtc: ModuleType, program: Program,
) -> str:  # fmt: skip
    """A text that NVRTC holds for a program."""
    status, size = size_of(program.handle)
    _check(nvrtc, status)
    data = bytearray(size)
    (status,) = get(program.handle, data)
    _check(nvrtc, status)
    return data.rstrip(b"\0").decode()


def _check(nvrtc: ModuleType, status: object) -> None:
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise BuildFailed(f"NVRTC failed: {status}")
