"""A block whose consumers process lists of live blocks; everything else is the pipeline's."""

from __future__ import annotations

from subbyte.families.wgmma.blocks.emit.consume import ListedIteration
from subbyte.families.wgmma.blocks.emit.fetch import ListedFetch
from subbyte.families.wgmma.emit.block import Block
from subbyte.families.wgmma.pipeline.emit.kernel import pipeline


def listed(block: Block) -> None:
    """Emit everything after the coordinates."""
    pipeline(block, ListedFetch, ListedIteration)
