"""Prebuilt kernels of the warpgroup family: the same bits in every run, alone and one behind the other.

Everything runs in a process of its own with a time limit: a kernel that waits for ever costs one test.
"""

import pytest
from prebuilt import repeated

from subbyte.measure.worker import Worker

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


@pytest.fixture
def worker():
    made = Worker("repeating")
    yield made
    made.close()


def test_every_run_gives_the_same_bits(kernel, worker):
    if not any(argument.form.startswith("warpgroup") for argument in kernel.launch.arguments):
        pytest.skip("a kernel of the warp family")
    different = worker.call(repeated, kernel.workload, kernel.cubin, kernel.launch, kernel.clip, 1000, timeout=90.0)
    assert different == {"alone": 0, "overlapping": 0}
