"""What holds for every view: a page without a kernel, letters, many updates, cells run again, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect
from real_browser import Watched, strange
from sample_views import START, VIEWS

import subbyte_widgets

SHOW = "\n".join([*(f"made[{name!r}] = {view}" for name, view in VIEWS.items()), "display(*made.values())"])
# What each view follows while a lesson goes on, one view after the other: its selection, a record of another size.
UPDATE = """tiled = [tiling(n, SMALL, arch='sm_80') for n in ('n8h9w9c32k32r3s3p1', 'n8h7w7c32k32r3s3p1')]
maps = [subbyte.duplicates('n8h9w9c32k32r3s3p1', (1, n)) for n in (2, 3)]
follows = {'.sb-tiling': ('multiply', 4), '.sb-map': ('selected', 7), '.sb-pack': ('step', 6),
           '.sb-access': ('lane', 32), '.sb-frag': ('column', 8), '.sb-space': ('selected', 9),
           '.sb-order': ('step', 33),
           '.sb-curve': ('selected', 40), '.sb-monitor': ('selected', 40), '.sb-reader': ('line', 60),
           '.sb-load': ('step', 30), '.sb-speed': ('item', 5), '.sb-taps': ('tap', 6), '.sb-stores': ('follow', 128),
           '.sb-bits': ('step', 7), '.sb-planes': ('step', 6),
           '.sb-strides': ('chosen', 8), '.sb-folding': ('chosen', 41), '.sb-timeline': ('chosen', 3),
           '.sb-bitmap': ('step', 11), '.sb-im2col': ('step', 8),
           '.sb-surface': ('chosen', 12), '.sb-bars': ('chosen', 8), '.sb-origin': ('chosen', 4),
           '.sb-charts': ('chosen', 6)}
def one(i):
    selector, i = list(made)[i % len(made)], i // len(made)
    view, (trait, many) = made[selector], follows[selector]
    if i % 5 == 0 and selector in ('.sb-tiling', '.sb-map'):
        view.show((tiled if selector == '.sb-tiling' else maps)[i % 2])
    value = i % many
    view.set_trait(trait, view.points['index'][value] if selector == '.sb-space' else value)"""
ROUNDS = 4
AGAIN = f"""for i in range({ROUNDS} * len(made)):
    one(i)
print("memory", psutil.Process(os.getpid()).memory_info().rss, "bytes")"""
NO = "This cannot be: choose another one."
REFUSE = "for view in made.values():\n    view.error = %r"
# Of each view: what its problem says, and how many of its pictures are in sight (the icons of buttons are none).
REFUSED = """(selectors) => selectors.map((selector) => {
  const root = document.querySelector(selector);
  const problem = root.querySelector(".problem");
  const pictures = [...root.querySelectorAll("svg[class], canvas, td, .row")].filter((e) => e.getClientRects().length);
  return [selector, problem.getClientRects().length ? problem.textContent : "", pictures.length];
})"""
CELLS = {"start": START, "show": SHOW, "update": UPDATE, "again": AGAIN, "refuse": REFUSE % NO, "allow": REFUSE % "",
         "pair": "display(FragmentExplorer(), PackingStepper())"}  # fmt: skip
"""Those of the notebook; the tests run them by name."""
STUDIES = (".sb-curve", ".sb-monitor")
"""They go on showing the trials there were before a study failed: those are its own, and as good as before."""
SETTLED = f"() => document.querySelector('.sb-curve .say').textContent.includes('Trial {ROUNDS - 1}:')"
# Of each view the colours of its words and of what it fills: those of a text, and of a field where it has some.
INKS = """(selectors) => selectors.map((selector) => {
  const root = document.querySelector(selector);
  const words = root.querySelector("svg text.h") ?? root.querySelector("svg text, code, td:not(.none)");
  const style = getComputedStyle(words);
  return words.ownerSVGElement ? style.fill : words.matches("td") ? style.backgroundColor : style.color;
})"""
# The views that are there now, and later those of them that are still in the memory of the page.
NOTE = """(selectors) => {
  window.sbSeen = selectors.map((selector) => [selector, new WeakRef(document.querySelector(selector))]);
}"""
KEPT = "() => window.sbSeen.filter(([, view]) => view.deref()).map(([selector]) => selector)"
# The reader's pane has rows down to its end.
FULL = """() => document.querySelector(".sb-reader .row:last-child").getBoundingClientRect().bottom >=
  document.querySelector(".sb-reader .pane").getBoundingClientRect().bottom"""
GUARD = "data-lm-suppress-shortcuts"
# The views with a place that takes keys and lets them through to JupyterLab.
UNGUARDED = f"""(selectors) => selectors.filter((selector) =>
  [...document.querySelectorAll(`${{selector}} [role=application]`)].some((e) => !e.closest("[{GUARD}=true]")))"""
LEAST = 11
"""Pixels of the smallest letters on the screen, in a window of 700."""
SMALL = """([selector, least, zoom]) => {
  const found = new Set();
  const texts = document.createTreeWalker(document.querySelector(selector), NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("title") || !element.getBoundingClientRect().width) continue;
    const matrix = element.ownerSVGElement ? element.getScreenCTM() : { a: 1, b: 0 };
    const size = parseFloat(getComputedStyle(element).fontSize) * Math.hypot(matrix.a, matrix.b) * zoom;
    if (size < least) found.add(`${node.textContent} ${size.toFixed(1)}`);
  }
  return [...found];
}"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
KEYS = ("Home", "ArrowRight", "ArrowDown", "End", "Home", "ArrowDown", "ArrowRight")
QUICK = ("Home", "f", "End", "ArrowDown", "ArrowDown", "+", "2", "d", "D", "ArrowRight", "ArrowRight", "ArrowUp")
"""Keys of which one needs what another changes: a brush and its ends, a text and its differences."""
# Presses keys in every part of a view that takes them, each in a frame of its own or all in one task of the page.
PRESS = """async ([selector, keys, frames]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const places = () => [...document.querySelectorAll(`${selector} [role=application]`)];
  for (let place = 0; place < places().length; place += 1) {
    for (const key of keys) {
      places()[place].dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
      if (frames) await frame();
    }
  }
  await frame();
  const drawn = document.querySelector(selector).outerHTML;
  return [places().length, drawn.replace(/sb-(hatch|choice)-[a-z0-9]+| class=""/g, "")];
}"""


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """A notebook with every view."""
    one = open_tab(width=900, height=7000)  # tall: what is out of sight is not drawn
    one.open_notebook(lab.write("every.ipynb", *CELLS.values()))
    for name in ("start", "show", "update"):
        run(one, name)
    for selector in VIEWS:
        expect(one.page.locator(selector)).to_have_count(1)
    assert not one.failures()
    return one


