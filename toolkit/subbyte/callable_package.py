"""Packages that share their name with their main function can be called like that function.

``import subbyte.space`` replaces the function ``subbyte.space`` with the package, and calling it must still work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Make the imported package ``name`` callable; calls go to ``function``."""

    class CallablePackage(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    sys.modules[name].__class__ = CallablePackage
