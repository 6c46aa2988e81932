"""Pictures of every view in the sizes and themes of readers' screens, and what the measurement finds in them.

python tools/gallery.py              all of them, into build/gallery
python tools/gallery.py load pack    those whose class has one of the words
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from page_faults import SCREENS, page_faults, show_on
from real_browser import CannotStart, Watched, launch
from sample_views import VIEWS, sample_names, sample_view

FOLDER = Path(__file__).resolve().parent.parent / "build/gallery"


def main() -> int:
    """Take the pictures that the command line names; 1 when something in them cannot be read."""
    chosen = [one for one in VIEWS if not sys.argv[1:] or any(word in one for word in sys.argv[1:])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    names, faults = sample_names(), 0
    with tempfile.TemporaryDirectory() as folder, launch() as browser:
        tabs = {scale: Watched(browser, ("file:",), 1280, 900, scale) for scale in {one.scale for one in SCREENS}}
        for selector in chosen:
            path = Path(folder) / "view.html"
            sample_view(selector, names).to_html(path)
            for tab in tabs.values():
                tab.page.goto(path.as_uri())
                tab.page.wait_for_selector(selector)
            for screen in SCREENS:
                page = tabs[screen.scale].page
                found = page_faults(page, selector, screen)
                faults += len(found)
                print(f"{selector} {screen.name}: {len(found)}", *found, sep="\n  ", flush=True)
                show_on(page, screen)
                page.screenshot(path=str(FOLDER / f"{selector.removeprefix('.sb-')}.{screen.name}.png"), full_page=True)
    print(f"{len(chosen)} views in {FOLDER.relative_to(Path.cwd())}, {faults} places that cannot be read")
    return int(faults > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(str(problem))
