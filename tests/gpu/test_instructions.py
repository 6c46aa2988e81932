"""What the emulator takes for granted about wgmma holds on a GPU: fragments, layouts of descriptors, kinds."""

import sys
from pathlib import Path

import numpy as np
import pytest

from subbyte.gpu.launched import GpuKernel
from subbyte.kernel.nvrtc import compile_cubin

sys.path.append(str(Path(__file__).parents[1] / "toolkit" / "emulator"))
from wgmma_cases import CASES

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_multiplication(device, case):
    if device.info.arch != "sm_90a":
        pytest.skip(f"wgmma needs sm_90a, this GPU is {device.info.arch}")
    inputs, expected = case.operands(case.n)
    cubin, _ = compile_cubin(case.text(), "sm_90a")
    with GpuKernel(cubin, case.launch(), device) as kernel:
        np.testing.assert_array_equal(kernel.run(inputs)["Out"], expected)
