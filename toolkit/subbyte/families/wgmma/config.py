"""One way to schedule a convolution on warpgroup matrix instructions (wgmma, sm_90a).

Words: a *warpgroup* is four warps that issue one instruction together; a *fragment row* is ``tile_width`` neighbouring
output pixels of one output row (times the 8 images of a group: the N of the instruction); a *pass* is the work of a
warpgroup between two epilogues; the *ring* is the shared memory in which input rows go round.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from subbyte.errors import InvalidInput, Unsupported, did_you_mean, shown
from subbyte.families.mma.config import LAYOUTS, TRUTH, check_knob, named_once, values_of_key, whole_number


@dataclass(frozen=True)
class WarpgroupConfig:
    """A schedule of the *warpgroup* family. Whether it can be built is decided in the constraints, never here.

    Work of one block:

    * ``tile_width``: output pixels of a fragment row; ``tile_rows``: fragment rows of a pass (they share weights).
    * ``groups_m``, ``groups_x``, ``groups_y``: consumer warpgroups along the output channels (64 each), along the
      output row, and on alternating passes.
    * ``flatten``: 1 = a 1 x 1 kernel with a stride and without padding takes the pixels of its output as one long row,
      cut into rows of the tile's width, as one with stride 1 always does; 0 = its output rows stay what they are.
    * ``segments``: parts of the output rows of an image, one block each; ``filter_passes``: tiles of output channels
      that a block computes one after the other from the same input.
    * ``half_rows``: 1 = the rows of an image are cut in the middle of a row where ``segments`` ask for it: a block of
      whole rows and a half has a narrower instruction for the half. All segments end so, or where they cannot, the two
      in the middle of the image.
    * ``split``: blocks of a cluster that share the input channels and add up through distributed shared memory.
    * ``image_groups``: groups of 8 images of which one instruction takes the same pixels. 2 makes 7 pixels an
      instruction width (N = 2 * 7 * 8) that exists; 7 pixels of one group have none.

    Pipeline:

    * ``channel_groups``: parts in which the input channels of a row enter the ring; ``ring``: such parts in flight.
    * ``keep_rows``: 1 = a row stays in the ring until no later pass needs it; 0 = every pass loads its own rows, and
      ``groups_y`` warpgroups divide the rows of the same pass.
    * ``pass_parts``: 1 = where rows are not kept, a part is all rows of the image that a pass reads; 0 = it is one of
      them, and one of zeros where a pass looks beyond the image.
    * ``early_release``: 1 = a kept row's slot is filled anew as soon as no later kernel row or pass reads it, so that a
      ring shorter than a pass's rows will do; 0 = behind the pass.
    * ``load_ahead``: parts that the producer has on their way from memory (in registers) while it stores one: 1 or 2.
    * ``producer_late``: 1 = the producer asks for its own first parts when those that the consumers bring, which are
      waited for, have come; 0 = at the same time.
    * ``lean_start``: 1 = nobody waits for the whole block at the start: consumers ask for their rows first, then fill
      their padding and ask for weights while the rows are on their way; the loads of a thread have one address; the
      producer sets up barriers and asks for its second part when its first one is on its way. 0 = weights first, and
      all warpgroups meet behind their first loads.
    * ``producer_registers``: registers of a producer thread; 0 = its loads and a few more. Consumers share the rest.
    * ``unroll``: pairs of 32-channel blocks in one loop body, which is also how far weights are fetched ahead in
      registers; ``weight_ring``: fragments fetched ahead into shared memory instead (0 = in registers).
    * ``bulk_weights``: n > 0 = a block makes a single pass, and its weights come into shared memory by bulk copies (one
      thread asks for them); n neighbouring blocks form a cluster, and each copies a share to all of them. 0 = every
      thread loads its own.
    * ``weights_ahead``: n > 0 = (with ``bulk_weights``) a consumer reads a fragment's weights from shared memory when
      it has unpacked the n-th fragment before it, n up to a loop body's; 0 = all of a loop body at its beginning.
    * ``late_parameters``: 1 = (with ``bulk_weights``) a consumer asks for its requantization parameters behind its
      first row's arrival at the row's barrier, so that no fence waits for them; 0 = right behind that row's loads.
    * ``early_parameters``: 1 = (with ``bulk_weights``) a consumer asks for them before it waits for the launch before,
      and its sums begin with what is added to them, so that the epilogue adds nothing; 0 = as ``late_parameters`` says.
      Both are without effect where nothing is requantized (``output="int32"``).
    * ``early_start``: 1 = (with ``bulk_weights``) the consumers wait for the set-up of barriers while their rows are on
      their way, read the first weights and meet at one barrier behind the rows that they bring; 2 = the same, and the
      only consumer and the producer bring half of the first row each; 0 = rows are counted one by one.
    * ``in_flight``: instruction groups that may be unfinished while the next operand is prepared.
    * ``stagger``: what lets one of two warpgroups' epilogue meet the other's multiplications. 1 = they take turns: each
      begins a pass when the other is two thirds through its own; 2 = only the first pass of the second one begins late,
      by about an epilogue.
    * ``swizzle``: 1 = fragments lie in shared memory in 32-byte swizzled order; 0 = as plain core matrices.
    * ``blocks``: blocks per multiprocessor that registers and shared memory are divided for.
    * ``at_once``: n > 0 = a block makes a single pass and loads all its rows and weights at once, with n warpgroups
      that only load; weights are then unpacked into shared memory too. 0 = rows and weights as above.
    * ``tiles_m``: tiles of 64 output channels that a consumer multiplies with the same pixels in one pass: 1 or 2.
    * ``producers``: warpgroups that bring input rows into the ring, part by part in turns: 1 or 2.
    * ``joined``: 1 = where rows do not matter (1x1, stride 1 or ``flatten``, nhwcnc) the pixels of all groups of images
      follow one another, as they do in memory, and tiles lie across their borders; 0 = each group has its own tiles.
    * ``overlap``: 1 = a launch may begin before the one before it has ended (programmatic launch overlap).

    Switches, as in the warp family:

    * ``duplicate_aware``: "full" = an input pixel enters shared memory once and a tap is an address; "none" = the
      pixels of every tap are loaded and stored anew, one column of the lowered matrix after the other.
    * ``register_packing``: True = int4 values are packed in the registers that hold their sums and change lanes as
      packed words; False = int32 values go through shared memory and are packed behind it.
    * ``layout``: of activations and outputs in memory, "nhwcnc" or "nhwc".
    """

    tile_width: int = 28
    tile_rows: int = 1
    groups_m: int = 1
    groups_x: int = 1
    groups_y: int = 1
    segments: int = 1
    filter_passes: int = 1
    split: int = 1
    channel_groups: int = 1
    ring: int = 4
    keep_rows: int = 1
    load_ahead: int = 2
    unroll: int = 1
    weight_ring: int = 0
    in_flight: int = 1
    stagger: int = 1
    swizzle: int = 0
    blocks: int = 1
    overlap: int = 1
    at_once: int = 0
    early_release: int = 0
    flatten: int = 0
    tiles_m: int = 1
    producers: int = 1
    joined: int = 0
    image_groups: int = 1
    half_rows: int = 0
    pass_parts: int = 0
    producer_late: int = 0
    lean_start: int = 0
    producer_registers: int = 0
    bulk_weights: int = 0
    weights_ahead: int = 0
    late_parameters: int = 0
    early_parameters: int = 0
    early_start: int = 0
    duplicate_aware: str = "full"
    register_packing: bool = True
    layout: str = "nhwcnc"

    def __post_init__(self) -> None:
        given = vars(self)
        right_types = tuple(map(type, given.values())) == _TYPES  # True is no 1
        if right_types and _FINE.issuperset(given.items()):
            return  # searches make millions of configurations, of the same values
        for name in WARPGROUP_KNOBS:
            value, least = getattr(self, name), 0 if name in _FROM_ZERO else 1
            check_knob(name, value, least)
            most = 2 if name in ("stagger", "early_start") else 1
            if name in FLAGS and value > most:
                raise InvalidInput(f"knob {name}={value!r}: allowed: {', '.join(map(str, range(most + 1)))}")
        for name, allowed in SWITCH_VALUES.items():
            value = getattr(self, name)
            if type(value) is not type(allowed[0]) or value not in allowed:
                raise InvalidInput(f"switch {name}={shown(value)}: {did_you_mean(value, [*map(str, allowed)])}")
        if right_types:
            _FINE.update(given.items())

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.groups_m * self.groups_x * self.groups_y

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and the producer warpgroups or those that load."""
        return 128 * (self.consumers + (self.at_once or self.producers))

    @property
    def key(self) -> str:
        """Short, stable text that names this configuration: the fields that differ from the default, in order."""
        default = type(self)()
        parts = [f"{short}{getattr(self, name)}" for name, short in _SHORT.items()
                 if name in ALWAYS or getattr(self, name) != getattr(default, name)]  # fmt: skip
        off = [_OFF[name] for name in _OFF if getattr(self, name) != getattr(default, name)]
        return FAMILY + "-".join(parts + off)

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return dict(vars(self))  # not asdict(), which copies deeply: thousands of configurations are written at a time

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WarpgroupConfig:
        """The configuration with these fields (case-insensitive; the rest default).

        Raises InvalidInput, and Unsupported for a recorded kernel with a knob that is no more.
        """
        return cls().with_values(without_removed(named_once(data)))

    @classmethod
    def from_key(cls, key: str) -> WarpgroupConfig:
        """The configuration that :attr:`key` names. Raises InvalidInput for a part that means nothing, or nothing
        new."""
        names = {short: name for name, short in _SHORT.items()}
        off = {word: name for name, word in _OFF.items()}

        def meaning(part: str) -> tuple[str, Any] | None:
            found = re.fullmatch(r"([a-z]+)([0-9]+)", part)
            if part in off:
                return off[part], SWITCH_VALUES[off[part]][1]
            return (names[found[1]], found[2]) if found and found[1] in names else None

        return cls().with_values(values_of_key(key, meaning, cls().key, FAMILY))

    def with_values(self, values: Mapping[str, Any]) -> WarpgroupConfig:
        """A copy with some fields replaced; names are case-insensitive, text that means a number is accepted."""
        changed = named_once(values, [field.name for field in fields(self)])
        return replace(
            self, **{n: _parse(n, value) if isinstance(value, str) else value for n, value in changed.items()}
        )


