"""The convolutions of well-known networks at 224x224 input: each distinct shape once, with the number of times it
occurs.

Sources: ResNet-18 and ResNet-50 v1.5 (a bottleneck's stride is in its 3x3 convolution), VGG-16 and AlexNet as
torchvision defines them. Layers of a ResNet stage are named by their role:

* ``stage3`` itself: the 3x3 convolutions of stride 1 (in ResNet-50 the four workloads of Choi et al. 2022)
* ``down3x3``: the 3x3 convolution of stride 2 that opens the stage
* ``enter1x1`` / ``reduce1x1``: the first 1x1 of the first / of every later bottleneck
* ``expand1x1``: the last 1x1 of a bottleneck
* ``shortcut1x1``: the projection on the shortcut
"""

from __future__ import annotations

from dataclasses import dataclass

from subbyte.workload.conv import ConvWorkload
from subbyte.workload.precision import INT4, Precision

DEFAULT_BATCH = 8
"""Batch size of a named workload given without ``@batch``."""


@dataclass(frozen=True)
class Layer:
    """One distinct convolution of a network: square ``kernel`` on ``size`` x ``size`` pixels, used ``count`` times."""

    name: str
    count: int
    size: int
    c: int
    k: int
    kernel: int
    pad: int = 0
    stride: int = 1

    def workload(self, batch: int = DEFAULT_BATCH, precision: Precision = INT4) -> ConvWorkload:
        """The workload at this batch size, named ``name@batch``, or ``name@batch:w1a2`` when the operands are not int4.
        Raises InvalidInput for a batch below 1."""
        types = f":{precision.text}" if precision.text else ""
        return ConvWorkload(
            n=batch, h=self.size, w=self.size, c=self.c, k=self.k, r=self.kernel, s=self.kernel,
            pad=self.pad, stride=self.stride, name=f"{self.name}@{batch}{types}", precision=precision,
        )  # fmt: skip


def _resnet18() -> tuple[Layer, ...]:
    layers = [Layer("resnet18.conv1", 1, 224, 3, 64, 7, 3, 2), Layer("resnet18.stage2", 4, 56, 64, 64, 3, 1)]
    for stage, size, before in ((3, 28, 64), (4, 14, 128), (5, 7, 256)):
        name, width = f"resnet18.stage{stage}", 2 * before
        layers += [
            Layer(name, 3, size, width, width, 3, 1),
            Layer(f"{name}.down3x3", 1, 2 * size, before, width, 3, 1, 2),
            Layer(f"{name}.shortcut1x1", 1, 2 * size, before, width, 1, 0, 2),
        ]
    return tuple(layers)


def _resnet50() -> tuple[Layer, ...]:
    layers = [
        Layer("resnet50.conv1", 1, 224, 3, 64, 7, 3, 2),
        Layer("resnet50.stage2", 3, 56, 64, 64, 3, 1),
        Layer("resnet50.stage2.enter1x1", 1, 56, 64, 64, 1),
        Layer("resnet50.stage2.reduce1x1", 2, 56, 256, 64, 1),
        Layer("resnet50.stage2.expand1x1", 4, 56, 64, 256, 1),  # three bottlenecks and the shortcut, same shape
    ]
    for stage, size, width, blocks in ((3, 28, 128, 4), (4, 14, 256, 6), (5, 7, 512, 3)):
        name, before, wide = f"resnet50.stage{stage}", 2 * width, 4 * width
        layers += [
            Layer(name, blocks - 1, size, width, width, 3, 1),
            Layer(f"{name}.down3x3", 1, 2 * size, width, width, 3, 1, 2),
            Layer(f"{name}.enter1x1", 1, 2 * size, before, width, 1),
            Layer(f"{name}.reduce1x1", blocks - 1, size, wide, width, 1),
            Layer(f"{name}.expand1x1", blocks, size, width, wide, 1),
            Layer(f"{name}.shortcut1x1", 1, 2 * size, before, wide, 1, 0, 2),
        ]
    return tuple(layers)


def _vgg16() -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for block, size, before, width, later in (
        (1, 224, 3, 64, 1), (2, 112, 64, 128, 1), (3, 56, 128, 256, 2), (4, 28, 256, 512, 2)
    ):  # fmt: skip
        layers.append(Layer(f"vgg16.conv{block}_1", 1, size, before, width, 3, 1))
        layers.append(Layer(f"vgg16.conv{block}_2", later, size, width, width, 3, 1))
    return (*layers, Layer("vgg16.conv5_1", 3, 14, 512, 512, 3, 1))


def _alexnet() -> tuple[Layer, ...]:
    return (
        Layer("alexnet.conv1", 1, 224, 3, 64, 11, 2, 4),
        Layer("alexnet.conv2", 1, 27, 64, 192, 5, 2),
        Layer("alexnet.conv3", 1, 13, 192, 384, 3, 1),
        Layer("alexnet.conv4", 1, 13, 384, 256, 3, 1),
        Layer("alexnet.conv5", 1, 13, 256, 256, 3, 1),
    )


NETWORKS: dict[str, tuple[Layer, ...]] = {
    "resnet18": _resnet18(),
    "resnet50": _resnet50(),
    "vgg16": _vgg16(),
    "alexnet": _alexnet(),
}
"""Network name -> its distinct convolutions, stem first."""

LAYERS: dict[str, Layer] = {layer.name: layer for layers in NETWORKS.values() for layer in layers}
"""Layer name -> layer, of all networks."""
