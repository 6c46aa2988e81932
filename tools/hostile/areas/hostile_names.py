"""Names that would be markup or scripts, through everything that becomes HTML or SVG: no element comes from a name."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from hostile import samples, views
from hostile.harness import Case

CORPUS = Path(__file__).resolve().parents[3] / "tests" / "corpus" / "hostile_names.json"
PLAIN = views.PLAIN
EACH = 8
"""Names tried with each kind of record."""


@lru_cache(maxsize=1)
def corpus() -> tuple[str, ...]:
    """The names."""
    return tuple(json.loads(CORPUS.read_text(encoding="utf-8")))


def cases(rng: random.Random) -> Iterator[Case]:
    """Records first, then reports, charts, views and what a view says when it cannot do something."""
    names = corpus()

    def some(count: int) -> list[str]:
        return [names[0], *rng.sample(names[1:], count - 1)]

    for kind in samples.kinds():
        for name in some(EACH):
            yield _case(kind.__name__, name, lambda name, kind=kind: samples.sample(kind, name)._repr_html_())
    for report in (samples.TuningReport, samples.NetworkReport):
        for name in some(EACH):
            yield _case(f"page of {report.__name__}", name, lambda name, kind=report: _report(kind, name))
    for name in names:
        yield _case("parts of views", name, views.page_of_parts)
    for kind in views.CHARTS:
        for name in some(2):
            yield _case(f"chart of {kind.__name__}", name, lambda name, kind=kind: views.page_of_chart(kind, name))
    for view, make in views.VIEWS.items():
        for name in some(2):
            yield _case(view, name, lambda name, make=make: views.page_of(make(name)))
        for name in some(2):
            yield _case(f"error of {view}", name, lambda name, view=view: views.page_of_error(view, name))


def _report(kind: type, name: str) -> str:
    return str(samples.tuning_report(name, kind).to_html())


def _case(what: str, name: str, page: Callable[[str], str]) -> Case:
    def call() -> list[str]:
        return views.injected(page(name), _plain(what, page))

    return Case(f"{what}, {name!r:.60}", call, "answer", lambda found: found == [], seconds=60.0)


_PLAIN_PAGES: dict[str, str] = {}


def _plain(what: str, page: Callable[[str], str]) -> str:
    if what not in _PLAIN_PAGES:
        _PLAIN_PAGES[what] = page(PLAIN)
    return _PLAIN_PAGES[what]
