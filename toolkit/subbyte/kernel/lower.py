"""From a plan to CUDA text, through TVM TIRx. The only module that drives TVM's passes."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.backend.cuda import transforms as cuda_transforms
from tvm.tirx import compilation_pipeline, transform

from subbyte.errors import BuildFailed
from subbyte.kernel.tirx.conv import conv_kernel
from subbyte.schedule.plan import Plan

PIPELINE = "subbyte"


def tir(plan: Plan) -> Any:
    """The TIRx function of a plan."""
    return conv_kernel(plan)


def cuda(plan: Plan, function: Any) -> str:
    """CUDA C++ text of a TIRx function for the plan's architecture. Raises BuildFailed with TVM's reason."""
    target = tvm.target.Target({"kind": "cuda", "arch": plan.arch.name}, host="llvm")
    try:
        # Loops stay loops (``#pragma unroll``): the text is read by people, and the CUDA compiler unrolls it anyway.
        with target, tvm.transform.PassContext(config={"tirx.UnrollLoop": {"explicit_unroll": False}}):
            module = tvm.tirx.build(tvm.IRModule({"main": function}), target=target, pipeline=PIPELINE)
    except (tvm.error.TVMError, tvm.error.DiagnosticError, ValueError, TypeError) as error:
        raise BuildFailed(f"TVM could not lower {plan.config.key} for {plan.workload}: {error}") from error
    return _without_boilerplate(module.imports[0].inspect_source())


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
_END_OF_BOILERPLATE = "#define ushort unsigned short"


def _without_boilerplate(text: str) -> str:
    """TVM's text without its include block, so that it compiles without any header, and in 0.4 s instead of 1.1 s."""
    start = text.index("#endif", text.index(_END_OF_BOILERPLATE)) + len("#endif")
    return _PRELUDE + text[start:].strip() + "\n"
