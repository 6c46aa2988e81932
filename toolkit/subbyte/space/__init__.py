"""How a convolution may be scheduled: configurations, constraints with reasons, spaces."""

from subbyte.space.config import ConvConfig

__all__ = ["ConvConfig"]