FAMILY = "wg-"
"""How the keys of the family begin."""
FLAGS = ("keep_rows", "stagger", "swizzle", "overlap", "early_release", "flatten", "half_rows", "joined",
         "pass_parts", "producer_late", "lean_start", "late_parameters", "early_parameters",
         "early_start")  # fmt: skip
"""Knobs that may be 0: most are 0 or 1."""
COUNTS = ("weight_ring", "at_once", "producer_registers", "bulk_weights", "weights_ahead")
"""Numbers of places, 0 where there are none."""
_FROM_ZERO = frozenset((*FLAGS, *COUNTS))
_TYPES = tuple(type(field.default) for field in fields(WarpgroupConfig))
_FINE: set[tuple[str, Any]] = set()
"""Fields with values that were looked at and found to be allowed."""
SWITCH_VALUES: dict[str, tuple[Any, ...]] = {
    "duplicate_aware": ("full", "none"),
    "register_packing": (True, False),
    "layout": LAYOUTS[::-1],
}
"""The values of each switch, that with the technique first."""
WARPGROUP_KNOBS = tuple(field.name for field in fields(WarpgroupConfig) if field.name not in SWITCH_VALUES)
ALWAYS = ("tile_width", "tile_rows", "groups_m", "segments", "ring")
"""Knobs that a key, and a text of the settings, always names."""
_SHORT = {
    "tile_width": "tw", "tile_rows": "tr", "groups_m": "gm", "groups_x": "gx", "groups_y": "gy", "segments": "sg",
    "filter_passes": "fp", "split": "sp", "channel_groups": "cg", "ring": "ri", "keep_rows": "kr", "load_ahead": "la",
    "unroll": "un", "weight_ring": "wr", "in_flight": "if", "stagger": "sta", "swizzle": "sw", "blocks": "bl",
    "overlap": "ov", "at_once": "ao", "early_release": "er", "flatten": "fl", "tiles_m": "tm", "producers": "pr",
    "joined": "jo", "image_groups": "ig", "half_rows": "hr", "pass_parts": "pp", "producer_late": "pl",
    "lean_start": "ls", "producer_registers": "preg", "bulk_weights": "bw", "weights_ahead": "wa",
    "late_parameters": "lp", "early_parameters": "ep", "early_start": "es",
}  # fmt: skip
REMOVED = {"groups_k": 1, "share": 1, "staging": 0}
"""Knobs that did not pay and are no more, with the value that means a kernel without them: records name them."""
_OFF = {"duplicate_aware": "dup.none", "register_packing": "rp0", "layout": "nhwc"}


def without_removed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recorded configuration without removed knobs. Raises Unsupported where the kernel had one."""
    for name, without in REMOVED.items():
        if values.get(name, without) != without:
            raise Unsupported(
                f"{name}={values[name]}: a knob that was removed, and kernels with it cannot be built any more; "
                f"of recorded kernels those without it ({name}={without}) are known"
            )
    return {name: value for name, value in values.items() if name not in REMOVED}


def _parse(name: str, text: str) -> Any:
    """The value of a field that is given as text, as the command line and log files give it."""
    if name == "register_packing":
        if text.lower() not in TRUTH:
            raise InvalidInput(f"register_packing={text!r}: allowed: true, false")
        return TRUTH[text.lower()]
    if name in SWITCH_VALUES:
        return text.lower()
    return whole_number(name, text)
