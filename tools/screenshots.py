"""Take the README's screenshots, docs/images/*.webp: real cells in a real JupyterLab, run and clicked here.

python tools/screenshots.py            all of them
python tools/screenshots.py packing    those whose name contains a word
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from PIL import Image
from real_browser import CannotStart, Lab, Tab, launch

FOLDER = Path(__file__).resolve().parent.parent / "docs/images"
SCALE = 1.5


@dataclass(frozen=True)
class Shot:
    """One picture: the text above the cell, the cell, what is done in the view, the window's size."""

    name: str
    text: str
    code: str
    act: Callable[[Tab], None]
    height: int
    width: int = 980
    dark: bool = False


def keys(selector: str, *pressed: str) -> Callable[[Tab], None]:
    """Press keys in an element."""

    def act(tab: Tab) -> None:
        tab.page.wait_for_selector(selector, timeout=60_000)
        tab.page.locator(selector).first.focus()
        for key in pressed:
            tab.page.keyboard.press(key)
            tab.page.wait_for_timeout(60)

    return act


def choose_entry(tab: Tab) -> None:
    """An input pixel with copies in the lowered matrix."""
    tab.page.locator('.sb-map-svg .lowered .cell[data-k="21"]').click()


def read_kernel(tab: Tab) -> None:
    """The machine code, at a shuffle that only one of the two has."""
    keys(".sb-reader .pane", "4", "Home")(tab)
    tab.page.get_by_role("button", name="shuffle").click()
    keys(".sb-reader .pane", *["ArrowDown"] * 12, *["ArrowUp"] * 12)(tab)


def open_workbench(tab: Tab) -> None:
    """A study that has ended, one of its trials, and the kernel of that trial below."""
    page = tab.page
    page.wait_for_selector(".sb-space td", timeout=60_000)
    page.get_by_role("tab", name="Tuning").first.click()
    page.wait_for_selector(".sb-monitor-svg")
    keys(".sb-monitor .stage", "End", *["ArrowLeft"] * 30)(tab)
    page.get_by_role("tab", name="Duplicates").first.click()
    page.wait_for_selector(".sb-map-svg")
    page.wait_for_timeout(1500)


SHOTS = (
    Shot(
        "screenshot_duplicates",
        "## Which entries are the same pixel?\nClick a number: all copies light up. Move a slider: the kernel answers.",
        "from subbyte_widgets import DuplicateExplorer\n\nDuplicateExplorer('resnet50.stage2@8', tile=(2, 4))",
        choose_entry, 1150,
    ),
    Shot(
        "screenshot_load",
        "## One warp of a generated kernel, instruction by instruction\nFrom global to shared memory, into registers, "
        "into the matrix unit; what is already there is not fetched again.",
        "from subbyte_widgets import LoadStepper\n\nLoadStepper('resnet50.stage2@8')",
        keys(".sb-load .stage", "Home", "PageDown", *["ArrowRight"] * 9), 930, dark=True,
    ),
    Shot(
        "screenshot_packing",
        "## 32 lanes pack their sums without leaving their registers\nOne value is followed from its sum to the word "
        "that is stored.",
        "from subbyte_widgets import PackingStepper\n\nPackingStepper(scheme='width8', follow=77)",
        keys(".sb-pack .stage", "Home", *["ArrowRight"] * 8), 1120,
    ),
    Shot(
        "screenshot_kernel",
        "## Flip a technique, see which instructions change\nThe same layer with and without packing in registers.",
        "import subbyte\nfrom subbyte_widgets import KernelReader\n\nfirst = subbyte.build('resnet50.stage2@8')\n"
        "other = first.config.with_values({'register_packing': False})\n"
        "KernelReader(first, subbyte.build(first.workload, other))",
        read_kernel, 900,
    ),
    Shot(
        "screenshot_space",
        "## Every configuration that was measured\nEach line is one kernel; the reason of a refusal is said.",
        "from subbyte_widgets import SpaceExplorer\n\nSpaceExplorer('resnet50.stage2@8')",
        keys(".sb-space .lines", "Home", "ArrowUp"), 900, 1160,
    ),
    Shot(
        "screenshot_speed",
        "## How fast could it be, how fast is it?",
        "from subbyte_widgets import SpeedOfLight\n\nSpeedOfLight('resnet50.stage2@8')",
        keys(".sb-speed .stage", "Home", *["ArrowDown"] * 4), 840, 1160,
    ),
    Shot(
        "screenshot_taps",
        "## Hopper: a tap is a start address\nNine taps, three rows of shared memory, nothing moved.",
        "from subbyte import PipelineConfig\nfrom subbyte.technique import tap_addresses\n"
        "from subbyte_widgets import TapWindows\n\n"
        "config = PipelineConfig(tile_width=14, segments=2, stages=4, stagger=0)\n"
        "TapWindows(tap_addresses('resnet50.stage4@8', config, output_row=3))",
        keys(".sb-taps .stage", "Home", "ArrowDown", "ArrowRight", "ArrowRight"), 1010,
    ),
    Shot(
        "screenshot_stores",
        "## Hopper: where each byte of the result goes\nFrom the sums of wgmma to packed words of the next layer.",
        "from subbyte_widgets import StorePath\n\nStorePath()",
        keys(".sb-stores .stage", "Home", *["ArrowDown"] * 5, *["ArrowRight"] * 3), 1010,
    ),
    Shot(
        "screenshot_workbench",
        "## One selection for all views\nA trial clicked in the monitor opens in all the others.",
        "from subbyte.measure.replay import ReplayRunner\nfrom subbyte import space\n"
        "from subbyte.tune.study import Study\nfrom subbyte_widgets import workbench\n\n"
        "name = 'resnet50.stage2@8'\nstudy = Study(space(name, 'sm_90a'), 'diverse', seed=0)\n"
        "study.run(ReplayRunner(name), trials=120)\nworkbench(name, study)",
        open_workbench, 2240,
    ),
)  # fmt: skip


def take(tab: Tab, lab: Lab, shot: Shot) -> bytes:
    """The window with the shot's notebook, as PNG."""
    cells = [nbformat.v4.new_markdown_cell(shot.text), nbformat.v4.new_code_cell(shot.code)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    name = f"{shot.name.removeprefix('screenshot_')}.ipynb"
    nbformat.write(notebook, lab.folder / name)
    tab.run_notebook(name, seconds=240)
    tab.theme("JupyterLab Dark" if shot.dark else "JupyterLab Light")
    shot.act(tab)
    tab.page.evaluate("() => { document.querySelector('.jp-WindowedPanel-outer')?.scrollTo(0, 0) }")
    tab.page.mouse.move(5, 5)
    tab.page.wait_for_timeout(600)
    if problems := tab.failures():
        raise CannotStart(f"{shot.name}: {problems[0]}")
    return bytes(tab.page.screenshot())


def main() -> int:
    """Take the screenshots that the command line names."""
    chosen = [shot for shot in SHOTS if all(word in shot.name for word in sys.argv[1:])]
    with tempfile.TemporaryDirectory() as folder, launch() as browser:
        lab = Lab(Path(folder))
        try:
            for shot in chosen:
                tab = Tab(browser, lab, width=shot.width, height=shot.height, scale=SCALE)
                picture = Image.open(io.BytesIO(take(tab, lab, shot)))
                tab.close()
                path = FOLDER / f"{shot.name}.webp"
                picture.convert("RGB").save(path, quality=82, method=6)
                print(
                    f"{path.name}: {picture.width} x {picture.height}, {path.stat().st_size / 1000:.0f} kB", flush=True
                )
        finally:
            lab.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotStart as problem:
        sys.exit(str(problem))
