"""Which convolutions kernels refuse, with the reason."""

import pytest

from subbyte.workload import ConvWorkload, workloads
from subbyte.workload.coverage import warp_limit


@pytest.mark.parametrize(
    ("wl", "reason"),
    [
        (ConvWorkload(1, 30, 30, 3, 8, 8, 1), "kernel size 8x1"),
        (ConvWorkload(1, 30, 30, 3, 8, 1, 11), "kernel size 1x11"),
        (ConvWorkload(1, 30, 30, 3, 8, 3, 3, 1, 3), "stride 3"),
        (ConvWorkload(1, 30, 30, 3, 8, 3, 3, 1, 1, 3), "dilation 3"),
    ],
)
def test_reasons(wl, reason):
    assert reason in (warp_limit(wl) or "")


def test_all_layers_but_alexnets_first_are_covered():
    everything = workloads(["resnet18", "resnet50", "vgg16", "alexnet"])
    assert [wl.name for wl in everything if warp_limit(wl)] == ["alexnet.conv1@8"]
    assert warp_limit(ConvWorkload(3, 30, 30, 5, 7, 7, 7, 9, 2, 2)) is None
