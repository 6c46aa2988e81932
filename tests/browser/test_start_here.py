"""The first notebook in a real JupyterLab, from top to bottom: its first view is drawn, nothing ends in an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from notebooks import printed
from playwright.sync_api import expect

ROWS = "() => [...document.querySelectorAll('.sb-map-svg .lowered .cell')].map((cell) => Number(cell.dataset.g))"


# The kernel has said which language it speaks, and the notebook was told.
KERNEL_NAMED = """async () => {
  const panel = [...window.jupyterapp.shell.widgets("main")].find((w) => w.sessionContext);
  const info = await panel.sessionContext.session.kernel.info;
  await new Promise((done) => setTimeout(done, 300));
  return info.language_info.version === panel.model.getMetadata("language_info").version;
}"""
DIRTY = "() => [...window.jupyterapp.shell.widgets('main')].find((w) => w.sessionContext).context.model.dirty"


def made_with(notebook: str, version: str) -> str:
    """The text of a notebook, as another Python than this one has left it."""
    changed = re.sub(r'("version": )"[\d.]+"', rf'\1"{version}"', notebook)
    assert changed != notebook
    return changed


def joined(output: dict[str, Any]) -> Any:
    """An output with its text in one piece: JupyterLab keeps lines."""
    return nbformat.from_dict({**output, "text": "".join(output["text"])} if "text" in output else output)


def test_the_first_notebook_runs(open_tab: Callable[..., Any], lab: Any, repository: Path) -> None:
    from subbyte.technique.duplicates import duplicates

    lab.bring("00_start_here")
    tab = open_tab(width=1100, height=9000)  # tall: what is out of sight is not drawn
    tab.run_notebook("00_start_here.ipynb")
    record = duplicates("resnet50.stage2@8", (1, 4))
    expect(tab.page.locator(".sb-map .say")).to_have_text(re.compile("^Entry 13"))
    assert tab.page.evaluate(ROWS) == list(record.genuine_of)
    expect(tab.page.locator(".sb-curve-svg")).to_contain_text("(finished)")
    expect(tab.page.get_by_role("button", name="Build and check")).to_be_visible()
    assert not tab.failures()
    expect(tab.answers("Not yet"), "each exercise waits for an answer").to_have_count(2)
    expect(tab.answers("Right")).to_have_count(0)
    expect(tab.page.locator("details:has(summary:text-is('Solutions')) pre").first).to_be_hidden()
    ran = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=list(map(joined, tab.outputs())))])
    kept = printed(nbformat.read(repository / "notebooks/00_start_here.ipynb", as_version=4))
    assert len(kept) > 9
    assert not [line for line in kept if line not in printed(ran)], "run `make notebooks NOTEBOOK=00`"
    tab.picture("start_here", ".jp-Notebook")


def test_the_committed_notebook_shows_its_pictures_before_a_cell_runs(open_tab: Callable[..., Any], lab: Any) -> None:
    lab.bring("00_start_here", "read")
    (lab.folder / "read.ipynb").write_text(made_with((lab.folder / "read.ipynb").read_text(), "3.9.1"))
    lab.trust("read.ipynb")
    tab = open_tab(width=1100, height=9000)
    tab.open_notebook("read.ipynb")
    pictures = '.jp-OutputArea img[src^="data:image/svg+xml"]'
    drawn = tab.page.locator(pictures)
    expect(drawn, "speed, duplicates, packing, layout and the search").to_have_count(5)
    assert all(width > 500 for width in drawn.evaluate_all("(all) => all.map((image) => image.naturalWidth)"))
    tab.picture("committed", ".jp-Notebook")
    tab.page.wait_for_function(KERNEL_NAMED)
    assert tab.page.evaluate(DIRTY) is False, "unsaved, though nobody has changed it"
