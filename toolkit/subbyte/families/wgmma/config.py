"""What the configurations of both wgmma kernels share.

Terms: a *warpgroup* is four warps that issue one instruction together. *Consumers* multiply; *producers* load input
rows into the pipeline. A *fragment row* is ``tile_width`` neighbouring output pixels of one output row, for 8 images
each (or for several groups of 8, ``pixels``): the columns of one wgmma. A *tile iteration* of a consumer is
``tile_rows`` fragment rows times 64 output channels (or 128, ``tiles_m``). A *stage* of the pipeline is one input
row, or a channel group of it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from subbyte.families.wgmma.schedule import Schedule
from subbyte.spaces.configuration import Configuration

SWITCH_VALUES: dict[str, tuple[Any, ...]] = {
    "duplicate_aware": ("full", "none"),
    "register_packing": (True, False),
    "layout": ("nhwcnc", "nhwc"),
}
"""The values of each switch, the one with the technique first."""

RENAMED = {
    "groups_m": "consumers_m", "groups_x": "consumers_n", "groups_y": "consumers_rows", "filter_passes": "m_iterations",
    "split": "cluster_split_k", "ring": "stages", "overlap": "dependent_launch", "bulk_weights": "multicast",
    "pass_parts": "stage_per_iteration", "joined": "flat_batch",
}  # fmt: skip
"""Knobs that had other names in earlier versions."""
MERGED = {
    "keep_rows": "row_reuse", "early_release": "row_reuse", "pass_parts": "row_reuse", "producer_late": "start",
    "lean_start": "start", "joined": "pixels", "flatten": "pixels", "image_groups": "pixels", "half_rows": "pixels",
    "late_parameters": "parameters", "early_parameters": "parameters",
}  # fmt: skip
"""Knobs of earlier versions that are now values of another knob."""
GONE = ("dependent_launch",)
"""Knobs of earlier versions that no longer exist; their fixed effect is part of the schedule."""

WIDTH = "output pixels (8 images each) of one instruction: its N / 8"
CONSUMERS_M = "consumers along the output channels, 64 each"
CONSUMERS_N = "consumers along the output row"
SEGMENTS = "segments that the rows of an image are divided into, one block each"
SPLIT_K = "blocks of a cluster that share the input channels of a tile and add up in distributed shared memory"
UNROLL = "pairs of 32-channel blocks in one loop body: how far weights are fetched ahead in registers"
IN_FLIGHT = "instruction groups that may be unfinished while the next operand is prepared"
PACKING = "true = int4 values are packed in the registers that hold their sums; false = through shared memory"
LAYOUT = "of activations and outputs in memory"


_SCHEDULED = frozenset(Schedule.__dataclass_fields__)


class WgmmaConfig(Configuration):
    """A schedule of either kernel. The rules of its kernel decide whether it can be built, not this class."""

    tile_width: int
    tile_rows: int
    cluster_split_k: int

    @property
    def schedule(self) -> Schedule:
        """The same choices as geometry, memory and emitter need them."""
        raise NotImplementedError

    def scheduled(self, **meant: int) -> Schedule:
        """A schedule from the knobs with the same names; ``meant`` provides the other values."""
        own: dict[str, Any] = {name: value for name, value in vars(self).items() if name in _SCHEDULED}
        return Schedule(**{**own, **meant})

    def former_value(self, name: str) -> object:
        """The value that a field of earlier versions would have."""
        value: object = getattr(self.schedule, RENAMED.get(name, name))
        return value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Supports fields of earlier versions."""
            kind = type(self).__name__
            if name not in RENAMED and name not in MERGED and name not in GONE:
                raise AttributeError(f"{kind} has no field {name!r}")
            warnings.warn(f"{name}: a field of earlier versions; see {kind}", DeprecationWarning, stacklevel=2)
            return self.former_value(name)

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.schedule.consumers

    @property
    def threads(self) -> int:
        """Threads per block."""
        return self.schedule.threads
