"""How all charts look, are shown in a notebook and are written to a file."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import plotly.graph_objects as go
from IPython.display import display

from subbyte.errors import InvalidInput, MissingDependency, did_you_mean
from subbyte.html import Markup, element, join, picture
from subbyte.html import text as escaped
from subbyte_widgets._cells import page_without_views, running_cell
from subbyte_widgets.charts.spoken import named, naming, spoken
from subbyte_widgets.charts.static import drawable, static_svg
from subbyte_widgets.svg import OKABE_ITO

INK = "#777777"
"""Text and axes of a chart that is transparent, more than 4:1 on white and on JupyterLab's dark ground alike. Beside a
view they take the page's own ink instead (sight.js), and so they do on a page that shows no view (:data:`INKED`)."""
THEMES = {"auto": (INK, "rgba(0,0,0,0)"), "light": ("#1f2328", "#ffffff"), "dark": ("#e6e6e6", "#111111")}
GRID = "rgba(128,128,128,0.25)"
WIDTH, WIDTH_BELOW = 60, 84
"""Characters in a line of a title, and of what stands below: what fits a notebook in a window 700 pixels wide."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
PATTERNS = ("", "/", ".", "x", "-", "|")
TALL = 600
"""Pixels of height up to which a legend a fifth of the plot below it stands close to the axis."""
CONFIG = {"showSendToCloud": False, "displaylogo": False, "displayModeBar": False}
"""Not "responsive": JupyterLab sizes charts, and a responsive one has no height left after a change of theme."""
MIME = "application/vnd.plotly.v1+json"
US = "us"
BREAK = "<br>"
GREY = f"rgb({int(INK[1:3], 16)}, {int(INK[3:5], 16)}, {int(INK[5:7], 16)})"
INKED = element(
    "style",
    Markup(
        " ".join(
            f'.js-plotly-plot [style*="{what}: {GREY}"] {{ {what}: var(--jp-content-font-color1, {INK}) !important; }}'
            for what in ("fill", "stroke")
        )
    ),
    class_="sb-ink",
)
"""A style for the page around a chart: words and lines in the page's ink."""
Value = TypeVar("Value")


