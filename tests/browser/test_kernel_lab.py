"""The kernel laboratory in JupyterLab: a knob is turned, the kernel is built and checked, its row says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from subbyte.families import space
from subbyte.kernel.default import default_config
from subbyte.kernel.kernel import build
from subbyte.workload import workload

NAME = "n8h7w7c32k32r3s3p1"
CELLS = (f"from subbyte_widgets import KernelLab\nlab = KernelLab({NAME!r}, device='emulator')\nlab",)
ROWS = """() => [...document.querySelectorAll(".widget-html tr")].map((row) =>
  [...row.querySelectorAll("td")].map((cell) => cell.textContent.trim())).filter((row) => row.length)"""


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """The laboratory in a running notebook."""
    one = open_tab()
    one.run_notebook(lab.write("laboratory.ipynb", *CELLS))
    one.page.get_by_role("button", name="Build and check").wait_for()
    return one


def menu(tab: Any, name: str) -> Any:
    """The menu of a knob."""
    return tab.page.locator(".widget-dropdown", has_text=name).locator("select").first


def differences(rows: list[list[str]], config: Any, resources: Any) -> int:
    """In how many of its cells the newest row differs from a configuration and what its kernel needs."""
    needs = (
        f"{resources.registers} registers, {resources.shared_bytes:,} shared bytes, "
        f"{resources.blocks_per_sm} blocks per multiprocessor"
    )
    wanted = (config.key, "CPU (emulator)", needs)
    return sum(cell != one for cell, one in zip((rows[0][0], *rows[0][2:4]), wanted, strict=True))


@pytest.mark.deep
def test_a_knob_is_turned_and_the_kernel_checked(tab: Any) -> None:
    config = default_config(workload(NAME), "sm_90a")
    turned = config.with_values({"reorder_inner": 1 - config.reorder_inner})
    menu(tab, "reorder_inner").select_option(str(turned.reorder_inner))
    tab.page.get_by_role("button", name="Build and check").click()
    tab.page.locator(".widget-html td", has_text="\u2713").first.wait_for()
    rows = tab.page.evaluate(ROWS)
    resources = build(NAME, turned, "sm_90a").resources
    assert rows[0][1].startswith("\u2713")
    assert differences(rows, turned, resources) == 0
    assert differences(rows, config, resources) == 1, "another configuration is told apart"
    assert differences(rows, turned, replace(resources, registers=resources.registers + 1)) == 1


@pytest.mark.deep
def test_a_refused_knob_says_why_and_cannot_be_built(tab: Any) -> None:
    known = space(NAME, "sm_90a")
    config = default_config(workload(NAME), "sm_90a")
    refused = next(
        (name, value)
        for name, values in known.knobs.items()
        for value in values
        if known.check(config.with_values({name: value}))
    )
    menu(tab, refused[0]).select_option(str(refused[1]))
    tab.page.locator(".widget-html", has_text="Refused: ").wait_for()
    button = tab.page.get_by_role("button", name="Build and check")
    tab.page.wait_for_function("(e) => e.disabled", arg=button.element_handle())
    menu(tab, refused[0]).select_option(str(getattr(config, refused[0])))
    tab.page.locator(".widget-html", has_text="Ready.").wait_for()
    assert not button.is_disabled()
