"""How a warp of a warpgroup turns sums into packed words of the next layer's input, followed byte by byte."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.families.wgmma.explain import stores
from subbyte.families.wgmma.explain.stores import IMAGE_BYTES, IMAGES, PAIRS, PIXELS, PackedByte, PackedStores

__all__ = ["IMAGES", "IMAGE_BYTES", "PAIRS", "PIXELS", "PackedByte", "PackedStores", "packed_stores"]


@checked
def packed_stores(warp: int = 0) -> PackedStores:
    """The packed stores of one of the four warps of a warpgroup. Raises InvalidInput for another warp."""
    return stores.packed_stores(None, warp)
