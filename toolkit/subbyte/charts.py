"""Connects records with the package that draws charts. Nothing here draws, and the library imports no plotting package.

``import subbyte_widgets`` calls :func:`register` for every kind of record that it can draw; from then on, such a
record's ``.plot()`` returns a chart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from subbyte.errors import InvalidInput, MissingDependency

Drawer = TypeVar("Drawer", bound=Callable[..., Any])
_drawers: dict[type, Callable[..., Any]] = {}


def register(kind: type) -> Callable[[Drawer], Drawer]:
    """Decorator: the function draws records of type ``kind`` and its subclasses; it takes the record."""

    def add(draw: Drawer) -> Drawer:
        _drawers[kind] = draw
        return draw

    return add


def draw(record: Any, **options: Any) -> Any:
    """The chart of a record. Raises MissingDependency when no plotting package is loaded, InvalidInput for a record
    without a chart."""
    if not _drawers:
        raise MissingDependency('charts come with the views: run `import subbyte_widgets` (pip install "subbyte[lab]")')
    for base in type(record).__mro__:
        if base in _drawers:
            return _drawers[base](record, **options)
    known = ", ".join(sorted(kind.__name__ for kind in _drawers))
    raise InvalidInput(f"there is no chart of {type(record).__name__}; there are charts of {known}")


class Charted:
    """Mixin: ``plot()`` returns an interactive chart once the package of the views is imported."""

    def plot(self, **options: Any) -> Any:
        """A plotly figure of this record. Needs ``import subbyte_widgets``; the options are those of its chart.

        Raises MissingDependency without the views, InvalidInput for a record without a chart or a wrong option.
        """
        return draw(self, **options)
