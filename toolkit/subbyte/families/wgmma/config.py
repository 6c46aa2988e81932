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

    tile_width: int = knob("tw", 28, whole(), "output pixels of a fragment row", always=True)
    tile_rows: int = knob("tr", 1, whole(), "fragment rows of a pass; they share weights", always=True)
    groups_m: int = knob("gm", 1, whole(), "consumer warpgroups along the output channels, 64 each", always=True)
    groups_x: int = knob("gx", 1, whole(), "consumer warpgroups along the output row")
    groups_y: int = knob("gy", 1, whole(), "consumer warpgroups on alternating passes")
    segments: int = knob("sg", 1, whole(), "parts of the output rows of an image, one block each", always=True)
    filter_passes: int = knob(
        "fp", 1, whole(), "tiles of output channels that a block computes one after the other from the same input"
    )
    split: int = knob(
        "sp", 1, whole(), "blocks of a cluster that share the input channels and add up in distributed shared memory"
    )
    channel_groups: int = knob("cg", 1, whole(), "parts in which the input channels of a row enter the ring")
    ring: int = knob("ri", 4, whole(), "such parts in flight", always=True)
    keep_rows: int = knob(
        "kr", 1, flag(),
        "1 = a row stays in the ring until no later pass needs it; 0 = every pass loads its own rows, and groups_y "
        "warpgroups divide the rows of the same pass",
    )  # fmt: skip
    load_ahead: int = knob(
        "la",
        2,
        whole(),
        "parts that the producer has on their way from memory, in registers, while it stores one: 1, 2",
    )
    unroll: int = knob(
        "un", 1, whole(), "pairs of 32-channel blocks in one loop body: how far weights are fetched ahead in registers"
    )
    weight_ring: int = knob(
        "wr", 0, whole(0), "weight fragments fetched ahead into shared memory instead; 0 = into registers"
    )
    in_flight: int = knob("if", 1, whole(), "instruction groups that may be unfinished while an operand is prepared")
    stagger: int = knob(
        "sta", 1, whole(0, 2),
        "what lets one of two warpgroups' epilogue meet the other's multiplications: 1 = each begins a pass when the "
        "other is two thirds through its own; 2 = only the first pass of the second one begins late, by about an "
        "epilogue",
    )  # fmt: skip
    swizzle: int = knob("sw", 0, flag(), "1 = fragments lie in shared memory in 32-byte swizzled order; 0 = plain")
    blocks: int = knob("bl", 1, whole(), "blocks per multiprocessor that registers and shared memory are divided for")
    overlap: int = knob("ov", 1, flag(), "1 = a launch may begin before the one before it has ended")
    at_once: int = knob(
        "ao", 0, whole(0),
        "n > 0 = a block makes a single pass and loads all its rows and weights at once, with n warpgroups that only "
        "load; weights are then unpacked into shared memory too",
    )  # fmt: skip
    early_release: int = knob(
        "er", 0, flag(),
        "1 = a kept row's slot is filled anew as soon as no later kernel row or pass reads it, so that a ring shorter "
        "than a pass's rows will do; 0 = behind the pass",
    )  # fmt: skip
    flatten: int = knob(
        "fl", 0, flag(),
        "1 = a 1x1 kernel with a stride and without padding takes the pixels of its output as one long row, as one with "
        "stride 1 always does; 0 = its output rows stay what they are",
    )  # fmt: skip
    tiles_m: int = knob("tm", 1, whole(), "tiles of 64 output channels multiplied with the same pixels in a pass: 1, 2")
    producers: int = knob("pr", 1, whole(), "warpgroups that bring input rows into the ring, in turns: 1, 2")
    joined: int = knob(
        "jo", 0, flag(),
        "1 = where rows do not matter (1x1, stride 1 or flatten, nhwcnc) the pixels of all groups of images follow one "
        "another, and tiles lie across their borders; 0 = each group has its own tiles",
    )  # fmt: skip
    image_groups: int = knob(
        "ig", 1, whole(),
        "groups of 8 images of which one instruction takes the same pixels: 2 makes 7 pixels an instruction width",
    )  # fmt: skip
    half_rows: int = knob(
        "hr", 0, flag(),
        "1 = the rows of an image are cut in the middle of a row where segments ask for it: a block of whole rows and a "
        "half has a narrower instruction for the half",
    )  # fmt: skip
    pass_parts: int = knob(
        "pp", 0, flag(),
        "1 = where rows are not kept, a part is all rows of the image that a pass reads; 0 = it is one of them",
    )  # fmt: skip
    producer_late: int = knob(
        "pl", 0, flag(), "1 = the producer asks for its own first parts when those of the consumers have come"
    )
    lean_start: int = knob(
        "ls", 0, flag(),
        "1 = nobody waits for the whole block at the start: consumers ask for their rows first, then for weights while "
        "the rows are on their way; 0 = weights first, and all warpgroups meet behind their first loads",
    )  # fmt: skip
    producer_registers: int = knob("preg", 0, whole(0), "registers of a producer thread; 0 = its loads and a few more")
    bulk_weights: int = knob(
        "bw", 0, whole(0),
        "n > 0 = a block makes a single pass, and its weights come into shared memory by bulk copies; n neighbouring "
        "blocks form a cluster, and each copies a share to all of them",
    )  # fmt: skip
    weights_ahead: int = knob(
        "wa", 0, whole(0),
        "with bulk_weights, n > 0 = a fragment's weights are read from shared memory when the n-th before it is "
        "unpacked; 0 = all of a loop body at its beginning",
    )  # fmt: skip
    late_parameters: int = knob(
        "lp", 0, flag(),
        "with bulk_weights, 1 = a consumer asks for its requantization parameters behind its first row's arrival at the "
        "row's barrier; 0 = right behind that row's loads",
    )  # fmt: skip
    early_parameters: int = knob(
        "ep", 0, flag(),
        "with bulk_weights, 1 = a consumer asks for them before it waits for the launch before, and its sums begin with "
        "what is added to them",
    )  # fmt: skip
    early_start: int = knob(
        "es", 0, whole(0, 2),
        "with bulk_weights, 1 = consumers read the first weights and meet at one barrier behind their rows; 2 = the "
        "same, and the only consumer and the producer bring half of the first row each; 0 = rows are counted one by one",
    )  # fmt: skip
    duplicate_aware: str = switch(
        "dup.", choice(*SWITCH_VALUES["duplicate_aware"]),
        "full = an input pixel enters shared memory once and a tap is an address; none = the pixels of every tap are "
        "loaded and stored anew",
    )  # fmt: skip
    register_packing: bool = switch(
        "rp", choice(*SWITCH_VALUES["register_packing"]),
        "true = int4 values are packed in the registers that hold their sums; false = behind a way through shared memory",
    )  # fmt: skip
    layout: str = switch("", choice(*SWITCH_VALUES["layout"]), "of activations and outputs in memory")

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
