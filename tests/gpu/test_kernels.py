"""Every prebuilt kernel against the exact reference, on random operands and on ones meant to break it.

The work is done in a process of its own with a time limit: a kernel that never ends costs one test.
"""

import checks
import numpy as np
import pytest
from shipped_cases import SHIPPED

from subbyte.errors import SubbyteError
from subbyte.gpu.launched import GpuKernel
from subbyte.measure.case import Case
from subbyte.numerics import Requantization

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]


def wanted(entry):
    """All but the shipped ones, which are large (test_shipped.py)."""
    return entry["name"] not in (*SHIPPED, "default")


def test_every_element_equals_the_reference(kernel, guarded):
    compared, problems = guarded(
        checks.every_element, kernel.workload, kernel.cubin, kernel.launch, kernel.clip, timeout=60.0
    )
    assert not problems
    assert compared >= 9


def test_a_kernel_that_never_ends_costs_one_test(folder, guarded, first):
    spin = (folder / "spin.cubin").read_bytes()
    with pytest.raises(SubbyteError, match=r"did not end within|did not answer within"):
        guarded(checks.every_element, first.workload, spin, first.launch, first.clip, timeout=30.0)


def test_a_wrong_expectation_is_noticed(first, device):
    case = Case(first.workload, requant=None)
    case.requant = Requantization(case.requant.bias, case.requant.multiplier, case.requant.shift, first.clip)
    with GpuKernel(first.cubin, first.launch, device) as gpu:
        out = gpu.run({argument.name: case.operand(argument) for argument in gpu.inputs})["Out"]
        assert case.check(out, gpu.outputs[0]).ok
        word = out.reshape(-1)
        word[0] ^= np.uint32(1)
        assert case.check(out, gpu.outputs[0]).wrong == 1
