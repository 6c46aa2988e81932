"""Errors inside a view: one sentence in the view, and the kernel goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

CELLS = (
    """from subbyte_widgets import ConvolutionTiling, FragmentExplorer, KernelReader, LayoutView, Selection
from subbyte_widgets._base import View

class Broken(View):
    _esm = "function render() { throw new Error('no such panel'); }\\nexport default { render };"
    _css = ""

    def to_svg(self):
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

class Slips(FragmentExplorer):
    def turn_to(self, choice):
        raise ZeroDivisionError("of the view's own")

s = Selection()
views = ConvolutionTiling(selection=s), LayoutView(selection=s), KernelReader(selection=s), Slips(selection=s)""",
    "for view in (Broken(), *views):\n    display(view)",
    "1 / 0",
    "s.choose(configuration='brw4-bcw4-wrt16-wct16-ch8-ri0')",
    "s.choose(configuration='')\nprint('the kernel', 'is alive')",
)
PROBLEM = """(view) => {
  const found = document.querySelector(`${view} .problem`);
  return found && !found.hidden && found.textContent;
}"""


@pytest.fixture(scope="module")
def tab(open_tab: Callable[..., Any], lab: Any) -> Any:
    """A notebook with a view that cannot be drawn, one that slips, and sound ones; its console says so."""
    one = open_tab(height=5000)
    one.open_notebook(lab.write("errors.ipynb", *CELLS))
    one.run_cell(0)
    one.run_cell(1)
    yield one
    one.errors.clear()


def kernel(tab: Any) -> str:
    """Which process answers."""
    panel = "[...window.jupyterapp.shell.widgets('main')].find((w) => w.sessionContext)"
    return str(tab.page.evaluate(f"() => {panel}.sessionContext.session.kernel.id"))


def test_a_cell_that_fails_is_noticed(tab: Any) -> None:
    assert not tab.failures()
    tab.run_cell(2)
    assert tab.failures() == ["ZeroDivisionError: division by zero"]
    tab.page.evaluate("() => window.jupyterapp.commands.execute('notebook:clear-cell-output')")


def test_a_view_that_cannot_be_drawn_says_so_beside_the_others(tab: Any) -> None:
    tab.page.get_by_role("alert").filter(has_text="This view could not be drawn: no such panel").wait_for()
    tab.page.wait_for_selector(".sb-tiling-svg")
    tab.page.wait_for_selector(".sb-access-svg")
    tab.page.locator(".sb-reader .row").nth(20).wait_for()
    assert any("no such panel" in line for line in tab.errors), "the console has it too"


def test_an_error_in_a_view_is_one_sentence_and_the_kernel_lives(tab: Any) -> None:
    before = kernel(tab)
    tab.page.wait_for_function(f"({PROBLEM})('.sb-frag') === \"ZeroDivisionError: of the view's own\"")
    tab.run_cell(3)
    for view in (".sb-tiling", ".sb-reader"):
        said = tab.page.wait_for_function(PROBLEM, arg=view).json_value()
        assert "\n" not in said.strip()
        assert "Traceback" not in said
        assert "divi" in said, "the reason"
    tab.run_cell(4)
    tab.page.get_by_text("the kernel is alive", exact=True).wait_for()
    for view in (".sb-tiling", ".sb-reader"):
        tab.page.wait_for_function(f"(view) => !({PROBLEM})(view)", arg=view)
    tab.page.wait_for_selector(".sb-tiling-svg")
    assert kernel(tab) == before, "the same process answers"
