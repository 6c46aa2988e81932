"""What a reader can read of every view on a laptop's screen, in both themes, and what a screen reader is told.

``tools/page_faults.js`` measures words in the page. What a canvas holds (the maps of the space explorer's lines, of the
kernel reader and of the duplicate map) has no words that could be measured: there only the pictures of ``make gallery``
help.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_faults import SCREENS, jumps, page_faults
from real_browser import reading
from sample_views import PANELS, START, VIEWS

import subbyte
import subbyte_widgets

LIGHT, DARK_LARGE = SCREENS[0], SCREENS[3]
PLANTED = {
    "clipped": '<p style="overflow: hidden; white-space: nowrap; width: 60px">cut in the middle of a word</p>',
    "overlap": '<svg><text x="5" y="20">one word</text><text x="30" y="23">another</text></svg>',
    "pale": '<p style="background: #ffffff; color: #999999">words that are too pale</p>',
    "pale ": '<svg width="200" height="40"><rect width="200" height="40" fill="#0072b2"/>'
    '<text x="5" y="20" fill="#111111">dark on blue</text></svg>',
    "sideways": '<div style="overflow-x: auto; width: 200px"><div style="width: 400px">a wide one</div></div>',
    "tall": '<div style="height: 800px">a picture that is cut at the end of the window</div>',
    "below": '<div class="say" style="position: absolute; top: 1000px">what the step does</div>',
    "below ": '<button style="position: absolute; top: 1000px">next</button>',
}
GOOD = """<div style="background: #ffffff; color: #1f2328"><button aria-label="next">next</button>
<div class="say">what it does</div>
<svg width="300" height="60"><rect width="150" height="30" fill="#0072b2"/>
<text x="5" y="20" fill="#ffffff">white on blue</text><text x="160" y="20" fill="#1f2328">beside</text></svg></div>"""
JUMPING = """<input type="range" max="5" oninput="this.nextSibling.textContent = 'more words '.repeat(60 * this.value)"
><p></p><button>next</button>"""
UNNAMED = {
    "button": "<button></button>",
    "slider": '<input type="range">',
    "image": "<img src='data:,'>",
    "application": '<div role="application" tabindex="0">words</div>',
    "combobox": "<select></select>",
}
OUTPUT = ".jp-OutputArea-output:not(:has(.sb-spoken))"
"""What a cell shows: not the words about a chart, which are there for screen readers."""
LONG = ("workbench", "side by side")
"""Panels that are pages: a table of many views, a chart of many layers."""
NAMED_ROLES = ("button", "slider", "checkbox", "radio", "combobox", "textbox", "searchbox", "tab", "image",
               "img", "application", "radiogroup", "tablist", "spinbutton", "link", "SvgRoot", "Canvas")  # fmt: skip


class Page(subbyte_widgets._base.View):
    """A view that is any HTML."""

    _esm = (
        "function render({ el }) { el.innerHTML = `<div class='sb-planted'>empty</div>`; }\nexport default { render };"
    )
    _css = ""


def nameless(page: Any, selector: str = "body") -> list[str]:
    """Roles in Chromium's accessibility tree of an element that need a name and have none."""
    session = page.context.new_cdp_session(page)
    root = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    tree = session.send("Accessibility.queryAXTree", {"nodeId": node})["nodes"]
    session.detach()
    found = []
    for one in tree:
        role = one.get("role", {}).get("value")
        if not one.get("ignored") and role in NAMED_ROLES and not one.get("name", {}).get("value", "").strip():
            found.append(role)
    return found


@pytest.fixture(scope="module")
def planted(open_view: Callable[..., Any]) -> Callable[[str], Any]:
    """A page with this HTML in the place of a view."""
    page = open_view(Page(), ".sb-planted").page

    def put(html: str) -> Any:
        page.evaluate("(html) => { document.querySelector('.sb-planted').innerHTML = html; }", html)
        return page

    return put


def test_what_cannot_be_read_is_noticed(planted: Callable[[str], Any]) -> None:
    for kind, html in PLANTED.items():
        found = page_faults(planted(html), ".sb-planted", LIGHT)
        assert [one.partition(":")[0] for one in found] == [kind.strip()], (kind, found)
    assert page_faults(planted(GOOD), ".sb-planted", LIGHT) == []
    planted("")


def test_what_jumps_is_noticed(planted: Callable[[str], Any]) -> None:
    page = planted(JUMPING)
    assert [one.partition(":")[0] for one in jumps(page, ".sb-planted")] == ["jump"]
    page = planted(JUMPING.replace("<p>", '<p style="height: 40px; overflow: hidden">'))
    assert jumps(page, ".sb-planted") == []
    planted("")


