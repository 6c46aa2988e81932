"""Prebuilt kernels of the warpgroup family: the same, right bits in every run, alone and one behind the other.

The right bits come from a plain kernel on the same GPU (direct_convolution.cu), which is itself compared with the CPU's
reference. Everything runs in a process of its own with a time limit: a kernel that waits for ever costs one test.
"""

import checks
import pytest
from prebuilt import named

from subbyte.records.describe import workload_from_dict
from subbyte.workload import workload

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(120)]
RUNS = 1000


def wanted(entry):
    """The warpgroup family's, with int4 values in the packed layout behind them."""
    forms = {argument["name"]: argument["form"] for argument in entry["launch"]["arguments"]}
    if workload_from_dict(entry["workload"]).precision.activations.bits != 4:  # the plain kernel multiplies int4 values
        return False
    return entry["output"] == "int4" and forms["Wt"].startswith("warpgroup") and forms["Out"] == "nhwcnc"


@pytest.mark.parametrize(
    "spec", ["n9h5w7c40k40r3s3p1", "n8h7w9c64k96r3s3p1u2", "n3h11w5c3k64r7s7p3", "n8h6w6c96k64r3s3p2d2"]
)
def test_the_plain_kernel_equals_the_reference(folder, guarded, spec):
    for seed in range(3):
        assert guarded(checks.against_the_cpu, workload(spec), seed, timeout=60.0) == 0


def test_every_run_gives_the_same_right_bits(kernel, guarded, record_property):
    different = guarded(checks.repeated, kernel.workload, kernel.cubin, kernel.launch, kernel.clip, RUNS, timeout=90.0)
    record_property("runs", RUNS)
    record_property("different", different)
    assert different == {"alone": 0, "overlapping": 0}


def test_another_kernels_bits_are_noticed(folder, device, guarded):
    packed = (one for one in named(folder, "plain") if any(arg.name == "Prm" for arg in one.launch.arguments))
    one = next(packed)  # of its forms the one that gives sums has no parameters
    different = guarded(checks.repeated, one.workload, one.cubin, one.launch, (-3, 2), 10, timeout=60.0)
    assert min(different.values()) > 0


@pytest.mark.parametrize("name", ["chain", "chain of single passes"])
def test_a_chain_reads_what_the_layer_before_wrote(folder, guarded, name):
    """1x1, 3x3 and stride 2 without a kernel between; launched in turn, and each before the one ahead has ended."""
    layers = [(one.workload, one.cubin, one.launch) for one in named(folder, name)]
    assert len(layers) >= 4
    assert all("warpgroup" in argument.form for _, _, launch in layers for argument in launch.arguments[-1:])
    assert guarded(checks.chained, layers, 50, timeout=60.0) == {"in turn": 0, "overlapping": 0}
