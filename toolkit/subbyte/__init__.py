"""subbyte: see, build, run and tune sub-byte convolutions on NVIDIA Tensor Cores.

Importing this package loads neither TVM nor a GPU library; each public name loads what it needs on first use.
"""

from __future__ import annotations

from importlib import import_module

from subbyte.renamed import former_name, know_old_names

TYPE_CHECKING = False  # the command line starts here: until the imports above are done, Ctrl-C is not handled
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_HOME = {
    "ConvWorkload": "subbyte.workload",
    "BitsConfig": "subbyte.families",
    "RingConfig": "subbyte.families",
    "BmmaConfig": "subbyte.families",
    "MmaConfig": "subbyte.families",
    "PipelineConfig": "subbyte.families",
    "PopcConfig": "subbyte.families",
    "SingleTileConfig": "subbyte.families",
    "workload": "subbyte.workload",
    "gemm": "subbyte.workload",
    "linear": "subbyte.workload",
    "Operand": "subbyte.workload",
    "Precision": "subbyte.workload",
    "workloads": "subbyte.workload",
    "Requantization": "subbyte.numerics",
    "Thresholds": "subbyte.numerics",
    "reference": "subbyte.numerics",
    "duplicates": "subbyte.technique",
    "packing_program": "subbyte.technique",
    "tiling": "subbyte.technique",
    "accesses": "subbyte.technique",
    "fragments": "subbyte.technique",
    "space": "subbyte.families",
    "build": "subbyte.kernel",
    "compile": "subbyte.measure.tries",
    "Kernel": "subbyte.kernel",
    "Chain": "subbyte.kernel",
    "Pooling": "subbyte.kernel",
    "load_chain": "subbyte.kernel",
    "conv2d": "subbyte.kernel",
    "network": "subbyte.networks",
    "Study": "subbyte.tune",
    "tune": "subbyte.tune",
    "parameter_space": "subbyte.tune",
    "objective": "subbyte.measure.objective",
    "landscape": "subbyte.tune",
    "race": "subbyte.analysis",
    "origin": "subbyte.analysis",
    "speed_of_light": "subbyte.analysis",
    "roofline": "subbyte.analysis",
}
_PACKAGES = ("sparse",)
"""Packages whose many names are reached through the package, as in ``subbyte.sparse.encode``."""
__all__ = sorted([*_HOME, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _PACKAGES:
        return import_module(f"subbyte.{name}")
    return former_name(__name__, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


know_old_names()
