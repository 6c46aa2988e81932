"""The schedule of a kernel that counts bits on the integer units."""

from __future__ import annotations

from typing import ClassVar

from subbyte.families.shared.planes.config import PlaneConfig
from subbyte.spaces.configuration import configuration
from subbyte.spaces.knob import flag, knob


@configuration
class PopcConfig(PlaneConfig):
    """A schedule of the popc family (32-bit popcounts, any architecture; BSTC of arXiv 2006.16578)."""

    prefix: ClassVar[str] = "popc-"

    carry_save: int = knob(
        "cs", flag(), "1 = three words are added bit by bit first, so that four words take three counts; 0 = four",
        default=1,
    )  # fmt: skip
