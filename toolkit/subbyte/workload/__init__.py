"""What to compute: convolutions and matrix products, their operand types, named networks and free-form specs.

The package itself can be called: ``subbyte.workload("resnet50.stage2@8")`` also works after the module was imported
under its own name, which puts the module where the function was.
"""

import warnings
from importlib import import_module
from typing import Any

from subbyte.callable_package import make_callable
from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload, ceil_div
from subbyte.workload.linear import linear
from subbyte.workload.matmul import MatmulWorkload, gemm
from subbyte.workload.networks import DEFAULT_BATCH, LAYERS, NETWORKS, Layer
from subbyte.workload.operand import Encoding, Operand, encodings, register_encoding, unregister_encoding
from subbyte.workload.parse import WorkloadList, workload, workloads
from subbyte.workload.precision import INT4, Precision

__all__ = [
    "BATCH_GROUP",
    "CHANNEL_BLOCK",
    "DEFAULT_BATCH",
    "INT4",
    "LAYERS",
    "NETWORKS",
    "ConvWorkload",
    "Encoding",
    "Layer",
    "MatmulWorkload",
    "Operand",
    "Precision",
    "WorkloadList",
    "ceil_div",
    "encodings",
    "gemm",
    "linear",
    "register_encoding",
    "unregister_encoding",
    "workload",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name != "covered":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("subbyte.workload.covered is now subbyte.kernel.covered", DeprecationWarning, stacklevel=2)
    return import_module("subbyte.kernel.coverage").covered


make_callable(__name__, workload)
