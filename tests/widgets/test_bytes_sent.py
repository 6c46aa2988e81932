"""How much is sent to draw each view at its largest sensible size: the benchmark's cases, without a browser."""

from __future__ import annotations

import json
from typing import Any

import pytest
import traitlets

import subbyte_widgets
from benchmarks.views.cases import CASES, Case
from subbyte_widgets._base import PACKED, View, packed, unpacked

MOST = 400_000
"""Bytes that may be sent to draw one view, its module, style and static picture included."""
SPARE = 20_000
"""Of these for what the page's own protocol adds: headers of messages, layouts, the controls above a view."""


def sent(view: Any) -> int:
    """Bytes of a view's state and of what its cell displays, as JSON, with those of the widgets inside it."""
    size = len(json.dumps(view._repr_mimebundle_()))
    parts = [view]
    while parts:
        part = parts.pop()
        size += len(json.dumps(part.get_state(), default=str))
        parts += getattr(part, "children", ())
    return size


def made(case: Case) -> Any:
    """The view of a case."""
    names: dict[str, Any] = {}
    exec(f"import subbyte\n{case.setup}\n{case.show}", names)
    return names["view"]


@pytest.mark.sample("bit product", "kernel reader")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_view_is_drawn_with_less_than_400_kb(case: Case) -> None:
    view = made(case)
    assert not view.error
    size = sent(view)
    assert size < MOST - SPARE, f"{case.name}, {case.size}: {size / 1000:.0f} kB"


def test_no_view_is_left_out() -> None:
    exported = [getattr(subbyte_widgets, name) for name in subbyte_widgets.__all__]
    views = {one.__name__ for one in exported if isinstance(one, type) and issubclass(one, View)}
    assert views <= {name for case in CASES for name in case.show.replace("(", " ").split()}


def test_too_much_is_noticed() -> None:
    class Plain(View):
        _esm = "export default { render };"
        _css = ""
        text = traitlets.Unicode("").tag(sync=True)

        def to_svg(self) -> str:
            return "<svg/>"

    class Packed(Plain):
        text = traitlets.Unicode("").tag(**PACKED)

    words = " ".join(map(str, range(100_000)))
    assert sent(Plain(text=words)) > MOST > sent(Packed(text="." * len(words)))


def test_a_step_of_a_slider_sends_little() -> None:
    explorers = {case.name: made(case) for case in CASES if case.control == "slider"}
    duplicates, layout = explorers["duplicate explorer"], explorers["layout explorer"]
    duplicates.tile_width.value = 11
    assert len(json.dumps(duplicates.view.get_state(["words", "map", "alternative", "error"]))) < 20_000
    layout.controls["block"].value = 1
    assert len(json.dumps(layout.view.get_state(["pictures", "alternative", "error", "kinds"]))) < 20_000
    assert len(layout.view.pictures) == 1


@pytest.mark.parametrize("value", ["", "a \u00b5 < \U0001d11e", "x" * 5000, {"a": [1, None, "\u00d7" * 3000]}, {}])
def test_what_is_packed_comes_back(value: Any) -> None:
    wire = packed(value)
    assert unpacked(json.loads(json.dumps(wire))) == value
    assert len(json.dumps(wire)) <= max(len(json.dumps(value)), 1100)


def test_the_module_knows_what_travels_packed() -> None:
    assert "sighted(render, [])" in str(subbyte_widgets.DuplicateMap._esm)
    assert 'sighted(render, ["data"])' in str(subbyte_widgets.LoadStepper._esm)
    assert "sighted(render, [])" in str(subbyte_widgets.LiveCurve._esm)
