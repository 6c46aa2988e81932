"""The shapes that are simulated: convolutions, and matrix products of networks without convolutions.

Shapes only; every network's densities are the user's or stated defaults. Sources: VGG-16, ResNet-18, ResNet-50, AlexNet
as in :mod:`subbyte.workload.networks`; Mask R-CNN: the ResNet-50 trunk on 800 x 1344 pixels with the feature pyramid's
1x1 and 3x3 convolutions (torchvision's maskrcnn_resnet50_fpn); BERT-base: Devlin et al. 2019, 12 layers of width 768,
the products with weights, 128 tokens; LSTM: two layers of 1,024 units over 32 steps, gates as one product, the
recurrent one step by step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.workload import INT4, NETWORKS, ConvWorkload, MatmulWorkload, gemm, workload

DEFAULT_BATCH = {"maskrcnn": 1}
TOKENS, STEPS, UNITS = 128, 32, 1024


Shape = ConvWorkload
"""The shape of a convolution or, for the kind ``matmul``, of a matrix product."""


@dataclass(frozen=True)
class NetworkLayer:
    """One distinct layer of a network."""

    shape: Shape
    count: int
    """How many times it occurs."""
    image: bool = False
    """Whether its input is the image itself, which has no zeros to skip."""


def is_product(shape: Shape) -> bool:
    """Whether a shape is a matrix product of activations [M, K] and weights [K, N]."""
    return shape.kind == MatmulWorkload.kind


def sizes(shape: Shape) -> tuple[int, int, int]:
    """M, N, K of the (lowered) matrix product: output pixels or tokens, filters, depth."""
    return shape.n * shape.p * shape.q, shape.k, shape.r * shape.s * shape.c


def lowers(shape: Shape) -> bool:
    """Whether the product reads a lowered matrix that differs from the tensor: not for 1x1 convolutions."""
    return not (shape.r == shape.s == shape.stride == 1 and shape.pad == 0)


def shape_of(given: str | Shape) -> Shape:
    """The shape with this name; a workload is returned as it is.

    Names: a layer of :func:`network_layers` (``bert.ffn1@8``, ``maskrcnn.fpn2@1``), or anything that
    ``subbyte.workload`` accepts, such as ``gemm1024x512x256`` (M x N x K). Raises InvalidInput with the closest names,
    and for operands of types other than int4: the model has its own kinds of values.
    """
    if isinstance(given, ConvWorkload):
        return _untyped(given)
    if not isinstance(given, str):
        raise InvalidInput(f"workload is a {type(given).__name__}: expected text such as 'resnet50.stage2@8'")
    name = given.strip().lower()
    network = name.partition("@")[0].partition(".")[0]
    if network in _OWN:
        if "." not in name:
            raise InvalidInput(f"{given!r} is a network: take one of its layers, or sparse.network({given!r})")
        layers = network_layers(network + ("@" + name.partition("@")[2] if "@" in name else ""))
        names = {layer.shape.label.partition("@")[0]: layer.shape for layer in layers}
        if (wanted := name.partition("@")[0]) not in names:
            raise InvalidInput(f"unknown workload {given!r}: {did_you_mean(wanted, names)}")
        return names[wanted]
    return _untyped(workload(given))


def _untyped(given: Shape) -> Shape:
    if given.precision != INT4:
        raise InvalidInput(f"{given}: only shapes are simulated; leave out the operand types: {given.sizes}")
    return given


def network_layers(given: str) -> tuple[NetworkLayer, ...]:
    """The distinct layers of ``vgg16``, ``resnet18``, ``resnet50``, ``alexnet``, ``maskrcnn``, ``bert`` or ``lstm``.

    The batch size follows after @; the default is 8, for ``maskrcnn`` 1. Raises InvalidInput for another name or batch.
    """
    if not isinstance(given, str):
        raise InvalidInput(f"network is a {type(given).__name__}: expected text such as 'resnet50@8'")
    name, at, text = given.strip().lower().partition("@")
    if name not in NETWORK_NAMES:
        raise InvalidInput(f"unknown network {given!r}: {did_you_mean(name, NETWORK_NAMES)}")
    if at and not (re.fullmatch(r"[0-9]{1,6}", text) and int(text) > 0):
        raise InvalidInput(f"network {given!r}: the batch after @ must be a positive integer, as in {name}@8")
    batch = int(text) if at else DEFAULT_BATCH.get(name, 8)
    if name in NETWORKS:
        return tuple(NetworkLayer(layer.workload(batch), layer.count, image=layer.c == 3) for layer in NETWORKS[name])
    return _OWN[name](batch)


def _maskrcnn(batch: int) -> tuple[NetworkLayer, ...]:
    layers = []
    for layer in NETWORKS["resnet50"]:
        name = layer.name.replace("resnet50", "maskrcnn")
        shape = replace(layer.workload(batch), h=layer.size * 800 // 224, w=layer.size * 1344 // 224)
        layers.append(NetworkLayer(replace(shape, name=f"{name}@{batch}"), layer.count, image=layer.c == 3))
    for level, channels in ((2, 256), (3, 512), (4, 1024), (5, 2048)):
        h, w = 800 >> level, 1344 >> level
        inner = ConvWorkload(batch, h, w, channels, 256, 1, 1, name=f"maskrcnn.lateral{level}@{batch}")
        outer = ConvWorkload(batch, h, w, 256, 256, 3, 3, 1, name=f"maskrcnn.fpn{level}@{batch}")
        layers += [NetworkLayer(inner, 1), NetworkLayer(outer, 1)]
    return tuple(layers)


def _bert(batch: int) -> tuple[NetworkLayer, ...]:
    rows = TOKENS * batch
    parts = (("qkv", 36, 768, 768), ("output", 12, 768, 768), ("ffn1", 12, 3072, 768), ("ffn2", 12, 768, 3072))
    return tuple(NetworkLayer(gemm(rows, n, k, name=f"bert.{name}@{batch}"), count) for name, count, n, k in parts)


def _lstm(batch: int) -> tuple[NetworkLayer, ...]:
    inputs = gemm(batch * STEPS, 4 * UNITS, UNITS, name=f"lstm.input@{batch}")
    recurrent = gemm(batch, 4 * UNITS, UNITS, name=f"lstm.recurrent@{batch}")
    return NetworkLayer(inputs, 2), NetworkLayer(recurrent, 2 * STEPS)


_OWN = {"maskrcnn": _maskrcnn, "bert": _bert, "lstm": _lstm}
NETWORK_NAMES = (*NETWORKS, *_OWN)
"""Networks that :func:`network_layers` knows."""
