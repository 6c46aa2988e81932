"""What kernels on bit planes take for granted about one-bit wgmma holds on a GPU: operands may begin at any 16 bytes,
with any distance that is not negative from one half of a row to the other and from eight rows to the next eight; and
full rate needs 32 columns with A in registers, 64 with A in shared memory."""

import sys
from pathlib import Path

import numpy as np
import pytest

from subbyte.device.latency_texts import chain_bytes, warpgroup_chain_text
from subbyte.gpu.launched import GpuKernel
from subbyte.kernel.nvrtc import compile_cubin
from subbyte.measure.latency.program import TimedProgram

sys.path.append(str(Path(__file__).parents[1] / "toolkit" / "emulator"))
from wgmma_cases import SHARED_BYTES, Wgmma

pytestmark = pytest.mark.gpu
BITS = "b1.b1.and.popc"
LEADING = (0, 16, 48, 128, 4144, 8304, 22000)
"""Bytes from one half of a row to the other."""
CORES = (0, 16, 48, 112, 144, 1104, 1600)
"""Bytes from eight rows to the next eight."""
CASES = [
    *(Wgmma(BITS, n, 0, False, 1, 16 * (i + 1), (leading, 128), (256, 272))
      for i, leading in enumerate(LEADING) for n in (8, 64)),
    *(Wgmma(BITS, n, 0, False, 1, 16 * (7 - i), (4144, 128), (cores, 272))
      for i, cores in enumerate(CORES) for n in (24, 64)),
    *(Wgmma(BITS, 64, 0, True, 1, 16 * i, (2048, 3104 + 16 * i), (144, 48 * i)) for i in range(1, 8)),
]  # fmt: skip
GROUP, TURNS = 32, 64


@pytest.fixture(autouse=True)
def _on_hopper(device):
    if device.info.arch != "sm_90a":
        pytest.skip(f"wgmma needs sm_90a, this GPU is {device.info.arch}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"n{case.n}-{case.offset}-{case.leading}-{case.cores}")
def test_any_distance_and_any_16_bytes_are_exact(device, case):
    assert max(case.leading) + 8 * max(case.cores) < SHARED_BYTES
    inputs, expected = case.operands(case.n)
    cubin, _ = compile_cubin(case.text(), "sm_90a")
    with GpuKernel(cubin, case.launch(), device) as kernel:
        np.testing.assert_array_equal(kernel.run(inputs)["Out"], expected)


def cycles(device, n, in_shared):
    """Of one instruction of ``n`` columns, two warpgroups of one multiprocessor taking turns."""
    cubin, _ = compile_cubin(warpgroup_chain_text(n, GROUP, True, in_shared, 2), "sm_90a")
    with TimedProgram(cubin, device, 256, chain_bytes(n)) as program:
        return program.cycles(TURNS).median / (2 * GROUP)


@pytest.mark.parametrize(
    ("in_shared", "columns", "law"),
    [
        (False, (8, 16, 32, 64, 128), lambda n: max(13, n / 2)),
        (True, (8, 32, 64, 128), lambda n: max(n / 2, 16 + n / 4)),
    ],
    ids=["A in registers", "A in shared memory"],
)
def test_columns_for_full_rate(device, in_shared, columns, law):
    """Measured 2026-11 on an H200 to 0.1 cycles; 4 % leave room for the ends of the loop."""
    found = {n: cycles(device, n, in_shared) for n in columns}
    assert all(abs(found[n] / law(n) - 1) < 0.04 for n in columns), found
    full = 64 if in_shared else 32
    slower = {n: cost / (n / 2) for n, cost in found.items()}
    assert all((slower[n] < 1.04) == (n >= full) for n in columns), slower