class Chart(go.Figure):
    """A plotly figure that loads nothing from outside: no cloud button, no logo, plotly.js from the installed package.

    A page that cannot run scripts shows a static picture (or ``table``, HTML, if there is none); ``alternative`` states
    the finding in words.
    """

    def __init__(self, *args: Any, table: str = "", alternative: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table, self._alternative = table, alternative

    @property
    def alternative(self) -> str:
        """The finding in words."""
        return str(self._alternative)

    def _ipython_display_(self) -> None:
        if running_cell()[0]:  # a page of JupyterLab; a view on it would have brought the style
            ink = INKED if page_without_views() else ""
            display({"text/html": ink + naming(self.alternative, self.spoken()), "text/plain": ""}, raw=True)
        display(self._repr_mimebundle_(), raw=True)

    def _repr_mimebundle_(self, *_args: Any, **_kwargs: Any) -> dict[str, Any]:
        drawn = self.to_plotly_json_plain()
        page = join(element("p", self.alternative), Markup(self._table))
        if drawable(drawn):
            encoded = base64.b64encode(static_svg(drawn, self.alternative).encode()).decode()
            page = picture(f"data:image/svg+xml;base64,{encoded}", self.alternative)
        return {MIME: {**drawn, "config": dict(CONFIG)}, "text/html": page, "text/plain": repr(self)}

    def spoken(self) -> str:
        """The chart in a few sentences, for screen readers: kind, axes with their units written out, values."""
        return spoken(self.to_plotly_json_plain())

    def to_svg(self) -> str:
        """A static picture, drawn without a browser. Raises InvalidInput for parallel coordinates."""
        drawn = self.to_plotly_json_plain()
        if not drawable(drawn):
            raise InvalidInput("this chart has no static picture: save it as .html, or as .png with kaleido")
        return static_svg(drawn, self.alternative)

    def to_plotly_json_plain(self) -> dict[str, Any]:
        """Data and layout as lists, numbers and text."""
        import json

        plain: dict[str, Any] = json.loads(self.to_json())
        return plain

    def __repr__(self) -> str:
        return f"<Chart: {self.alternative}>"

    def to_html(self, *args: Any, **kwargs: Any) -> str:
        """A page, or a part of one, with plotly.js inside: it needs no network."""
        given = {
            "config": dict(CONFIG),
            "include_plotlyjs": True,
            "post_script": named(self.alternative, self.spoken()),
        }
        return str(super().to_html(*args, **given | kwargs))

    def save(self, path: str | Path) -> Path:
        """Write ``.html`` (interactive, self-contained), ``.svg`` (drawn here), ``.png`` or ``.pdf``.

        Raises InvalidInput for other extensions, and MissingDependency for .png and .pdf if kaleido is missing.
        """
        target = Path(path)
        if target.suffix == ".html":
            target.write_text(self.to_html(), encoding="utf-8")
        elif target.suffix == ".svg":
            target.write_text(self.to_svg(), encoding="utf-8")
        elif target.suffix in (".png", ".pdf"):
            if find_spec("kaleido") is None:
                raise MissingDependency(
                    f"{target.name}: needs kaleido and Chromium (pip install kaleido); or save {target.stem}.svg"
                )
            self.write_image(str(target), width=900, height=int(self.layout.height or 460))
        else:
            raise InvalidInput(f"chart file {target}: the name must end in .html, .svg, .png or .pdf")
        return target


def chart(
    traces: Sequence[Any],
    title: str,
    below: str = "",
    x: Mapping[str, Any] | None = None,
    y: Mapping[str, Any] | None = None,
    record: Any = None,
    theme: str = "auto",
    height: int = 460,
    **layout: Any,
) -> Chart:
    """A chart: ``title`` states the finding, ``below`` says what was measured; ``record`` gives the table beside it."""
    ink, ground = pick("theme", theme, THEMES)
    table = record._repr_html_() if hasattr(record, "_repr_html_") else ""
    figure = Chart(traces, table=table, alternative=title)
    for trace in figure.data:
        trace.update(shown_as_written(trace.to_plotly_json()))
    axis = {"gridcolor": GRID, "linecolor": ink, "zerolinecolor": ink, "zeroline": False, "ticks": "outside",
            "tickcolor": ink, "automargin": True, "title": {"standoff": 8}}  # fmt: skip
    wide, under = (BREAK.join(map(label, wrapped(*one))) for one in ((title, WIDTH), (below, WIDTH_BELOW)))
    figure.update_layout(
        title={"text": str(element("b", Markup(wide))), "subtitle": {"text": under, "font": {"size": 13, "color": ink}},
               "font": {"size": 16, "color": ink}, "x": 0.01, "xanchor": "left", "y": 1, "yanchor": "top",
               "yref": "container", "pad": {"t": 14}},
        font={"family": "system-ui, Segoe UI, Helvetica, Arial, sans-serif", "size": 14, "color": ink},
        paper_bgcolor=ground, plot_bgcolor=ground, colorway=list(OKABE_ITO), height=height,
        margin={"l": 70, "r": 24, "t": 78 + 20 * wide.count(BREAK) + 17 * under.count(BREAK), "b": 64},
        legend={"orientation": "h", "y": -0.2 if height <= TALL else -90 / height, "yanchor": "top", "x": 0},
        hoverlabel={"font": {"size": 13}}, bargap=0.25, template="none",
    )  # fmt: skip
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    figure.update_xaxes(**_axis(x))
    figure.update_yaxes(**_axis(y))
    figure.update_layout(**layout)
    return figure


def wrapped(words: str, width: int) -> list[str]:
    """Text wrapped into lines; a number stays with its percent sign, names are not broken at hyphens, and the last line
    is not a single word where the others can spare one."""
    kept = words.replace(" %", "\u00a0%")
    lines = textwrap.wrap(kept, width, break_on_hyphens=False)
    for narrower in range(width - 1, width // 2, -1):
        if len(lines) < 2 or " " in lines[-1]:
            break
        other = textwrap.wrap(kept, narrower, break_on_hyphens=False)
        lines = other if len(other) == len(lines) else lines
    return [line.replace("\u00a0", " ") for line in lines]


LABELS = ("name", "legendgroup", "x", "y", "text", "customdata", "dimensions", "label", "ticktext")
"""What of a trace plotly shows as text, and reads as a kind of HTML."""


def shown_as_written(trace: Mapping[str, Any]) -> dict[str, Any]:
    """The labels of a trace that hold text, escaped: names come from files."""
    return {key: _labels(value) for key, value in trace.items() if key in LABELS and _holds_text(value)}


def _holds_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_text(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(map(_holds_text, value))
    return isinstance(value, str) or getattr(getattr(value, "dtype", None), "kind", "") in ("O", "U")


def _labels(value: Any) -> Any:
    if isinstance(value, str):
        return label(value)
    if isinstance(value, Mapping):
        return {key: _labels(item) for key, item in value.items()}
    if isinstance(value, list | tuple) or hasattr(value, "tolist"):
        return [_labels(item) for item in (value.tolist() if hasattr(value, "tolist") else value)]
    return value


def label(words: str) -> str:
    """Words as plotly shows them, not as the tags that it would read in them."""
    return str(escaped(words, quotes=False))


def _axis(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """An axis as the charts describe it, with its words escaped."""
    return {key: _labels(value) if key in ("title", "categoryarray") else value for key, value in (given or {}).items()}


def pick(what: str, given: str, known: Mapping[str, Value]) -> Value:
    """The value of a name. Raises InvalidInput with the closest names."""
    if given not in known:
        raise InvalidInput(f"{what}={given!r}: {did_you_mean(str(given), known)}")
    return known[given]


def colour(place: int, alpha: float = 1.0) -> str:
    """The colour of the series at ``place``; with ``alpha`` below 1, as a see-through one."""
    text = OKABE_ITO[place % len(OKABE_ITO)]
    if alpha >= 1:
        return text
    red, green, blue = (int(text[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def symbol(place: int) -> str:
    """The mark of the points of the series at ``place``: where a colour comes again, its mark is another."""
    return SYMBOLS[(place + place // len(OKABE_ITO)) % len(SYMBOLS)]


def hatched(place: int) -> dict[str, Any]:
    """The marker of the bars of the series at ``place``: a colour and a pattern, so that no one needs the colour."""
    shape = PATTERNS[(place + place // len(OKABE_ITO)) % len(PATTERNS)]
    pattern = {"shape": shape, "fillmode": "overlay", "fgopacity": 0.25, "solidity": 0.14}
    return {"color": colour(place), "pattern": pattern}


def spans(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> dict[str, Any]:
    """Error bars from values to the ends of their intervals."""
    up = [high - value for value, high in zip(values, highs, strict=True)]
    down = [value - low for value, low in zip(values, lows, strict=True)]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "color": INK, "thickness": 1.6}
