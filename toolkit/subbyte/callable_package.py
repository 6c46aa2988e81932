"""Packages that share their name with their main function can be called like it.

``import subbyte.space`` puts the package in the place of the function ``subbyte.space``; calling it must go on working.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def make_callable(name: str, function: Callable[..., Any]) -> None:
    """Let the imported package ``name`` be called; the call goes to ``function``."""

    class CallablePackage(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

    sys.modules[name].__class__ = CallablePackage
