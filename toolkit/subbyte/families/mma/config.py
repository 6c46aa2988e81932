"""One way to schedule a convolution: six knobs of the paper, four that extend them, three switches.

A configuration is plain frozen data. Whether it can be built for a workload and an architecture is decided in
:mod:`subbyte.families.mma.rules`, never here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean, shown

DUPLICATE_AWARE = ("none", "shared", "full")
LAYOUTS = ("nhwc", "nhwcnc")
ATOMS = ("auto", "s4.m8n8k32", "s4.m16n8k32", "s4.m16n8k64", "s8.m16n8k32")


@dataclass(frozen=True)
class ConvConfig:
    """A schedule of the *warp* family.

    Knobs of the paper (Choi et al. 2022, section 4.1):

    * ``blk_row_warps``, ``blk_col_warps``: warps of a block along pixels and along output channels.
    * ``warp_row_tiles``, ``warp_col_tiles``: pixels (8 images each) and 8-channel tiles of one warp.
    * ``chunk``: blocks of 32 input channels staged together.
    * ``reorder_inner``: 0 = channel chunk outermost, all kernel rows staged; 1 = kernel row outermost, one staged.

    Knobs of the extended space: ``tile_height`` (pixel rows of the block tile, 0 = chosen), ``stages`` (shared
    buffers in flight), ``split_channels`` (groups of warps that share the input channels of one tile and add up
    in shared memory), ``min_blocks`` (blocks per multiprocessor the compiler keeps registers free for, which caps
    them; 0 = no cap), ``unroll`` (32-channel blocks unrolled in the main loop).

    Switches: ``duplicate_aware``, ``register_packing``, ``layout``. ``atom`` names the matrix instruction.
    """

    blk_row_warps: int = 1
    blk_col_warps: int = 2
    warp_row_tiles: int = 4
    warp_col_tiles: int = 4
    chunk: int = 1
    reorder_inner: int = 0
    tile_height: int = 0
    stages: int = 2
    split_channels: int = 1
    min_blocks: int = 0
    unroll: int = 1
    duplicate_aware: str = "full"
    register_packing: bool = True
    layout: str = "nhwcnc"
    atom: str = "auto"

    def __post_init__(self) -> None:
        for name in INTEGER_FIELDS:
            value = getattr(self, name)
            check_knob(name, value, _LEAST.get(name, 1))
        if self.reorder_inner not in (0, 1):
            raise InvalidInput(f"knob reorder_inner={self.reorder_inner!r}: allowed: 0, 1")
        for name, allowed in (("duplicate_aware", DUPLICATE_AWARE), ("layout", LAYOUTS), ("atom", ATOMS)):
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in allowed:
                raise InvalidInput(f"{name}={shown(getattr(self, name))}: {did_you_mean(getattr(self, name), allowed)}")
        if not isinstance(self.register_packing, bool):
            raise InvalidInput(f"register_packing={shown(self.register_packing)}: allowed: true, false")

    @property
    def pixels(self) -> int:
        """Output pixels of the block tile (for each of the 8 images of a group)."""
        return self.blk_row_warps * self.warp_row_tiles

    @property
    def columns(self) -> int:
        """Output channels of the block tile."""
        return 8 * self.blk_col_warps * self.warp_col_tiles

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.blk_row_warps * self.blk_col_warps * self.split_channels

    @property
    def key(self) -> str:
        """Short, stable text that names this configuration: fields that differ from the default, in order."""
        parts = [f"{_SHORT[name]}{getattr(self, name)}" for name in KNOBS]
        default = type(self)()
        for name, short in _SHORT.items():
            value = getattr(self, name)
            if name not in KNOBS and value != getattr(default, name):
                parts.append(f"{short}{int(value) if isinstance(value, bool) else value}")
        return "-".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dict(vars(self))  # not asdict(), which copies deeply: thousands of configurations are written at a time

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ConvConfig:
        """The configuration with these fields (case-insensitive; the rest default). Raises InvalidInput."""
        return cls().with_values(data)

    @classmethod
    def from_key(cls, key: str) -> ConvConfig:
        """The configuration that :attr:`key` names. Raises InvalidInput for a part that means nothing, or nothing
        new."""
        names = {short: name for name, short in _SHORT.items() if short}

        def meaning(part: str) -> tuple[str, Any] | None:
            found = re.fullmatch(r"(dup\.(?=[a-z])|[a-z]+(?=[0-9]))(\w+)", part)
            if part in LAYOUTS:
                return "layout", part
            if part in ATOMS:
                return "atom", part
            return (names[found[1]], found[2]) if found and found[1] in names else None

        return cls().with_values(values_of_key(key, meaning, cls().key))

    def with_values(self, values: Mapping[str, Any]) -> ConvConfig:
        """A copy with some fields replaced. Names and text values are case-insensitive; text that means a number
        or a truth value ("4", "off", "true") is accepted, as the command line and log files give it."""
        known = {f.name for f in fields(self)}
        return replace(self, **{name: _parse(name, value) for name, value in named_once(values, known).items()})


KNOBS = ("blk_row_warps", "blk_col_warps", "warp_row_tiles", "warp_col_tiles", "chunk", "reorder_inner")
"""The six knobs of the paper, in its order (the first varies fastest in a configuration's index)."""

SWITCHES = ("duplicate_aware", "register_packing", "layout")
INTEGER_FIELDS = (*KNOBS, "tile_height", "stages", "split_channels", "min_blocks", "unroll")
_LEAST = {"reorder_inner": 0, "tile_height": 0, "min_blocks": 0}
_SHORT = {
    "blk_row_warps": "brw", "blk_col_warps": "bcw", "warp_row_tiles": "wrt", "warp_col_tiles": "wct",
    "chunk": "ch", "reorder_inner": "ri", "tile_height": "th", "stages": "st", "split_channels": "sp",
    "min_blocks": "mb", "unroll": "un", "duplicate_aware": "dup.", "register_packing": "rp", "layout": "", "atom": "",
}  # fmt: skip


def check_knob(name: str, value: Any, least: int) -> None:
    """Raises InvalidInput when the value of a knob is no integer from ``least`` to MOST."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        most = f" and at most {MOST:,}" if isinstance(value, int) and value > MOST else ""
        raise InvalidInput(f"knob {name}={shown(value)}: must be an integer >= {least}{most}")


def values_of_key(
    key: Any, meaning: Callable[[str], tuple[str, Any] | None], example: str, family: str = ""
) -> dict[str, Any]:
    """By field the value that a part of a key gives it, as ``meaning`` says; ``example`` is a key, and keys may begin
    with ``family``. Raises InvalidInput for what is no text, for a part without a meaning and for two of one field."""
    if not isinstance(key, str):
        raise InvalidInput(f"configuration {shown(key)}: expected the text of a key, such as {example}")
    values: dict[str, Any] = {}
    for part in key.lower().strip().removeprefix(family).split("-"):
        meant = meaning(part)
        if meant is None:
            raise InvalidInput(
                f"configuration {shown(key)}: {shown(part)} is no part of one; expected a key such as {example}"
            )
        if meant[0] in values:
            raise InvalidInput(f"configuration {shown(key)}: {shown(part)} gives {meant[0]} a second time")
        values[meant[0]] = meant[1]
    return values


def named_once(values: Any, known: Collection[str] | None = None) -> dict[str, Any]:
    """Values by the names of fields, whose case is of no account. Raises InvalidInput for what holds no values, for a
    name that is not ``known`` (None: any may be) and for one that stands twice."""
    if not isinstance(values, Mapping):
        raise InvalidInput(f"configuration {shown(values)}: expected names with values, such as {{'unroll': 2}}")
    found: dict[str, Any] = {}
    for given, value in values.items():
        name = str(given).lower().replace("-", "_")
        if known is not None and name not in known:
            raise InvalidInput(f"unknown knob {shown(given)}: {did_you_mean(name, known)}")
        if name in found:
            raise InvalidInput(f"knob {shown(given)}: {shown(name)[1:-1]} stands there twice")
        found[name] = value
    return found


MOST = 1 << 12
"""Of any knob: beyond what can be built."""
TRUTH = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
"""Truth values as the command line and log files give them."""


def whole_number(name: str, text: str) -> int:
    """The value of a knob from the text of a command line or log file. Raises InvalidInput when it is no integer."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise InvalidInput(f"knob {name}={shown(text)}: must be an integer")
    return int(text)


def _parse(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "register_packing":
        if value.lower() not in TRUTH:
            raise InvalidInput(f"register_packing={value!r}: allowed: true, false")
        return TRUTH[value.lower()]
    if name in INTEGER_FIELDS:
        return whole_number(name, value)
    return value.lower()
