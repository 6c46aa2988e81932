"""How a convolution may be scheduled: configurations, constraints with reasons, spaces."""

from subbyte.callable_package import make_callable
from subbyte.schedule.config import ConvConfig
from subbyte.space.constraints import why_not
from subbyte.space.space import Space, space
from subbyte.space.values import KINDS, value_lists

__all__ = ["KINDS", "ConvConfig", "Space", "space", "value_lists", "why_not"]

make_callable(__name__, space)
