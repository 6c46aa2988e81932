"""The documentation as a site that opens from a folder: no server, no network, lessons with live views.

python tools/site_builder.py                  executes every notebook and writes build/site/
python tools/site_builder.py 02 --to FOLDER   some of them, elsewhere

Sphinx with MyST-NB and the theme Furo. Each displayed view is there twice: as the page it writes with ``to_html()``,
alive in a frame, and as its picture, for paper and for browsers without scripts.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from notebooks import FOLDER, FROM_A_GPU, find, has_gpu
from notebooks import execute as run
from site_sources import write_sources

ROOT = Path(__file__).resolve().parent.parent
FILES = Path(__file__).resolve().parent / "site_files"


def execute(path: Path, pages: Path) -> nbformat.NotebookNode:
    """The notebook, run from top to bottom, with the page of each view it displays. Raises CellExecutionError.

    One whose outputs come from a GPU stays as it is committed where there is none.
    """
    notebook = nbformat.read(path, as_version=4)
    if path.stem in FROM_A_GPU and not has_gpu():
        return notebook
    hook = f"import sys; sys.path.insert(0, {str(FILES.parent)!r})\n"
    hook += f"import site_pages; site_pages.collect({str(pages)!r}, {path.stem!r})"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(hook))
    run(notebook, path.parent)
    del notebook.cells[0]
    return notebook


def build(sources: list[Path], target: Path, packages: list[str]) -> int:
    """Write the site of these notebooks to ``target``, which is emptied first; the exit code of Sphinx, which takes a
    warning for an error. Raises CellExecutionError."""
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        views = folder / "extra/views"
        views.mkdir(parents=True)
        notebooks = {}
        for path in sources:
            print(f"{path.name}: running", flush=True)
            notebooks[path.stem] = execute(path, views)
        write_sources(notebooks, folder, packages)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", folder, target]
        code = subprocess.run([*map(str, command), "-d", str(folder / "doctrees")], check=False).returncode
    if code == 0:
        shutil.rmtree(target / ".doctrees", ignore_errors=True)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        print(f"{target / 'index.html'}: {len(notebooks)} notebooks, {size / 1e6:.1f} MB")
    return code


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of file names; default: every notebook")
    parser.add_argument("--to", type=Path, default=ROOT / "build/site", metavar="FOLDER")
    parser.add_argument("--notebooks", type=Path, default=FOLDER, metavar="FOLDER", help="where the notebooks are")
    parser.add_argument("--reference", nargs="+", default=[], metavar="PACKAGE", help="of these packages alone")
    given = parser.parse_args()
    sources = find(given.names) if given.notebooks == FOLDER else sorted(given.notebooks.glob("*.ipynb"))
    return build(sources, given.to, given.reference)


if __name__ == "__main__":
    sys.exit(main())