def test_what_has_no_name_is_noticed(planted: Callable[[str], Any]) -> None:
    for role, html in UNNAMED.items():
        assert role in nameless(planted(html)), role
    assert nameless(planted(GOOD.replace("<svg ", '<svg role="img" aria-label="two words" '))) == []
    planted("")


@pytest.mark.parametrize("selector", VIEWS)
def test_everything_can_be_read_and_has_a_name(
    selector: str, kept: Callable[[str], Any], open_view: Callable[..., Any]
) -> None:
    page = open_view(kept(selector), selector, width=1280).page
    assert page_faults(page, selector, LIGHT) == []
    assert page_faults(page, selector, DARK_LARGE) == []
    assert jumps(page, selector) == []
    for slider in page.locator(f"{selector} input[type=range]:visible").all():
        slider.press("End")
        page.wait_for_function("() => document.getAnimations().every((one) => one.playState !== 'running')")
        assert page_faults(page, selector, DARK_LARGE) == [], "at the last step"
    assert nameless(page) == []
    keys = page.locator("details.keys")
    keys.locator("summary").click()
    places = page.locator("[role=application], .code:not([hidden]) .lines")
    listed = places.evaluate_all("all => all.map((one) => one.ariaLabel)")
    shown = keys.evaluate("one => { one.open = true; return one.innerText; }")  # a late update may have closed it
    assert listed
    assert all(" ".join(words.split()) in shown for words in listed)
    page.emulate_media(color_scheme="light")


def test_a_chart_of_plotly_is_one_picture_with_a_name_and_words(chromium: Any, tmp_path: Path) -> None:
    shown = subbyte_widgets.plot(subbyte.landscape("resnet50.stage2@8"))
    shown.save(tmp_path / "chart.html")
    with reading(chromium, tmp_path / "chart.html", 1280, 900) as tab:
        tab.page.wait_for_selector(".js-plotly-plot .main-svg")
        assert nameless(tab.page) == []
        (chart,) = tab.page.get_by_role("img").all()
        assert chart.get_attribute("aria-label") == shown.alternative
        said = str(chart.get_attribute("aria-description"))
        assert "Horizontal axis: time (microseconds). Vertical axis: configurations." in said
        chart.evaluate("(chart) => chart.firstChild.removeAttribute('aria-hidden')")
        assert "SvgRoot" in nameless(tab.page), "what is hidden are parts without a name"


@pytest.mark.deep
@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
@pytest.mark.parametrize("selector", VIEWS)
def test_everything_can_be_read_on_every_screen(
    selector: str, screen: Any, kept: Callable[[str], Any], open_view: Callable[..., Any]
) -> None:
    page = open_view(kept(selector), selector, width=1280).page
    assert page_faults(page, selector, screen) == []
    page.emulate_media(color_scheme="light")


@pytest.mark.deep
def test_panels_and_charts_can_be_read_and_stay_in_place(open_tab: Callable[..., Any], lab: Any) -> None:
    tab = open_tab(width=1280, height=900)
    tab.run_notebook(lab.write("panels.ipynb", START, *(code for code, _ in PANELS.values())))
    room = tab.page.locator(".jp-WindowedPanel-outer").bounding_box()["height"]
    assert room - 10 <= LIGHT.room[1] <= room, "the room is what JupyterLab has, less the padding of an output"
    faults = {}
    for number, (shown, (_, waited)) in enumerate(PANELS.items(), 1):
        tab.page.evaluate("([number, id, output]) => { document.querySelectorAll('.jp-CodeCell')[number]"
                          ".querySelector(output).id = id }", [number, f"panel{number}", OUTPUT])  # fmt: skip
        place = f"#panel{number}"
        tab.page.wait_for_selector(f"{place} {waited}")
        found = page_faults(tab.page, place, LIGHT)
        faults[shown] = [one for one in found if one.startswith("tall") and shown not in LONG]
        faults[shown] += jumps(tab.page, place, after=400, grows=True)
        faults[shown] += nameless(tab.page, place)
    tab.theme("JupyterLab Dark")
    for number, shown in enumerate(PANELS, 1):
        found = page_faults(tab.page, f"#panel{number}", DARK_LARGE)
        faults[shown] += [one for one in found if not one.startswith(("below", "tall"))]  # JupyterLab scrolls
    assert not any(faults.values()), faults
