"""One of each view and chart, with a hostile name wherever a name may stand; and what of a page came from a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any

import subbyte_widgets as widgets
from hostile import samples
from hostile.made_up import made_up
from subbyte.analysis import Ablation, Roofline, SpeedLimits
from subbyte.analysis.origin import Origin
from subbyte.families.mma.config import MmaConfig
from subbyte.kernel.edit import EditReport
from subbyte.networks import NetworkTimeline
from subbyte.sparse import LayerBars, RowLowering, SpeedMap, TileSteps
from subbyte.technique.accesses import Accesses
from subbyte.technique.bits import bit_sum
from subbyte.technique.composition import plane_composition
from subbyte.technique.duplicates import duplicates
from subbyte.technique.folding import folding
from subbyte.technique.load_steps import LoadSteps, load_steps
from subbyte.technique.taps import tap_addresses
from subbyte.technique.tiling import tiling
from subbyte_widgets._base import View
from subbyte_widgets.charts import HOME
from subbyte_widgets.charts.style import BREAK
from subbyte_widgets.kernel_lab.attempt import Attempt, table
from subbyte_widgets.kernel_reader.editor import outcome_html

SPEC = "n8h9w9c32k32r3s3p1"
SMALL = MmaConfig(blk_row_warps=2, blk_col_warps=1, warp_row_tiles=4, warp_col_tiles=2, tile_height=2)
PLAIN = "a plain name"


class Pieces(HTMLParser):
    """The elements of a page with the names of their attributes, and what would run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: set[tuple[str, tuple[str, ...]]] = set()
        self.runs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))
        for name, value in attrs:
            calls = name.startswith("on") or str(value).strip().lower().startswith(("javascript:", "vbscript:"))
            if calls or (tag == "img" and not str(dict(attrs).get("src")).startswith("data:image/")):
                self.runs.append(f"<{tag} {name}={value!r}>")
        if tag in ("script", "iframe", "object", "embed", "base", "form"):
            self.runs.append(f"<{tag}>")


def pieces(page: str) -> Pieces:
    """What a page is made of."""
    parser = Pieces()
    parser.feed(page)
    parser.close()
    return parser


def injected(page: str, plain: str) -> list[str]:
    """What a hostile name put into ``page``: elements and attributes that the same page with a plain name lacks, and
    whatever would run."""
    found, expected = pieces(page), pieces(plain)
    new = [f"<{tag} {' '.join(names)}>" for tag, names in sorted(found.found - expected.found)]
    return [*new, *(one for one in found.runs if one not in expected.runs)]


def labels(figure: Any) -> str:
    """All texts of a plotly figure, one after the other, as plotly reads them: tags of its own and what is in them."""
    texts: list[str] = []

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            for one in value.values():
                visit(one)
        elif isinstance(value, list):
            for one in value:
                visit(one)
        elif isinstance(value, str):
            texts.append(value)

    visit(figure.to_plotly_json_plain())
    return "\n".join(texts)


@lru_cache(maxsize=1)
def _loads() -> LoadSteps:
    return load_steps(SPEC, SMALL)


def _tiling(name: str) -> View:
    return widgets.ConvolutionTiling(tiling(samples.named(name, SPEC), SMALL, arch="sm_80"))


@lru_cache(maxsize=32)
def _one(kind: str) -> Any:
    """A view that is used again: making it takes longer than drawing it."""
    return getattr(widgets, kind)()


def _speed(name: str) -> View:
    view = _one("SpeedOfLight")
    limits: SpeedLimits = samples.sample(SpeedLimits, name)
    roofs = made_up(Roofline, name, {"roofs": {name: 900.0}})
    view.show([limits], roofs)
    view.layer = name
    return view


def _layouts(name: str) -> View:
    view = widgets.LayoutView(samples.named(name, SPEC), SMALL)
    assert all(isinstance(record, Accesses) for record in view.records.values())
    return view


