"""A chart in words, for screen readers: its kind, its axes with their units written out, its values or their ranges."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

from subbyte.html import Markup, element
from subbyte_widgets.charts.static import drawable, marks

FEW = 12
"""Values that are all read out; of more, each series has its range."""
KINDS = {"bar": "Bar chart", "heatmap": "Map of cells", "parcoords": "Lines over parallel axes"}
UNITS = {"us": "microseconds", "TOPS": "tera-operations per second", "%": "percent",
         "log": "logarithmic"}  # fmt: skip
GIVE = """(chart, name, words) => {
  chart.setAttribute("role", "img");
  chart.setAttribute("aria-label", name);
  chart.setAttribute("aria-description", words);
  const ruler = document.getElementById("js-plotly-tester"); // where plotly measures words
  for (const part of [...chart.children, ruler]) part?.setAttribute("aria-hidden", "true");
}"""
"""Gives a chart's element its name and its words: what is inside it are lone numbers."""
NAME = f"""
for (const words of document.querySelectorAll(".sb-spoken")) {{
  const from = words.closest(".jp-OutputArea-child");
  const found = () => {{
    for (let one = from?.nextElementSibling; one; one = one.nextElementSibling) {{
      const chart = one.querySelector(".js-plotly-plot");
      if (chart) return chart;
    }}
    return null;
  }};
  let tries = 0;
  const wait = () => {{
    const chart = found();
    if (chart) ({GIVE})(chart, words.dataset.name, words.textContent);
    else if (from?.isConnected && ++tries < 150) setTimeout(wait, 200);
  }};
  wait();
}}"""
"""Names charts in JupyterLab, which draws each some time after the words about it."""


def spoken(figure: Mapping[str, Any]) -> str:
    """What a figure (plain data) shows, in a few sentences."""
    layout, traces = figure["layout"], figure["data"]
    kinds = dict.fromkeys(_kind(trace) for trace in traces if not _band(trace))
    parts = [" and ".join(kinds) or "Chart", *(_axis(layout, traces, axis) for axis in "xy")]
    under = layout.get("title", {}).get("subtitle", {}).get("text") or ""
    values = marks(figure) if drawable(figure) else []
    said = values if 0 < len(values) <= FEW else [_range(trace) for trace in traces if not _band(trace)]
    return ". ".join(_plain(part).rstrip(".") for part in [*parts, under, "; ".join(filter(None, said))] if part) + "."


def _band(trace: Mapping[str, Any]) -> bool:
    """Whether a trace only spreads another one, or has nothing."""
    return trace.get("fill") == "toself"


def _kind(trace: Mapping[str, Any]) -> str:
    if trace["type"] == "scatter":
        return "Line chart" if "lines" in trace.get("mode", "lines") else "Chart of points"
    return KINDS.get(trace["type"], "Chart")


def _axis(layout: Mapping[str, Any], traces: Any, axis: str) -> str:
    """Which values an axis has: its title with units in words, or its categories."""
    spec = layout.get(f"{axis}axis") or {}
    title = (spec.get("title") or {}).get("text") or ""
    where = {"x": "Horizontal axis", "y": "Vertical axis"}[axis]
    names = dict.fromkeys(str(one) for trace in traces for one in trace.get(axis, ()) if isinstance(one, str))
    words = [_in_words(title)] if title else []
    if spec.get("type") == "log" and "log" not in title:
        words.append("logarithmic")
    if names:
        words.append(", ".join(names) if len(names) <= FEW else f"{len(names)} names, {next(iter(names))} first")
    return f"{where}: {', '.join(words)}" if words else ""


def _in_words(title: str) -> str:
    return re.sub("|".join(rf"(?<!\w){re.escape(unit)}(?!\w)" for unit in UNITS), lambda found: UNITS[found[0]], title)


def _range(trace: Mapping[str, Any]) -> str:
    """How many values a trace has, and from where to where."""
    axis = "x" if trace.get("orientation") == "h" or any(isinstance(one, str) for one in trace.get("y", ())) else "y"
    rows = trace["z"] if trace["type"] == "heatmap" else [trace.get(axis) or ()]
    values = [one for row in rows for one in row if isinstance(one, int | float)]
    if "dimensions" in trace:
        return "axes: " + ", ".join(str(one.get("label", "")) for one in trace["dimensions"])
    if not values:
        return str(trace.get("name") or "")
    name = f"{trace['name']}: " if trace.get("name") else ""
    return f"{name}{len(values)} value{'s' * (len(values) > 1)} from {min(values):,.4g} to {max(values):,.4g}"


def _plain(words: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", words))


def naming(name: str, words: str) -> str:
    """HTML for the output before a chart in JupyterLab: the words, out of sight and without room, and the script that
    gives them to the chart."""
    style = element("style", Markup(".jp-OutputArea-child:has(> .jp-RenderedHTML > .sb-spoken) { display: none; }"))
    return (
        style + element("div", words, class_="sb-spoken", data_name=name, hidden="") + element("script", Markup(NAME))
    )


def named(name: str, words: str) -> str:
    """What plotly runs in a page of its own once the chart is drawn."""
    given = ", ".join(json.dumps(one).replace("<", "\\u003c") for one in (name, words))
    return f"({GIVE})(document.getElementById('{{plot_id}}'), {given});"
