"""A kind of kernel of its own, with an operand type of its own, registered from outside the library.

Direct convolution on CUDA cores: each thread computes some output words (16 unsigned 2-bit channels each) of one pixel
of one image. Weights are 2-bit powers of two, an encoding that the library does not have. It is here to show that a new
kind of kernel changes no file of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from subbyte.families.registry import register, unregister
from subbyte.workload import register_encoding, unregister_encoding
from toy_family.types import POWERS

NAME = "toy"
SPEC = "n3h5w4c9k20r3s3p1:w2a2:powers.unsigned"
"""A small layer of these types: images, channels and filters that fill up no group, padding on all sides."""


@contextmanager
def registered() -> Iterator[None]:
    """The family and its encoding, known to the library until the end of the block."""
    register_encoding(POWERS)
    register(NAME, "toy_family.family:TOY")
    try:
        yield
    finally:
        unregister(NAME)
        unregister_encoding(POWERS.name)
