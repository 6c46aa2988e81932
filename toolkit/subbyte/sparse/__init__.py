"""Dual-side sparsity as proposed by Wang et al. 2021 (arXiv 2105.09564): the exact function and the cycle model.

The unit skips zeros of both operands. No GPU has it: this package defines what it computes, bit by bit, and how many of
its own cycles it would take, not microseconds. On existing GPUs, unstructured sparsity mostly loses.
"""

import warnings
from typing import Any

from subbyte.sparse.bars import LayerBars, MeasuredLayer, layer_bars, read_measured
from subbyte.sparse.bitmap import CondensedVector, TwoLevelBitmap, encode
from subbyte.sparse.compact import Compacted, compact
from subbyte.sparse.convolution import SparseConvolution, convolve
from subbyte.sparse.evaluate import Cycles, Traffic
from subbyte.sparse.figures import Experiment, Figures, figures
from subbyte.sparse.lowering import LoweredColumn, RowLowering, row_lowering
from subbyte.sparse.machines import MACHINES, Machine, machine
from subbyte.sparse.maps import BreakEven, LayerDot, SpeedMap, speed_map
from subbyte.sparse.networks import NetworkCycles, network
from subbyte.sparse.patterns import check_live_blocks, check_nm, prune, random_matrix
from subbyte.sparse.product import SparseProduct, count, spgemm
from subbyte.sparse.profiles import Profile, Profiles, profile
from subbyte.sparse.recorded import read_figures, write_figures
from subbyte.sparse.rows import im2col
from subbyte.sparse.shapes import NETWORK_NAMES, network_layers
from subbyte.sparse.simulation import BASELINES, Simulation, Speedups, simulate
from subbyte.sparse.software import PATHS, Software, SoftwareGain, read_lowering, read_software
from subbyte.sparse.stepping import TileSteps, layer_tile, tile_steps
from subbyte.sparse.surfaces import Surface, surface
from subbyte.sparse.trace import REASONS, Counts, Step

__all__ = [
    "BASELINES",
    "MACHINES",
    "NETWORK_NAMES",
    "PATHS",
    "REASONS",
    "BreakEven",
    "Compacted",
    "CondensedVector",
    "Counts",
    "Cycles",
    "Experiment",
    "Figures",
    "LayerBars",
    "LayerDot",
    "LoweredColumn",
    "Machine",
    "MeasuredLayer",
    "NetworkCycles",
    "Profile",
    "Profiles",
    "RowLowering",
    "Simulation",
    "Software",
    "SoftwareGain",
    "SparseConvolution",
    "SparseProduct",
    "SpeedMap",
    "Speedups",
    "Step",
    "Surface",
    "TileSteps",
    "Traffic",
    "TwoLevelBitmap",
    "check_live_blocks",
    "check_nm",
    "compact",
    "convolve",
    "count",
    "encode",
    "figures",
    "im2col",
    "layer_bars",
    "layer_tile",
    "machine",
    "network",
    "network_layers",
    "profile",
    "prune",
    "random_matrix",
    "read_figures",
    "read_lowering",
    "read_measured",
    "read_software",
    "row_lowering",
    "simulate",
    "speed_map",
    "spgemm",
    "surface",
    "tile_steps",
    "write_figures",
]


def __getattr__(name: str) -> Any:
    if name != "MatrixProduct":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from subbyte.workload import MatmulWorkload, gemm

    def product(m: int, n: int, k: int, name: str = "") -> MatmulWorkload:
        return gemm(m, n, k, name=name)

    warnings.warn("subbyte.sparse.MatrixProduct is now subbyte.gemm(m, n, k)", DeprecationWarning, stacklevel=2)
    return product
