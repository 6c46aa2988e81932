"""How a convolution may be scheduled: configurations, constraints with reasons, spaces."""

from subbyte.callable_package import make_callable
from subbyte.schedule.config import ConvConfig
from subbyte.space.constraints import why_not
from subbyte.space.space import KINDS, Space, space

__all__ = ["KINDS", "ConvConfig", "Space", "space", "why_not"]

make_callable(__name__, space)
