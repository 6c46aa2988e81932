"""Imports that leave a package out which others import where it is installed, and which takes longer than they do."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Refused(MetaPathFinder):
    """Does not find a package for one thread; others may import it meanwhile."""

    def __init__(self, package: str) -> None:
        self.package, self.thread = package, threading.get_ident()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse, or leave it to the other finders."""
        if name == self.package and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is left out here", name=name)


@contextmanager
def without(package: str) -> Iterator[None]:
    """Inside, this thread's import of a package fails as if it were not installed, unless it is loaded already."""
    refused = _Refused(package)
    sys.meta_path.insert(0, refused)
    try:
        yield
    finally:
        sys.meta_path.remove(refused)
