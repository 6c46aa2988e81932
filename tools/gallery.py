"""Pictures of every view in the sizes and themes of readers' screens, and what the measurement finds in them.

python tools/gallery.py              all of them, into build/gallery
python tools/gallery.py load pack    those whose class or name has one of the words

Panels with controls of ipywidgets, the workbench among them, and charts are shown in a real JupyterLab.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from page_faults import SCREENS, page_faults, show_on
from real_browser import CannotStart, Lab, Tab, Watched, launch
from sample_views import PANELS, START, VIEWS, sample_names, sample_view

FOLDER = Path(__file__).resolve().parent.parent / "build/gallery"
PANEL = ".jp-CodeCell:last-of-type .jp-OutputArea"


def views(browser: Any, folder: Path, chosen: list[str]) -> int:
    """Pictures of views on plain pages; how many places in them cannot be read."""
    names, faults = sample_names(), 0
    tabs = {scale: Watched(browser, ("file:",), 1280, 900, scale) for scale in {one.scale for one in SCREENS}}
    for selector in chosen:
        path = folder / "view.html"
        sample_view(selector, names).to_html(path)
        for tab in tabs.values():
            tab.page.goto(path.as_uri())
            tab.page.wait_for_selector(selector)
        for screen in SCREENS:
            page = tabs[screen.scale].page
            faults += told(f"{selector} {screen.name}", page_faults(page, selector, screen))
            show_on(page, screen)
            page.screenshot(path=str(FOLDER / f"{selector.removeprefix('.sb-')}.{screen.name}.png"), full_page=True)
    return faults


def panels(browser: Any, folder: Path, chosen: list[str]) -> int:
    """The same of panels and charts, each in the last cell of a notebook in JupyterLab."""
    lab, faults = Lab(folder), 0
    try:
        tabs = {scale: Tab(browser, lab, 1280, 900, scale) for scale in {one.scale for one in SCREENS}}
        for name in chosen:
            code, shown = PANELS[name]
            notebook = lab.write("panel.ipynb", START, code)
            for screen in SCREENS:
                tab = tabs[screen.scale]
                if not screen.dark:
                    tab.run_notebook(notebook)
                tab.page.wait_for_selector(shown)
                tab.theme(f"JupyterLab {'Dark' if screen.dark else 'Light'}")
                found = page_faults(tab.page, PANEL, screen)
                found = [one for one in found if not one.startswith("below")]  # JupyterLab scrolls: "tall" says how far
                faults += told(f"{name} {screen.name}", found)
                path = str(FOLDER / f"{name.replace(' ', '_')}.{screen.name}.png")
                tab.page.locator(PANEL).screenshot(path=path)
    finally:
        lab.close()
    return faults


def told(what: str, found: list[str]) -> int:
    """Print what cannot be read in a picture; how many places these are."""
    print(f"{what}: {len(found)}", *found, sep="\n  ", flush=True)
    return len(found)


def main() -> int:
    """Take the pictures that the command line names; 1 when something in them cannot be read."""
    words = sys.argv[1:] or [""]
    plain, shown = ([one for one in all_ if any(word in one for word in words)] for all_ in (VIEWS, PANELS))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, launch() as browser:
        faults = views(browser, Path(folder), plain) if plain else 0
        faults += panels(browser, Path(folder), shown) if shown else 0
    count = len(plain) + len(shown)
    print(f"{count} views in {FOLDER.relative_to(Path.cwd())}, {faults} places that cannot be read")
    return int(faults > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(str(problem))
