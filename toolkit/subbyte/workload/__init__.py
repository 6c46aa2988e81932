"""What to compute: convolution shapes, named networks, free specs."""

from subbyte.workload.conv import BATCH_GROUP, CHANNEL_BLOCK, ConvWorkload, ceil_div

__all__ = ["BATCH_GROUP", "CHANNEL_BLOCK", "ConvWorkload", "ceil_div"]
