"""One way to schedule a convolution on warpgroup matrix instructions (wgmma, sm_90a).

Words: a *warpgroup* is four warps that issue one instruction together; a *fragment row* is ``tile_width`` neighbouring
output pixels of one output row (times the 8 images of a group: the N of the instruction); a *pass* is the work of a
warpgroup between two epilogues; the *ring* is the shared memory in which input rows go round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from subbyte.errors import Unsupported
from subbyte.spaces.configuration import Configuration, configuration, named_once
from subbyte.spaces.knob import choice, flag, knob, switch, whole

SWITCH_VALUES: dict[str, tuple[Any, ...]] = {
    "duplicate_aware": ("full", "none"),
    "register_packing": (True, False),
    "layout": ("nhwcnc", "nhwc"),
}
"""The values of each switch, that with the technique first."""


@configuration
class WarpgroupConfig(Configuration):
    """A schedule of the *warpgroup* family. Whether it can be built is decided by its rules, never here."""

    prefix: ClassVar[str] = "wg-"

    tile_width: int = knob("tw", whole(), "output pixels of a fragment row", default=28, always=True)
    tile_rows: int = knob("tr", whole(), "fragment rows of a pass; they share weights", default=1, always=True)
    groups_m: int = knob(
        "gm", whole(), "consumer warpgroups along the output channels, 64 each", default=1, always=True
    )
    groups_x: int = knob("gx", whole(), "consumer warpgroups along the output row", default=1)
    groups_y: int = knob("gy", whole(), "consumer warpgroups on alternating passes", default=1)
    segments: int = knob("sg", whole(), "parts of the output rows of an image, one block each", default=1, always=True)
    filter_passes: int = knob(
        "fp",
        whole(),
        "tiles of output channels that a block computes one after the other from the same input",
        default=1,
    )
    split: int = knob(
        "sp",
        whole(),
        "blocks of a cluster that share the input channels and add up in distributed shared memory",
        default=1,
    )
    channel_groups: int = knob("cg", whole(), "parts in which the input channels of a row enter the ring", default=1)
    ring: int = knob("ri", whole(), "such parts in flight", default=4, always=True)
    keep_rows: int = knob(
        "kr",
        flag(),
        "1 = a row stays in the ring until no later pass needs it; 0 = every pass loads its own rows, and groups_y "
        "warpgroups divide the rows of the same pass",
        default=1,
    )
    load_ahead: int = knob(
        "la",
        whole(),
        "parts that the producer has on their way from memory, in registers, while it stores one: 1, 2",
        default=2,
    )
    unroll: int = knob(
        "un",
        whole(),
        "pairs of 32-channel blocks in one loop body: how far weights are fetched ahead in registers",
        default=1,
    )
    weight_ring: int = knob(
        "wr", whole(0), "weight fragments fetched ahead into shared memory instead; 0 = into registers", default=0
    )
    in_flight: int = knob(
        "if", whole(), "instruction groups that may be unfinished while an operand is prepared", default=1
    )
    stagger: int = knob(
        "sta",
        whole(0, 2),
        "what lets one of two warpgroups' epilogue meet the other's multiplications: 1 = each begins a pass when the "
        "other is two thirds through its own; 2 = only the first pass of the second one begins late, by about an "
        "epilogue",
        default=1,
    )
    swizzle: int = knob(
        "sw", flag(), "1 = fragments lie in shared memory in 32-byte swizzled order; 0 = plain", default=0
    )
    blocks: int = knob(
        "bl", whole(), "blocks per multiprocessor that registers and shared memory are divided for", default=1
    )
    overlap: int = knob("ov", flag(), "1 = a launch may begin before the one before it has ended", default=1)
    at_once: int = knob(
        "ao",
        whole(0),
        "n > 0 = a block makes a single pass and loads all its rows and weights at once, with n warpgroups that only "
        "load; weights are then unpacked into shared memory too",
        default=0,
    )
    early_release: int = knob(
        "er",
        flag(),
        "1 = a kept row's slot is filled anew as soon as no later kernel row or pass reads it, so that a ring shorter "
        "than a pass's rows will do; 0 = behind the pass",
        default=0,
    )
    flatten: int = knob(
        "fl",
        flag(),
        "1 = a 1x1 kernel with a stride and without padding takes the pixels of its output as one long row, as one "
        "with "
        "stride 1 always does; 0 = its output rows stay what they are",
        default=0,
    )
    tiles_m: int = knob(
        "tm", whole(), "tiles of 64 output channels multiplied with the same pixels in a pass: 1, 2", default=1
    )
    producers: int = knob("pr", whole(), "warpgroups that bring input rows into the ring, in turns: 1, 2", default=1)
    joined: int = knob(
        "jo",
        flag(),
        "1 = where rows do not matter (1x1, stride 1 or flatten, nhwcnc) the pixels of all groups of images follow one "
        "another, and tiles lie across their borders; 0 = each group has its own tiles",
        default=0,
    )
    image_groups: int = knob(
        "ig",
        whole(),
        "groups of 8 images of which one instruction takes the same pixels: 2 makes 7 pixels an instruction width",
        default=1,
    )
    half_rows: int = knob(
        "hr",
        flag(),
        "1 = the rows of an image are cut in the middle of a row where segments ask for it: a block of whole rows and "
        "a "
        "half has a narrower instruction for the half",
        default=0,
    )
    pass_parts: int = knob(
        "pp",
        flag(),
        "1 = where rows are not kept, a part is all rows of the image that a pass reads; 0 = it is one of them",
        default=0,
    )
    producer_late: int = knob(
        "pl", flag(), "1 = the producer asks for its own first parts when those of the consumers have come", default=0
    )
    lean_start: int = knob(
        "ls",
        flag(),
        "1 = nobody waits for the whole block at the start: consumers ask for their rows first, then for weights while "
        "the rows are on their way; 0 = weights first, and all warpgroups meet behind their first loads",
        default=0,
    )
    producer_registers: int = knob(
        "preg", whole(0), "registers of a producer thread; 0 = its loads and a few more", default=0
    )
    bulk_weights: int = knob(
        "bw",
        whole(0),
        "n > 0 = a block makes a single pass, and its weights come into shared memory by bulk copies; n neighbouring "
        "blocks form a cluster, and each copies a share to all of them",
        default=0,
    )
    weights_ahead: int = knob(
        "wa",
        whole(0),
        "with bulk_weights, n > 0 = a fragment's weights are read from shared memory when the n-th before it is "
        "unpacked; 0 = all of a loop body at its beginning",
        default=0,
    )
    late_parameters: int = knob(
        "lp",
        flag(),
        "with bulk_weights, 1 = a consumer asks for its requantization parameters behind its first row's arrival at "
        "the "
        "row's barrier; 0 = right behind that row's loads",
        default=0,
    )
    early_parameters: int = knob(
        "ep",
        flag(),
        "with bulk_weights, 1 = a consumer asks for them before it waits for the launch before, and its sums begin "
        "with "
        "what is added to them",
        default=0,
    )
    early_start: int = knob(
        "es",
        whole(0, 2),
        "with bulk_weights, 1 = consumers read the first weights and meet at one barrier behind their rows; 2 = the "
        "same, and the only consumer and the producer bring half of the first row each; 0 = rows are counted "
        "one by one",
        default=0,
    )
    duplicate_aware: str = switch(
        "dup.",
        choice(*SWITCH_VALUES["duplicate_aware"]),
        "full = an input pixel enters shared memory once and a tap is an address; none = the pixels of every tap are "
        "loaded and stored anew",
        default="full",
    )
    register_packing: bool = switch(
        "rp",
        choice(*SWITCH_VALUES["register_packing"]),
        "true = int4 values are packed in the registers that hold their sums; false = behind a way through "
        "shared memory",
        default=True,
    )
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), "of activations and outputs in memory", default="nhwcnc")

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.groups_m * self.groups_x * self.groups_y

    @property
    def threads(self) -> int:
        """Threads of a block: the consumers, and the producer warpgroups or those that load."""
        return 128 * (self.consumers + (self.at_once or self.producers))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The configuration with these fields (case-insensitive; the rest default).

        Raises InvalidInput, and Unsupported for a recorded kernel with a knob that is no more.
        """
        return super().from_dict(without_removed(named_once(data)))


WARPGROUP_KNOBS = tuple(name for name, row in WarpgroupConfig.rows.items() if not row.switch)
REMOVED = {"groups_k": 1, "share": 1, "staging": 0}
"""Knobs that did not pay and are no more, with the value that means a kernel without them: records name them."""


def without_removed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recorded configuration without removed knobs. Raises Unsupported where the kernel had one."""
    for name, without in REMOVED.items():
        if values.get(name, without) != without:
            raise Unsupported(
                f"{name}={values[name]}: a knob that was removed, and kernels with it cannot be built any more; "
                f"of recorded kernels those without it ({name}={without}) are known"
            )
    return {name: value for name, value in values.items() if name not in REMOVED}