def run(tab: Any, name: str) -> None:
    """Run one of the cells."""
    tab.run_cell(list(CELLS).index(name))


@pytest.fixture(scope="module")
def browser_memory(tab: Any) -> Callable[[], dict[str, int]]:
    """Bytes of the page's heap, its nodes and listeners, after everything unreachable was removed."""
    session = tab.context.new_cdp_session(tab.page)

    def read() -> dict[str, int]:
        tab.settle()
        for _ in range(3):  # what one round frees may have held something else
            session.send("HeapProfiler.collectGarbage")
            tab.page.wait_for_timeout(50)
        counters = session.send("Memory.getDOMCounters")
        return {"heap": session.send("Runtime.getHeapUsage")["usedSize"], **counters}

    return read


def kernel_memory(tab: Any) -> int:
    """What the last update printed."""
    return int(re.findall(r"memory (\d+) bytes", " ".join(tab.page.locator("pre").all_text_contents()))[-1])


def test_no_view_is_left_out() -> None:
    exported = {name: getattr(subbyte_widgets, name) for name in subbyte_widgets.__all__}
    drawn = {
        name for name, one in exported.items() if isinstance(one, type) and issubclass(one, subbyte_widgets._base.View)
    }
    assert drawn == {view.partition("(")[0] for view in VIEWS.values()}


@pytest.mark.parametrize("selector", VIEWS)
def test_a_page_without_a_kernel_has_large_letters_and_follows_the_keys(
    selector: str, kept: Callable[[str], Any], open_page: Callable[..., Any]
) -> None:
    """In a window of 700 pixels, and zoomed to 125 %; open_page sees to it that no page is wider."""
    page = open_page(kept(selector), selector, width=560, scale=1.25)
    assert page.evaluate(SMALL, [selector, LEAST, 1.25]) == []
    page = open_page(None, selector)
    assert page.evaluate(SMALL, [selector, LEAST, 1]) == []
    looks = [page.locator(selector).inner_html()]
    page.keyboard.press("Tab")  # by keyboard alone
    for _ in range(12):
        if page.evaluate(
            "() => document.activeElement.getAttribute('aria-label') && document.activeElement.tabIndex === 0"
            " && !['BUTTON', 'INPUT', 'SELECT'].includes(document.activeElement.tagName)"
        ):
            break
        page.keyboard.press("Tab")
    for key in KEYS:
        page.keyboard.press(key)
        page.evaluate(FRAMES)
        looks.append(page.locator(selector).inner_html())
    assert len(set(looks)) >= 3, f"{selector} shows {len(set(looks))} different pictures"