VIEWS: dict[str, Callable[[str], Any]] = {
    "BitProduct": lambda name: widgets.BitProduct(bit_sum(samples.named(name, f"{SPEC}:w1a2"))),
    "BitmapStepper": lambda name: widgets.BitmapStepper(samples.sample(TileSteps, name)),
    "ChartChoice": lambda name: widgets.ChartChoice({name: samples.sample(Ablation, name).plot()}),
    "ConvolutionTiling": _tiling,
    "DuplicateMap": lambda name: widgets.DuplicateMap(duplicates(samples.named(name, SPEC), (1, 4))),
    "FragmentExplorer": lambda name: _one("FragmentExplorer"),
    "KernelReader": lambda name: widgets.KernelReader(samples.kernel(name)),
    "LayerBars": lambda name: widgets.LayerBars(samples.sample(LayerBars, name)),
    "LayerOrigin": lambda name: widgets.LayerOrigin(samples.sample(Origin, name)),
    "LayoutOrder": lambda name: _one("LayoutOrder"),
    "LayoutView": _layouts,
    "LiveCurve": lambda name: widgets.LiveCurve(samples.study_record(name)),
    "LoadStepper": lambda name: widgets.LoadStepper([replace(_loads(), workload=samples.named(name, SPEC))]),
    "NetworkTimeline": lambda name: widgets.NetworkTimeline(samples.sample(NetworkTimeline, name)),
    "PackingStepper": lambda name: _one("PackingStepper"),
    "PlaneComposition": lambda name: widgets.PlaneComposition(plane_composition(samples.named(name, f"{SPEC}:w1a2"))),
    "SpaceExplorer": lambda name: widgets.SpaceExplorer(samples.landscape(name)),
    "SparseIm2col": lambda name: widgets.SparseIm2col(samples.sample(RowLowering, name)),
    "SpeedOfLight": _speed,
    "SpeedSurface": lambda name: widgets.SpeedSurface(samples.sample(SpeedMap, name)),
    "StorePath": lambda name: _one("StorePath"),
    "ThresholdFolding": lambda name: widgets.ThresholdFolding([folding(samples.named(name, f"{SPEC}:w1a2"))]),
    "TileStrides": lambda name: _one("TileStrides"),
    "TapWindows": lambda name: widgets.TapWindows(tap_addresses(samples.named(name, "n8h8w8c64k64r3s3p1"))),
    "TuningMonitor": lambda name: widgets.TuningMonitor(samples.study_record(name)),
}
"""One of each drawn view."""


def drawn_views() -> Iterator[type[View]]:
    """Every class of a drawn view."""
    for name in dir(widgets):
        kind = getattr(widgets, name)
        if isinstance(kind, type) and issubclass(kind, View):
            yield kind


def page_of(view: Any) -> str:
    """What a view shows without a kernel, and its picture alone."""
    return str(view.static()["text/html"]) + str(view.to_svg())


def page_of_error(kind: str, name: str) -> str:
    """What a view shows that could not do what the name asked for."""
    view = _one(kind)
    view.error, before = name, view.error
    page = page_of(view)
    view.error = before
    return page


def page_of_chart(kind: type, name: str) -> str:
    """What a chart shows without scripts, its picture alone, and the labels that plotly reads."""
    figure = samples.sample(kind, name).plot()
    breaks = BREAK  # long titles have some
    return str(figure._repr_mimebundle_()["text/html"]) + figure.to_svg() + labels(figure) + breaks


CHARTS = tuple(HOME)
"""Every kind of record that has a chart."""


def page_of_parts(name: str) -> str:
    """Pieces of HTML that views put together themselves."""
    attempt = Attempt(MmaConfig(), False, name, name, name, 1.5)
    landscape = samples.landscape(name)
    report = EditReport(False, f"{name}\n{name}", name, 1.0)
    return table([attempt, replace(attempt, ok=True)], landscape) + outcome_html(report)
