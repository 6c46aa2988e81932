"""The knobs, a row each."""

from __future__ import annotations

from typing import ClassVar

from subbyte.spaces.configuration import Configuration, configuration
from subbyte.spaces.knob import choice, flag, knob, switch, whole


@configuration
class ToyConfig(Configuration):
    """A schedule of the toy family."""

    prefix: ClassVar[str] = "toy-"

    threads: int = knob("th", whole(32, 256), "threads of a block", default=64, always=True)
    words: int = knob("wo", whole(1, 4), "output words of a thread, 16 channels each", default=1, always=True)
    unroll: int = knob("un", flag(), "1 = the 16 products of two words are written out", default=0)
    layout: str = switch("", choice("nhwcnc", "nhwc"), "of activations and outputs in memory", default="nhwcnc")


VALUES: dict[str, tuple[int, ...]] = {"threads": (32, 64, 128), "words": (1, 2, 3), "unroll": (0, 1)}
"""What the space offers; three words divide no block, so that something is refused."""
