"""Several charts in one place: buttons choose which is shown, keys and the pointer read its values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from subbyte.errors import InvalidInput
from subbyte_widgets._base import script
from subbyte_widgets._given import expect
from subbyte_widgets._picked import SCRIPTS, Picker
from subbyte_widgets._turned import style
from subbyte_widgets.charts.static import drawable, marks, page_svg, scoped_style

HERE = Path(__file__).parent
CLASS = "sb-charts-svg"
READ = "Arrow keys, a click or the pointer read a value."


class ChartChoice(Picker):
    """Shows one of several charts; it follows the theme of the page.

    ``charts``: results of :func:`subbyte_widgets.plot` or ``record.plot()``, by the label of their button. The browser
    writes ``variant``, the chosen button, and ``chosen``, the index of a mark in its chart. Raises InvalidInput if
    there is no chart, and for one that has no static picture (parallel coordinates).
    """

    _esm = script(*SCRIPTS, HERE / "view.js")
    _css = style(HERE) + scoped_style(CLASS)

    def __init__(self, charts: Mapping[str, Any], **options: Any) -> None:
        chosen: dict[str, Any] = {name: options.pop(name) for name in ("variant", "chosen") if name in options}
        super().__init__(**options)
        self.show(charts)
        for name, value in chosen.items():
            setattr(self, name, value)

    def show(self, charts: Mapping[str, Any]) -> None:
        """Offer other charts. Raises InvalidInput like the constructor."""
        expect(self, charts, (Mapping,), "give charts by name: {'speed': record.plot()}")
        self.charts = dict(charts)
        figures = {name: _plain(name, one) for name, one in charts.items()}
        if not figures:
            raise InvalidInput("ChartChoice: there is no chart to show; give at least one")
        what = {name: f"{one.alternative}." for name, one in charts.items()}
        pictures = {name: page_svg(one, charts[name].alternative, CLASS) for name, one in figures.items()}
        says = {name: marks(one) for name, one in figures.items()}
        self.fill("chart", pictures, says, {name: READ if found else "" for name, found in says.items()}, what)

    def drawn(self) -> str:
        """The chart that is shown."""
        return str(self.data["pictures"][self.variant])

    def to_svg(self) -> str:
        """The current chart, self-contained."""
        return str(self.charts[self.variant].to_svg())


def _plain(name: str, chart: Any) -> dict[str, Any]:
    """A chart's data and layout as lists, numbers and text."""
    if not hasattr(chart, "to_plotly_json_plain"):
        raise InvalidInput(f"ChartChoice: {name!r} is a {type(chart).__name__}; give what plot() gives")
    figure: dict[str, Any] = chart.to_plotly_json_plain()
    if not drawable(figure):
        raise InvalidInput(f"ChartChoice: {name!r} has no static picture; show it by itself with .plot()")
    return figure