@pytest.mark.sample(".sb-map", ".sb-access", ".sb-space", ".sb-monitor", ".sb-reader", ".sb-timeline")
@pytest.mark.parametrize("selector", VIEWS)
def test_keys_between_two_frames_end_where_slow_ones_do(
    selector: str, kept: Callable[[str], Any], open_page: Callable[..., Any]
) -> None:
    """What a key does follows from the state, not from what was drawn last."""
    page = open_page(kept(selector), selector)
    first = page.locator(selector).inner_html()
    slowly = page.evaluate(PRESS, [selector, QUICK, True])
    assert page.locator(selector).inner_html() != first
    page.reload()
    page.wait_for_selector(selector)
    places, at_once = page.evaluate(PRESS, [selector, QUICK, False])
    assert places
    assert at_once == slowly[1]


def test_small_letters_are_noticed(kept: Callable[[str], Any], open_page: Callable[..., Any]) -> None:
    page = open_page(kept(".sb-access"), ".sb-access")
    page.add_style_tag(content=".sb-access-svg text.n { font-size: 11px; }")
    assert "byte 10.1" in page.evaluate(SMALL, [".sb-access", LEAST, 1])


def test_a_view_that_breaks_says_so_in_its_place(chromium: Any, tmp_path: Any) -> None:
    class Broken(subbyte_widgets._base.View):
        _esm = "function render() { throw new Error('no such panel'); }\nexport default { render };"
        _css = ""

    Broken().to_html(tmp_path / "broken.html")
    one = Watched(chromium, ("file:",), 700, 900)
    one.page.goto((tmp_path / "broken.html").as_uri())
    one.page.get_by_role("alert").wait_for()
    assert one.page.get_by_role("alert").text_content() == "This view could not be drawn: no such panel"
    one.close()
    assert len(one.errors) == 1, "the browser's console has it too"


def test_a_saved_notebook_has_a_picture_of_every_view(tab: Any, chromium: Any, lab: Any) -> None:
    """Exported as HTML: an image and words in place of each view, none of them an error."""
    tab.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    one = Watched(chromium, (lab.base,), 900, 900)
    one.page.goto(f"{lab.base}/nbconvert/html/every.ipynb?download=false&token={lab.token}")
    drawn = one.page.locator('.jp-OutputArea img[src^="data:image/svg+xml"]')
    found = drawn.evaluate_all("(all) => all.map((e) => [e.complete && e.naturalWidth, e.naturalHeight, e.alt.length])")
    one.close()
    assert not strange(one)
    assert len(found) == len(VIEWS)
    assert all(width > 500 and height > 150 and words > 40 for width, height, words in found), found


def test_code_opens_at_its_line(tab: Any) -> None:
    """JupyterLab draws a view before it is on the page, where nothing can be scrolled."""
    in_sight = """(name) => [...document.querySelectorAll(name)].map((line) => {
      const [line_, pane] = [line, line.closest(".pane, .lines")].map((one) => one.getBoundingClientRect());
      return line_.top >= pane.top && line_.top < pane.bottom;
    })"""
    assert tab.page.evaluate(in_sight, ".sb-reader .row.on") == [True]
    lit = [tab.page.evaluate(in_sight, f"{view} .code .lit")[:1] for view in (".sb-stores", ".sb-taps")]
    assert lit == [[True], [True]]


def test_no_key_of_a_view_reaches_the_notebook(tab: Any) -> None:
    """JupyterLab's shortcuts, such as b for a cell below, mean nothing while a view has the focus."""
    cells = tab.page.locator(".jp-Notebook .jp-Cell")
    count = cells.count()
    assert tab.page.evaluate(UNGUARDED, list(VIEWS)) == []
    for selector in [*VIEWS][::8]:  # pressed in some of them: each key is a round trip
        tab.page.locator(f"{selector} [role=application]").first.focus()
        tab.page.keyboard.press("b")
        assert cells.count() == count, selector
    place = tab.page.locator(".sb-map [role=application]").first
    place.evaluate(f"(place) => place.setAttribute('{GUARD}', 'false')")
    assert tab.page.evaluate(UNGUARDED, list(VIEWS)) == [".sb-map"]
    place.evaluate(f"(place) => place.setAttribute('{GUARD}', 'true')")
    tab.page.locator(".jp-Notebook .jp-InputPrompt").first.click()
    tab.page.keyboard.press("b")
    expect(cells, "a notebook takes the key").to_have_count(count + 1)
    for _ in "dd":
        tab.page.keyboard.press("d")
    expect(cells).to_have_count(count)


