"""Notebooks as slides with live views, to open from a folder without a network: build/slides/index.html.

``python tools/slides.py [NAME ...] [--to FOLDER]`` executes them first. Sphinx with sphinx-revealjs, which carries
reveal.js: the title is a slide, each section (``##``) is the next. Solutions are not on the slides.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from notebooks import find
from site_builder import execute
from site_sources import FILES, LESSONS, heading, lesson, site_style, write
from student import for_students

ROOT = Path(__file__).resolve().parent.parent


def write_slides(notebooks: Mapping[str, nbformat.NotebookNode], folder: Path) -> None:
    """The sources of the slides of these executed notebooks, whose views' pages lie in ``folder``/extra/views.

    Raises InvalidInput for solutions that cannot be told from the lesson.
    """
    for place in (LESSONS, "_static"):
        (folder / place).mkdir(exist_ok=True)
    shutil.copy(FILES / "slides_conf.py", folder / "conf.py")
    for name in ("site.js", "slides.css"):
        shutil.copy(FILES / name, folder / "_static")
    write(folder / "_static/site.css", site_style())
    for name, notebook in notebooks.items():
        made = lesson(for_students(notebook, f"{name}.ipynb"), {})
        made.metadata["language_info"] = {
            "name": "python",
            "pygments_lexer": "python",
        }  # a name that highlight.js knows
        nbformat.write(made, folder / LESSONS / f"{name}.ipynb")
    links = [f"* [{heading(notebook)[0]}]({LESSONS}/{name}.ipynb)" for name, notebook in notebooks.items()]
    pages = "\n".join(f"{LESSONS}/{name}" for name in notebooks)
    parts = ["# subbyte", "\n".join(links), f"```{{toctree}}\n:hidden:\n\n{pages}\n```"]
    write(folder / "index.md", "\n\n".join(parts) + "\n")


def publish(notebooks: Mapping[str, nbformat.NotebookNode], folder: Path, target: Path) -> int:
    """Write the slides of executed notebooks to ``target``, through sources in ``folder``; the exit code of Sphinx,
    which takes a warning for an error. Raises InvalidInput as :func:`write_slides` does."""
    write_slides(notebooks, folder)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "revealjs", folder, target]
    return subprocess.run([*map(str, command), "-d", str(folder / "doctrees")], check=False).returncode


def build(sources: list[Path], target: Path) -> int:
    """Run notebooks and write their slides to ``target``, which is emptied first; the exit code of Sphinx.

    Raises CellExecutionError, and InvalidInput as :func:`write_slides` does.
    """
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        views = Path(made) / "extra/views"
        views.mkdir(parents=True)
        notebooks = {}
        for path in sources:
            print(f"{path.name}: running", flush=True)
            notebooks[path.stem] = execute(path, views)
        code = publish(notebooks, Path(made), target)
    if code == 0:
        print(f"{target / 'index.html'}: slides of notebooks: {len(notebooks)}")
    return code


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of file names; default: every notebook")
    parser.add_argument("--to", type=Path, default=ROOT / "build/slides", metavar="FOLDER")
    given = parser.parse_args()
    return build(find(given.names), given.to)


if __name__ == "__main__":
    sys.exit(main())
