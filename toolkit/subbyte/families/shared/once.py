"""A property of a plan that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    once = cached_property
else:

    class once(cached_property):
        """``functools.cached_property`` without its lock, which before Python 3.12 took longer than most of what plans
        compute: a search makes thousands of plans. Two threads may compute the same value twice, which is harmless."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            super().__init__(function)
            self.function, self.name = function, function.__name__

        def __get__(self, plan: Any, owner: Any = None) -> Any:
            if plan is None:
                return self
            value = vars(plan)[self.name] = self.function(plan)
            return value