def test_light_and_dark(tab: Any) -> None:
    """The letters of every view follow JupyterLab's theme, and the pictures are as sharp as before."""
    for selector in VIEWS:  # no handle of an element: it would keep the view
        expect(tab.page.locator(f"{selector} :is(svg text, code, td)").first).to_be_attached()
    light = tab.page.evaluate(INKS, list(VIEWS))
    for selector in VIEWS:
        tab.picture(f"every{selector}", selector)
    with tab.dark():
        tab.page.wait_for_function(f"(light) => !({INKS})({list(VIEWS)}).some((ink, i) => ink === light[i])", arg=light)
        sharp = "() => [...document.querySelectorAll('.sb-space canvas')].every((c) => c.width === c.clientWidth)"
        tab.page.wait_for_function(FULL)
        tab.page.wait_for_function(sharp)  # it follows with a later frame, once the theme's styles are in
        for selector in VIEWS:
            tab.picture(f"every{selector}.dark", selector)
    assert tab.page.evaluate(INKS, list(VIEWS)) == light


def test_a_hundred_updates_leave_nothing_behind(tab: Any, browser_memory: Callable[[], dict[str, int]]) -> None:
    run(tab, "again")  # what is made once, such as caches, is there now
    tab.page.wait_for_function(SETTLED)
    limits = {"kernel": 2e6, "heap": 1e6, "nodes": 100, "jsEventListeners": 14}

    def more() -> dict[str, float]:
        before = {**browser_memory(), "kernel": kernel_memory(tab)}
        run(tab, "again")
        tab.page.wait_for_function(SETTLED)
        after = {**browser_memory(), "kernel": kernel_memory(tab)}
        return {what: after[what] - before[what] for what in limits if after[what] - before[what] >= limits[what]}

    first = more()
    assert not first or not more(), first  # what leaks does so each time, a cache that grew does not


@pytest.mark.deep
def test_cells_run_again_leave_nothing_behind(tab: Any, browser_memory: Callable[[], dict[str, int]]) -> None:
    """What the first run showed is closed: its picture, its listeners and its widgets are gone."""
    # The page itself keeps an empty element for every view that there was, with what listens to the kernel's end.
    limits = {"nodes": 60, "jsEventListeners": 20}

    def more() -> dict[str, Any]:
        run(tab, "show")
        tab.page.evaluate(NOTE, list(VIEWS))
        before = browser_memory()
        assert tab.page.evaluate(KEPT) == list(VIEWS), "what is shown is kept"
        run(tab, "show")
        for selector in VIEWS:
            expect(tab.page.locator(selector)).to_have_count(1)
        after = browser_memory()
        left = {what: (after[what] - before[what]) / len(VIEWS) for what in limits}
        found: dict[str, Any] = {what: count for what, count in left.items() if count > limits[what]}
        kept = tab.page.evaluate(KEPT)
        return {**found, "kept": kept} if kept else found

    first = more()
    assert not first or not more(), first


def test_a_refusal_takes_the_place_of_the_picture(tab: Any) -> None:
    """One sentence in every view, nothing of the picture before that could be taken for what was asked for."""
    run(tab, "refuse")
    tab.page.wait_for_function(f"(all) => ({REFUSED})(all).every(([, words]) => words)", arg=list(VIEWS))
    for selector, words, pictures in tab.page.evaluate(REFUSED, list(VIEWS)):
        assert words == NO
        assert (pictures > 0) == (selector in STUDIES), (selector, pictures)
    run(tab, "allow")
    tab.page.wait_for_function(f"(all) => ({REFUSED})(all).every(([, words]) => !words)", arg=list(VIEWS))
    for selector, _, pictures in tab.page.evaluate(REFUSED, list(VIEWS)):
        assert pictures > 0, f"{selector} does not come back"


def test_a_view_of_a_cell_that_runs_again_is_gone_and_a_leak_is_noticed(
    tab: Any, browser_memory: Callable[[], dict[str, int]]
) -> None:
    """Of two views the page keeps the one alone that somebody holds."""
    tab.command("notebook:clear-all-cell-outputs")
    run(tab, "pair")
    before = browser_memory()
    tab.page.evaluate(NOTE, [".sb-frag", ".sb-pack"])
    tab.page.evaluate("""() => {
      window.sbKept = Array.from({ length: 1000 }, () => document.createElement("i"));
      window.sbKept.forEach((node) => node.addEventListener("click", () => 0));
      window.sbKept.push(document.querySelector(".sb-frag"));
    }""")
    run(tab, "pair")
    after = browser_memory()
    kept = tab.page.evaluate(KEPT)
    tab.page.evaluate("() => { delete window.sbKept; }")
    assert after["nodes"] - before["nodes"] >= 1000
    assert after["jsEventListeners"] - before["jsEventListeners"] >= 970  # a few of the page's own may go meanwhile
    assert kept == [".sb-frag"]
