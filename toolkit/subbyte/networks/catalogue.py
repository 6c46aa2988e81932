"""The available networks, by name: TCBNN's six, APNN-TC's three, and those whose weights ship with the package.

Layer lists are those of the papers' public code (pnnl/TCBNN, BoyuanFeng/APNN-TC): padding is half the kernel size, so
that 224 pixels become 56 with a stride of 4; TCBNN pools bits (after the thresholds), APNN-TC sums (before them). The
sums of a shortcut are added to all the channels that its layer has.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean, shown
from subbyte.networks.builder import Builder
from subbyte.networks.images import DIGITS, IMAGES, MNIST
from subbyte.networks.network import Network
from subbyte.numerics.bit_layer import AFTER, BEFORE

DEFAULT_BATCH = 8
"""Batch size of a network named without ``@batch``."""
TCBNN = "TCBNN, arXiv 2006.16578"
APNN = "APNN-TC, arXiv 2106.12169"
WIDTHS = {DIGITS: (256, 256), MNIST: (512, 512)}
"""Widths of the hidden layers of the networks that are trained here."""


@dataclass(frozen=True)
class Entry:
    """A network without its batch size: the source of its layers, its training data, and how they are built."""

    source: str
    build: Callable[[Builder], Builder]
    image: tuple[int, int, int]
    precision: str
    pool_order: str = AFTER
    trained: str = ""


def _perceptron(*widths: int) -> Callable[[Builder], Builder]:
    def build(made: Builder) -> Builder:
        for width in widths:
            made.fc(width)
        return made

    return build


def _alexnet(made: Builder) -> Builder:
    made.conv(64, 11, stride=4, pool=2).conv(192, 5, pool=2)
    made.conv(384, 3).conv(256, 3).conv(256, 3, pool=2)
    return made.fc(4096).fc(4096).fc(1000)


def _cifar_vgg(made: Builder) -> Builder:
    for width in (128, 256, 512):
        made.conv(width, 3).conv(width, 3, pool=2)
    return made.fc(1024).fc(1024).fc(10)


def _vgg16(made: Builder) -> Builder:
    for width, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for layer in range(layers):
            made.conv(width, 3, pool=2 if layer == layers - 1 else 1)
    return made.fc(4096).fc(4096).fc(1000)


def _vgg_variant(made: Builder) -> Builder:
    made.conv(96, 3, stride=2, pool=2).conv(256, 3).conv(256, 3).conv(256, 3, pool=2)
    for _ in range(2):
        made.conv(512, 3).conv(512, 3).conv(512, 3, pool=2)
    return made.fc(4096).fc(4096).fc(1000)


def _stages(made: Builder, widths: tuple[int, ...]) -> Builder:
    """Two blocks of two layers each; the second layer of a block adds the sums of the previous block, or those of the
    very first layer."""
    before = made.last
    for stage, width in enumerate(widths, 1):
        for block in (1, 2):
            name = f"stage{stage}.{block}"
            made.conv(width, 3, stride=2 if stage > 1 and block == 1 else 1, name=f"{name}a")
            before = made.conv(width, 3, residual=before, name=f"{name}b").last
    return made


def _resnet18(made: Builder) -> Builder:
    return _stages(made.conv(64, 7, stride=4, name="stem"), (64, 128, 256, 512)).fc(512).fc(1000)


def _cifar_resnet(made: Builder) -> Builder:
    return _stages(made.conv(128, 3, name="stem"), (128, 256, 512)).fc(512).fc(10)


_IMAGENET, _CIFAR = (224, 224, 3), (32, 32, 3)
CATALOGUE: dict[str, Entry] = {
    "tcbnn.mlp": Entry(TCBNN, _perceptron(1024, 1024, 1024, 10), IMAGES[MNIST], "w1a1"),
    "tcbnn.cifar_vgg": Entry(TCBNN, _cifar_vgg, _CIFAR, "w1a1"),
    "tcbnn.cifar_resnet": Entry(TCBNN, _cifar_resnet, _CIFAR, "w1a1"),
    "tcbnn.alexnet": Entry(TCBNN, _alexnet, _IMAGENET, "w1a1"),
    "tcbnn.vgg16": Entry(TCBNN, _vgg16, _IMAGENET, "w1a1"),
    "tcbnn.resnet18": Entry(TCBNN, _resnet18, _IMAGENET, "w1a1"),
    "apnn.alexnet": Entry(APNN, _alexnet, _IMAGENET, "w1a2", BEFORE),
    "apnn.vgg": Entry(APNN, _vgg_variant, _IMAGENET, "w1a2", BEFORE),
    "apnn.resnet18": Entry(APNN, _resnet18, _IMAGENET, "w1a2", BEFORE),
    **{
        f"{data}.{types}": Entry("trained here", _perceptron(*WIDTHS[data], 10), IMAGES[data], types, trained=data)
        for data, types in ((DIGITS, "w1a1"), (DIGITS, "w1a2"), (MNIST, "w1a1"))
    },
}
"""Name -> network."""


@checked
def network(name: str) -> Network:
    """The network with this name and batch: ``tcbnn.resnet18@64`` (8 images without ``@``).

    Case does not matter. Raises InvalidInput with the available names.
    """
    what, at, batch = name.strip().lower().partition("@")
    entry = CATALOGUE.get(what)
    if entry is None:
        close = did_you_mean(what, CATALOGUE)
        known = "" if close.startswith("allowed") else f" (there are {', '.join(CATALOGUE)})"
        raise InvalidInput(
            f"unknown network {shown(name)}: {close}{known}; a batch may follow, as in tcbnn.resnet18@64"
        )
    if at and not (re.fullmatch(r"[0-9]{1,6}", batch) and int(batch) > 0):
        raise InvalidInput(f"network {shown(name)}: the batch after @ must be an integer from 1 to 999999")
    images = int(batch) if at else DEFAULT_BATCH
    built = entry.build(Builder(images, entry.image, entry.precision, entry.pool_order))
    return Network(f"{what}@{images}", built.layers, entry.source, entry.trained)


def perceptron(data: str, precision: str, batch: int = DEFAULT_BATCH, widths: tuple[int, ...] | None = None) -> Network:
    """The network that is trained on a data set (``digits``, ``mnist``), in any precision. Raises InvalidInput."""
    hidden = WIDTHS[data] if widths is None else widths
    built = _perceptron(*hidden, 10)(Builder(batch, IMAGES[data], precision, AFTER))
    return Network(f"{data}.{precision}@{batch}", built.layers, "trained here")
