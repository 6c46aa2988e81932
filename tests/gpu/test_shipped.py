"""Every shipped configuration on its own layer: each element of the output, and of sums that it keeps, is right.

The reference on the CPU takes seconds for a layer: with many cores, ``pytest -n`` runs them side by side.
"""

import checks
import pytest
from shipped_cases import SHIPPED
from test_warpgroup import wanted as runs_a_thousand_times

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]


def wanted(entry):
    """Those that are not compared in a thousand runs with a kernel of the GPU."""
    return entry["name"] in SHIPPED and not runs_a_thousand_times(entry)


def test_every_element_of_the_layer(kernel, entry, guarded, record_property):
    elements, wrong = guarded(
        checks.whole_layer, kernel.workload, entry["key"], entry["options"], kernel.cubin, timeout=150.0
    )
    record_property("elements", elements)
    record_property("wrong", wrong)
    assert not wrong
    assert elements >= kernel.workload.n * kernel.workload.k
