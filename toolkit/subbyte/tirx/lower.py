"""From a TIRx function to CUDA text. The only module that drives TVM's passes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from subbyte.device.launch import Launch
from subbyte.errors import BuildFailed
from subbyte.tirx.load import compilation_pipeline, cuda_transforms, transform, tvm, tvm_ffi

PIPELINE = "subbyte"
_COMPILE = "tvm_callback_cuda_compile"
_BUILDING = threading.Lock()
"""One lock: the callback is shared by the whole process."""


def cuda(function: Any, arch: str, launch: Launch, what: str) -> str:
    """CUDA C++ text of a TIRx function for an architecture. ``what`` names the kernel in errors.

    Raises BuildFailed with TVM's reason."""
    # The host code is thrown away: generating C takes a millisecond, LLVM takes longer than all passes.
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="c")
    # Loops stay loops (``#pragma unroll``): the text is read by people, and the CUDA compiler unrolls it anyway.
    options = {"tirx.UnrollLoop": {"explicit_unroll": False}}
    with _texts_only() as texts, target, tvm.transform.PassContext(config=options):
        try:
            module = tvm.tirx.build(tvm.IRModule({"main": function}), target=target, pipeline=PIPELINE)
        except Exception as error:  # TVM raises errors of many classes; after the text is collected, they do not matter
            if not texts:
                reason = f"{type(error).__name__}: {error}"[:2000]
                raise BuildFailed(f"TVM could not lower {what}: {reason}") from error
    text = _without_boilerplate(texts[0] if texts else module.imports[0].inspect_source())
    return _in_clusters(text, launch)


@contextmanager
def _texts_only() -> Iterator[list[str]]:
    """Collect the texts that TVM would compile, and keep it from compiling them.

    If TVM finds a GPU, it compiles what it generates with the machine's CUDA toolkit; without a toolkit it fails.
    subbyte compiles the text itself, in the same way everywhere.
    """
    texts: list[str] = []

    def collect(code: str, *_: Any) -> bytes:
        texts.append(code)
        return code.encode()

    with _BUILDING:
        before = tvm.get_global_func(_COMPILE, allow_missing=True)
        tvm_ffi.register_global_func(_COMPILE, collect, override=True)
        try:
            yield texts
        finally:
            if before is not None:
                tvm_ffi.register_global_func(_COMPILE, before, override=True)


def _pipeline() -> Any:
    """TVM's TIRx pipeline without simplification and common-subexpression elimination: both inline or split the
    named values of the kernel, and the CUDA compiler does the same work better."""
    passes = [
        transform.LowerTIRx(),
        tvm.s_tir.transform.UnifyThreadBinding(),
        transform.LowerTIRxOpaque(),
        transform.FlattenBuffer(),
        transform.NarrowDataType(32),
        transform.VectorizeLoop(True),
        transform.UnrollLoop(),
        transform.VerifyMemory(),
        transform.AnnotateEntryFunc(),
        transform.SplitHostDevice(),
        cuda_transforms.LowerIket(),
        transform.MakePackedAPI(),
    ]

    @tvm.transform.module_pass(opt_level=0)
    def run(module: tvm.ir.IRModule, _context: tvm.transform.PassContext) -> tvm.ir.IRModule:
        return tvm.ir.transform.Sequential(passes)(module)

    finalize_host = compilation_pipeline.finalize_host_passes
    return run, finalize_host, compilation_pipeline.finalize_device_passes_tirx


compilation_pipeline.register_tir_pipeline(PIPELINE, _pipeline)

_PRELUDE = """\
#ifdef __CUDACC_RTC__
typedef unsigned int uint;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
#else
#include <cstdint>
#endif
"""
_SHORT = """\
typedef unsigned short ushort;
typedef unsigned short uint16_t;
"""
_END_OF_BOILERPLATE = "#define ushort unsigned short"


def _in_clusters(text: str, launch: Launch) -> str:
    """The text with the cluster size added to its kernel, for which TIRx has no attribute."""
    if launch.cluster == 1:
        return text
    return text.replace(f") {launch.entry}(", f") __cluster_dims__({launch.cluster}, 1, 1) {launch.entry}(")


def _without_boilerplate(text: str) -> str:
    """TVM's text without its include block, so that it compiles without any header, in 0.4 s instead of 1.1 s."""
    start = text.index("#endif", text.index(_END_OF_BOILERPLATE)) + len("#endif")
    body = text[start:].strip() + "\n"
    if "uint16_t" in body or "ushort" in body:  # the mask of a multicast; numbers of 16 bits
        return _PRELUDE.replace("typedef int int32_t;", _SHORT + "typedef int int32_t;") + body
    return _PRELUDE + body
