"""The harness itself: what it must refuse, it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from real_browser import WORK, WORK_MS, Watched


def test_a_machine_without_chromium_fails_with_one_sentence(
    browser_program: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SUBBYTE_CHROMIUM", raising=False)
    with pytest.raises(pytest.fail.Exception, match=re.escape("no Chromium on PATH: `sudo apt-get install chromium`")):
        browser_program()


def test_a_view_that_asks_the_network_or_breaks_is_noticed(open_tab: Callable[..., Any], lab: Any) -> None:
    tab = open_tab()
    if not tab.loaded:
        tab.page.goto(f"{lab.base}/lab?token={lab.token}")
    tab.page.evaluate("() => fetch('http://192.0.2.1/x').catch(() => 0)")
    assert tab.outside == ["http://192.0.2.1/x"]
    with tab.page.expect_event("pageerror"):
        tab.page.evaluate("() => { setTimeout(() => { throw new Error('a view broke') }) }")
    assert any("a view broke" in line for line in tab.errors)
    tab.outside.clear()
    tab.errors.clear()


def test_a_page_that_asks_the_network_or_breaks_is_noticed(chromium: Any, tmp_path: Path) -> None:
    script = "fetch('http://192.0.2.1/x').catch(() => setTimeout(() => { throw new Error('a page broke') }))"
    (tmp_path / "page.html").write_text(f"<script>{script}</script>")
    one = Watched(chromium, ("file:",), 700, 900)
    with one.page.expect_event("pageerror"):
        one.page.goto((tmp_path / "page.html").as_uri())
    one.close()
    assert one.outside == ["http://192.0.2.1/x"]
    assert any("a page broke" in line for line in one.errors)


def test_slow_painting_is_refused(chromium: Any, paints_at_once: Callable[..., None]) -> None:
    page = chromium.new_page()
    # Of the same work as the limit is measured by, and eight times as much: another program may come between the two.
    busy = f"({WORK})({80 / WORK_MS})"
    page.set_content(f"<script>document.addEventListener('keydown', () => {busy})</script>")
    with pytest.raises(AssertionError):
        paints_at_once(page, ["a"] * 3, limit=10)
    page.close()
