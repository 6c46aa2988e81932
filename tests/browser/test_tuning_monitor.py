"""The tuning monitor in JupyterLab: results arrive, Pause and Stop work, the drawing is the record, keys work."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from real_browser import slowness

START = """import re
from subbyte.measure.fake import FakeRunner
from subbyte.measure.replay import ReplayRunner
from subbyte import space
from subbyte.tune.study import Study
from subbyte_widgets import TuningMonitor
found = space("n8h14w14c64k64r3s3p1", "sm_90a")
runner = FakeRunner(failures={"wrong": 0.1}, delay=%s)"""
TWO = "view = TuningMonitor.start([Study(found, s, seed=3) for s in ('diverse', 'random')], runner, trials=%d)\nview"
WAIT = r"""records = view.wait()
print([len(record.trials) for record in records], "static:",
      *re.findall(r'd="([^"]*)" class="[\w ]+"[^>]*? data-of', view.to_svg()))"""
MANY = """many = space("resnet50.stage5@8", "sm_90a")
quick = TuningMonitor.start(Study(many, "random", seed=0), ReplayRunner("resnet50.stage5@8"), trials=1000)
quick"""
DRAWN = "() => [...document.querySelectorAll('.sb-monitor-svg [data-of]')].map((path) => path.getAttribute('d'))"
COUNT = """() => ['other', 'dots', 'failed'].map((name) =>
  (document.querySelector(`.sb-monitor-svg [data-of=${name}]`)?.getAttribute('d') ?? '').split('M').length - 1)
  .reduce((a, b) => a + b)"""
LATENCY = """async () => {
  const [stage, say] = ['.stage', '.say'].map((name) => document.querySelector('.sb-monitor ' + name));
  const times = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const painted = new Promise((done) => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now()); });
      watch.observe(stage, { childList: true });
    });
    const pressed = performance.now();
    stage.dispatchEvent(new KeyboardEvent('keydown', { key: turn ? 'ArrowRight' : 'Home', bubbles: true }));
    times.push((await painted) - pressed);
  }
  return times;
}"""


ENDED = "import time\nstarted = time.time()\nquick.wait()\nprint(f'ended after {time.time() - started:.2f} s')"
CELLS = (START % "0.002", TWO % 80, WAIT, "quick = view.config; len(quick)", START % "0.03", TWO % 500, MANY, ENDED)


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """A notebook with the studies of three tests, none of them begun."""
    one = open_tab(width=860, height=1300)
    one.open_notebook(lab.write("monitor.ipynb", *CELLS))
    return one


def run(tab: Any, *cells: int) -> None:
    """Run some of the cells; what others drew is gone."""
    tab.command("notebook:clear-all-cell-outputs")
    for number in cells:
        tab.run_cell(number)


def test_results_arrive_and_the_drawing_is_the_record(tab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(tab, 0, 1, 2, 3)
    printed = tab.page.get_by_text("[80, 80] static:").text_content()
    tab.page.wait_for_function("document.querySelector('.sb-monitor-svg').textContent.includes('80 of 80 trials')")
    tab.settle()
    assert printed.split("static: ")[1].split() == " ".join(tab.page.evaluate(DRAWN)).split()
    assert tab.page.evaluate(COUNT) == 80
    assert not tab.page.locator(".sb-monitor .stop").is_visible()
    times = tab.page.evaluate(LATENCY)
    with capsys.disabled():
        print(f"\n  key to paint: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    assert statistics.median(times) < 100 * slowness(tab.page)
    tab.page.locator(".sb-monitor .say", has_text="Trial 19:").wait_for()
    assert tab.page.locator(".sb-monitor-svg rect.ring").count() == 6
    tab.page.locator(".sb-monitor .stage").focus()
    tab.page.keyboard.press("End")
    tab.page.locator(".sb-monitor .say", has_text="Trial 79:").wait_for()
    tab.picture("monitor", ".sb-monitor")
    tab.page.keyboard.press("ArrowDown")
    tab.page.wait_for_function("document.querySelector('.sb-monitor .name.shown').textContent === 'random'")
    tab.page.wait_for_function(f"({COUNT})() === 80")


def test_pause_holds_and_stop_ends(tab: Any) -> None:
    run(tab, 4, 5)
    tab.page.wait_for_function(f"({COUNT})() > 3")
    tab.page.locator(".sb-monitor .pause").click()
    tab.page.wait_for_function("document.querySelector('.sb-monitor-svg').textContent.includes('(paused)')")
    before, held = -1, tab.page.evaluate(COUNT)
    while before != held:  # trials that had begun are finished and shown
        tab.page.wait_for_timeout(400)
        before, held = held, tab.page.evaluate(COUNT)
    tab.page.wait_for_timeout(400)
    assert tab.page.evaluate(COUNT) == held
    tab.page.locator(".sb-monitor .pause").click()
    tab.page.wait_for_function(f"({COUNT})() > {held}")
    tab.page.locator(".sb-monitor .stop").click()
    tab.page.wait_for_function("document.querySelector('.sb-monitor-svg').textContent.includes('(stopped)')")
    assert tab.page.evaluate(COUNT) < 2000


@pytest.mark.deep
def test_a_thousand_trials_of_a_replay_are_painted_soon(tab: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(tab, 6, 7)
    tab.page.wait_for_function(f"({COUNT})() === 1000")
    with capsys.disabled():
        print("\n  1000 trials,", tab.page.locator("pre", has_text="ended after").text_content().strip())


def test_a_page_without_a_kernel_shows_the_record(open_page: Callable[..., Any]) -> None:
    from subbyte.families import space
    from subbyte.measure.fake import FakeRunner
    from subbyte.tune.study import Study
    from subbyte_widgets import TuningMonitor

    study = Study(space("n8h14w14c64k64r3s3p1", "sm_90a"), "auto", seed=2)
    study.run(FakeRunner(), trials=60)
    view = TuningMonitor(study)
    page = open_page(view, ".sb-monitor-svg")
    assert page.evaluate(DRAWN) == re.findall(r'd="([^"]*)" class="[\w ]+"[^>]*? data-of', view.to_svg())
    page.locator(".sb-monitor .stage").focus()
    page.keyboard.press("End")
    page.locator(".sb-monitor .say", has_text="proposed as").wait_for()


@pytest.mark.deep
def test_stop_ends_the_first_wait_of_a_kernel(open_tab: Callable[..., Any], lab: Any) -> None:
    """Run All, as most people do: the view is drawn while the next cell waits already."""
    waiting = "view.wait(60)\nprint(f'ended with {len(view.sources[0].trials)} trials, running: {view.running}')"
    tab = open_tab(width=860, height=1300)
    tab.open_notebook(lab.write("first_wait.ipynb", START % "0.03", TWO % 500, waiting))
    tab.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    tab.page.wait_for_function(f"({COUNT})() > 3")
    tab.page.locator(".sb-monitor .stop").click()
    tab.page.get_by_text(re.compile(r"ended with \d{1,3} trials, running: False")).wait_for()
