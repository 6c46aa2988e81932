"""The networks have the layers their definitions have."""

import pytest

from subbyte.workload import LAYERS, NETWORKS, workload, workloads

STAGES = {2: (56, 64), 3: (28, 128), 4: (14, 256), 5: (7, 512)}
# Multiply-accumulates of all convolutions for one 224x224 image, from the published definitions (millions).
MEGA_MACS = {"resnet18": 1813.6, "resnet50": 4087.1, "vgg16": 15346.6, "alexnet": 655.6}
LAYER_COUNTS = {"resnet18": 20, "resnet50": 53, "vgg16": 13, "alexnet": 5}


@pytest.mark.parametrize("stage", STAGES)
def test_the_four_stages_of_resnet50(stage):
    size, width = STAGES[stage]
    wl = workload(f"resnet50.stage{stage}@8")
    assert (wl.n, wl.h, wl.w, wl.c, wl.k, wl.r, wl.s) == (8, size, size, width, width, 3, 3)
    assert (wl.pad, wl.stride, wl.dilation) == (1, 1, 1)
    assert (wl.p, wl.q) == (size, size)
    assert wl.operations == 1_849_688_064


@pytest.mark.parametrize("network", NETWORKS)
def test_layers_and_operations_add_up_to_the_network(network):
    layers = NETWORKS[network]
    assert sum(layer.count for layer in layers) == LAYER_COUNTS[network]
    macs = sum(layer.count * layer.workload(1).macs for layer in layers)
    assert macs / 1e6 == pytest.approx(MEGA_MACS[network], abs=0.1)


@pytest.mark.parametrize("network", NETWORKS)
def test_shapes_are_distinct_and_names_parse_back(network):
    found = [layer.workload(4) for layer in NETWORKS[network]]
    assert len(set(found)) == len(found)
    assert workloads(f"{network}@4") == found
    for one in found:
        assert workload(one.name) == one
        assert workload(one.name).name == one.name


def test_resnet50_strides_in_the_3x3():
    for name in ("resnet50.stage3.enter1x1", "resnet50.stage4.enter1x1", "resnet50.stage5.enter1x1"):
        assert LAYERS[name].stride == 1
    down = workload("resnet50.stage4.down3x3@1")
    assert (down.stride, down.h, down.p, down.c, down.k) == (2, 28, 14, 256, 256)
    shortcut = workload("resnet50.stage4.shortcut1x1@1")
    assert (shortcut.stride, shortcut.h, shortcut.p, shortcut.c, shortcut.k) == (2, 28, 14, 512, 1024)


def test_stems():
    stem = workload("resnet50.conv1@1")
    assert (stem.h, stem.c, stem.k, stem.r, stem.pad, stem.stride, stem.p) == (224, 3, 64, 7, 3, 2, 112)
    first = workload("alexnet.conv1@1")
    assert (first.r, first.stride, first.pad, first.p) == (11, 4, 2, 55)
