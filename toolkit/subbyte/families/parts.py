"""What a family says of its kernels to those who export or draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ExportParts:
    """What the C header of a kernel needs of its family.

    ``sections``: C texts by name, beside those of the template or in their place. ``weights`` gives the function
    ``prepare_weights``; a kernel of other operands than int4 brings ``index``, ``operands`` and ``output`` as well.
    ``words`` are what stands for ``@name@`` in them, ``defines`` constants of the header.
    """

    sections: Mapping[str, str]
    weight_shape: tuple[int, ...]
    words: Mapping[str, str]
    defines: Mapping[str, int | str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of the words of other arguments, where these are not blocks of packed values."""
    parameters: Mapping[str, str | list[int]] = field(default_factory=dict)
    """The caller's array behind the parameters: empty, bias, multiplier and shift."""


@dataclass(frozen=True)
class PixelTile:
    """Output pixels (rows, columns) whose input is loaded together: by a block, by one of the ``warps`` sharing it."""

    block: tuple[int, int]
    warps: int
    warp: tuple[int, int]
