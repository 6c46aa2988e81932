"""Counting by kinds of blocks gives what counting every block gives."""

import shutil

import pytest

from benchmarks.paper import mechanism
from subbyte.emulator.trace import without_repeated_loads
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.plan import plan
from subbyte.kernel import Kernel
from subbyte.workload import ConvWorkload


@pytest.mark.deep
@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="needs g++ or clang++")
@pytest.mark.parametrize("switches", [("full", True, "nhwcnc"), ("none", False, "nhwc")])
def test_kinds_of_blocks_stand_for_all_blocks(switches):
    sharing, packing, layout = switches
    config = MmaConfig(1, 1, 4, 2, duplicate_aware=sharing, register_packing=packing, layout=layout)
    planned = plan(ConvWorkload(8, 4, 8, 32, 32, 3, 3, 1), config, "sm_90a")
    kinds = mechanism.block_kinds(planned)
    blocks = planned.launch.grid[0] * planned.launch.grid[1]
    assert sum(number for _, number in kinds.values()) == planned.launch.grid[0] > len(kinds)
    trace = without_repeated_loads(Kernel(planned).trace(tuple(range(blocks))).trace)
    every = [mechanism.block_counts(trace[trace["block"] == block]) for block in range(blocks)]
    assert mechanism.launch_counts(planned) == {name: sum(one[name] for one in every) for name in every[0]}
    assert (every[0]["shuffles"] > 0) == packing
