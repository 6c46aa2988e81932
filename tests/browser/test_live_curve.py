"""The live curve in JupyterLab: points arrive while the study runs, Stop stops it, the picture is the record."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

START = """import re
from subbyte.measure.fake import FakeRunner
from subbyte import space
from subbyte.tune.study import Study
from subbyte_widgets import LiveCurve
study = Study(space("n8h14w14c64k64r3s3p1", "sm_90a"), "random", seed=3)
runner = FakeRunner(failures={"wrong": 0.1}, delay=0.01)"""
SHORT = "curve = LiveCurve.start(study, runner, trials=%d, batch=4)\ncurve"
WAIT = r"""record = curve.wait()
print(len(record.trials), "static:", *re.findall(r'd="([^"]*)" class="\w+" data-of', curve.to_svg()))"""
DRAWN = "() => [...document.querySelectorAll('.sb-curve-svg [data-of]')].map((path) => path.getAttribute('d'))"
DOTS = f"() => (({DRAWN})()[0] ?? '').split('M').length - 1"


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """A notebook with two studies, neither of them begun."""
    one = open_tab(width=900)
    slow = START.replace("delay=0.01", "delay=0.03")
    one.open_notebook(lab.write("curve.ipynb", f"{START}\n{SHORT}" % 60, WAIT, f"{slow}\n{SHORT}" % 500))
    return one


@pytest.mark.deep
def test_points_arrive_and_the_drawing_is_the_record(tab: Any) -> None:
    tab.run_cell(0)
    tab.run_cell(1)
    printed = tab.page.get_by_text("60 static:").text_content()
    tab.page.wait_for_function("document.querySelector('.sb-curve-svg').textContent.includes('60 of 60 trials')")
    dots, crosses, best = drawn = tab.page.evaluate(DRAWN)
    assert printed.split("static: ")[1].strip() == " ".join(drawn)
    assert dots.count("M") + crosses.count("M") == 60
    assert crosses
    assert len(re.findall("[HV]", best)) > 60
    assert not tab.page.locator(".sb-curve button").is_visible()
    stage = tab.page.locator(".sb-curve .stage")
    stage.focus()
    for key in ("End", "ArrowLeft", "Home", "ArrowRight"):
        tab.page.keyboard.press(key)
    tab.page.locator(".sb-curve .say", has_text="Trial 1:").wait_for()
    tab.picture("curve", ".sb-curve")


@pytest.mark.deep
def test_stop_ends_a_running_study(tab: Any) -> None:
    tab.command("notebook:clear-all-cell-outputs")
    tab.run_cell(2)
    tab.page.wait_for_function(f"({DOTS})() > 3")
    seen = [tab.page.evaluate(DOTS)]
    for _ in range(3):  # more and more of them while the study runs
        tab.page.wait_for_function(f"(before) => ({DOTS})() !== before", arg=seen[-1])
        seen.append(tab.page.evaluate(DOTS))
    assert seen == sorted(seen)
    tab.page.locator(".sb-curve button").click()
    tab.page.wait_for_function("document.querySelector('.sb-curve-svg').textContent.includes('(stopped)')")
    assert tab.page.evaluate(DOTS) < 500


def test_a_page_without_a_kernel_shows_the_record(open_page: Callable[..., Any]) -> None:
    from subbyte.families import space
    from subbyte.measure.fake import FakeRunner
    from subbyte.tune.study import Study
    from subbyte_widgets import LiveCurve

    record = Study(space("n8h14w14c64k64r3s3p1", "sm_90a"), "random", seed=2).run(FakeRunner(), trials=40)
    curve = LiveCurve(record)
    page = open_page(curve, ".sb-curve-svg")
    assert page.evaluate(DRAWN) == re.findall(r'd="([^"]*)" class="\w+" data-of', curve.to_svg())
    page.locator(".sb-curve .stage").focus()
    page.keyboard.press("End")
    page.locator(".sb-curve .say", has_text="Trial 39:").wait_for()
