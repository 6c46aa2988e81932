"""Where the taps of a convolution start in shared memory, for kernels that multiply out of it."""

from __future__ import annotations

from subbyte.arguments import checked
from subbyte.families.wgmma.explain.taps import PIXEL_BYTES, StoredRow, Tap, TapAddresses
from subbyte.spaces.configuration import Configuration
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload

__all__ = ["PIXEL_BYTES", "StoredRow", "Tap", "TapAddresses", "tap_addresses"]


@checked
def tap_addresses(
    workload: ConvWorkload | str, config: Configuration | None = None, output_row: int = 0
) -> TapAddresses:
    """The taps of an output row of the first block, first channels. ``config`` defaults to the one that would be tried
    first.

    Raises InvalidInput for a configuration that cannot be built, or a row that its first block does not compute.
    """
    return explained(TapAddresses, workload, config, row=output_row)
