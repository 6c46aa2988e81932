"""Two layouts as orders of the same data, and what one access of a warp moves in each.

Here a *datum* is one pixel of one image and 32 channels: the 16 bytes that a lane of the kernel's load moves. Its
address comes from :func:`subbyte.numerics.layout.relayout`, the requested data from :func:`subbyte.accesses` of a
kernel. Source: Choi et al. 2022 (arXiv 2202.06819), section 3.3 and Figure 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from subbyte.arguments import checked
from subbyte.device.memory import SECTOR, sectors
from subbyte.errors import InvalidInput
from subbyte.families.registry import usual
from subbyte.numerics.layout import BLOCK_WORDS, relayout
from subbyte.technique.accesses import Access, accesses
from subbyte.technique.record import InfoRecord, Table
from subbyte.workload import workload as workload_named
from subbyte.workload.conv import BATCH_GROUP

LAYOUTS = ("nhwc", "nhwcnc")
DATUM_BYTES = 4 * BLOCK_WORDS
MOST_CHANNELS = 64
LAYER = "n8h1w4c{channels}k32r1s1p0"
"""Four pixels of 8 images and 32 or 64 channels: at most 1024 bytes, small enough to show completely."""
_KNOBS = {"blk_row_warps": 1, "blk_col_warps": 1, "warp_row_tiles": 4, "warp_col_tiles": 1, "tile_height": 1,
          "chunk": 1}  # fmt: skip


@dataclass(frozen=True)
class LayoutOrder(InfoRecord):
    """A small tensor in two orders. ``data``: (image, pixel, channel block) of each datum, in NHWC order.

    By layout: ``bytes`` is the address of each datum; ``moved`` the number of 32-byte sectors moved after the first 0,
    1 ... 32 lanes; ``share`` the fraction of the moved bytes that the lanes requested. ``lanes``: the datum that each
    lane requests.
    """

    workload: str
    pixels: int
    blocks: int
    data: tuple[tuple[int, int, int], ...]
    bytes: Mapping[str, tuple[int, ...]]
    lanes: tuple[int, ...]
    moved: Mapping[str, tuple[int, ...]]
    share: Mapping[str, float]

    def title(self) -> str:
        """One line that names the tensor and what the access costs."""
        counts = ", ".join(f"{self.moved[name][-1]} sectors in {name}" for name in self.moved)
        return f"order of {self.workload} in memory: one access of {len(self.lanes)} lanes moves {counts}"

    def table(self) -> Table:
        """One row per datum."""
        rows = [(*datum, *(self.bytes[name][i] for name in self.bytes)) for i, datum in enumerate(self.data)]
        return Table(("image", "pixel", "channel block", *(f"byte in {name}" for name in self.bytes)), tuple(rows))

    def sector(self, layout: str, datum: int) -> int:
        """The 32-byte sector that contains a datum."""
        return self.bytes[layout][datum] // SECTOR


@checked
def layout_order(channels: int = MOST_CHANNELS) -> LayoutOrder:
    """The input of a small layer in NHWC and NHWCnc, and the first load of a warp of its kernel.

    ``channels``: 32 or 64. More would only lie farther apart. Raises InvalidInput for another number.
    """
    if channels not in (MOST_CHANNELS // 2, MOST_CHANNELS):
        raise InvalidInput(f"channels {channels}: orders are shown of 32 or 64 channels")
    layer = LAYER.format(channels=channels)
    found = workload_named(layer)
    blocks = found.channel_blocks
    data = tuple(product(range(BATCH_GROUP), range(found.w), range(blocks)))
    loads = {name: _load(layer, name) for name in LAYOUTS}
    first = loads[LAYOUTS[0]]
    axes = [first.axes.index(axis) for axis in ("image", "column", "channel block")]
    asked = [tuple(place[axis] for axis in axes) for place in first.places if place is not None]
    return LayoutOrder(
        workload=layer,
        pixels=found.w,
        blocks=blocks,
        data=data,
        bytes={name: _bytes(name, found.w, blocks) for name in LAYOUTS},
        lanes=tuple(data.index((image, pixel, block)) for image, pixel, block in asked),
        moved={name: _moved(load) for name, load in loads.items()},
        share={name: load.sectors.efficiency for name, load in loads.items() if load.sectors is not None},
    )


def _load(layer: str, layout: str) -> Access:
    config = usual().plain.with_values(_KNOBS)
    return accesses(layer, config, layout, arch="sm_80").of("activation load")[0]


def _bytes(layout: str, pixels: int, blocks: int) -> tuple[int, ...]:
    """The address of each datum: words that carry the datum's number are laid out, then located."""
    count = BATCH_GROUP * pixels * blocks
    named = np.repeat(np.arange(count, dtype=np.uint32), BLOCK_WORDS).reshape(BATCH_GROUP, 1, pixels, -1)
    words = named if layout == "nhwc" else relayout(named, "nhwc", layout)
    _, first = np.unique(words.reshape(-1), return_index=True)
    return tuple(int(word) * 4 for word in first)


def _moved(load: Access) -> tuple[int, ...]:
    """Sectors touched by the first n lanes, for n from none to all."""
    known = [address for address in load.addresses if address is not None]
    return tuple(len(sectors(known[:count], load.bytes_per_lane).sectors) for count in range(len(known) + 1))
