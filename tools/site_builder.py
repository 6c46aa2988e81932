"""The notebooks as a site that opens from a folder: no server, no network, interactive views.

python tools/site_builder.py                  executes every notebook and writes build/site/
python tools/site_builder.py 02 --to FOLDER   some of them, elsewhere

Each displayed view is there twice: as the page it writes with ``to_html()``, alive in a frame, and as its picture, for
paper and for browsers without scripts.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.filters import Highlight2HTML, ansi2html
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from notebooks import FOLDER, FROM_A_GPU, find, has_gpu
from notebooks import execute as run
from pygments.formatters import HtmlFormatter
from site_pages import PAGE

from subbyte.html import Markup, element, join, text

ROOT = Path(__file__).resolve().parent.parent
FILES = Path(__file__).resolve().parent / "site_files"
WORDS = ("GLOSSARY.md",)
"""Pages beside the notebooks that they link to; other files of the repository are named without a link."""


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


def with_links(text: str, known: set[str]) -> str:
    """HTML of a notebook with its links to notebooks and pages leading inside the site; others become plain text."""

    def lead(found: re.Match[str]) -> str:
        target, words = found[1], found[2]
        name = Path(target.partition("#")[0]).name
        page = Path(name).stem + ".html"
        if "://" in target or target.startswith("#"):
            return found[0]
        return element("a", Markup(words), href=page) if page in known else words

    return re.sub(r'<a href="([^"]*)">(.*?)</a>', lead, text, flags=re.DOTALL)


def output_html(output: dict[str, Any]) -> str:
    """One output of a cell: a view, a table, a picture or text."""
    if output["output_type"] == "stream":
        return element("pre", Markup(ansi2html(output["text"])))
    if output["output_type"] == "error":
        return element("pre", Markup(ansi2html("\n".join(output["traceback"]))), class_="error")
    data = output.get("data", {})
    if PAGE in data:
        return view_html(data)
    if "text/html" in data:
        return str(data["text/html"])
    if "image/svg+xml" in data:
        return str(data["image/svg+xml"])
    if "image/png" in data:
        return element("img", alt="", src=f"data:image/png;base64,{data['image/png'].strip()}")
    return element("pre", Markup(ansi2html(data.get("text/plain", ""))))


def view_html(data: dict[str, Any]) -> str:
    """A view: its live page in a frame, and its picture where frames do not run."""
    page = data[PAGE]
    note = " Its sliders and menus need a kernel: run the notebook." if page["controls"] else ""
    place = f"views/{page['page']}"
    alone = element("a", "Open it alone", href=place)
    return element(
        "figure",
        element("iframe", src=place, title=page["title"], loading="lazy"),
        element("div", Markup(data["text/html"]), class_="still"),
        element("figcaption", f"Alive: click into it and use the arrow keys.{note} ", alone, "."),
        class_="view",
    )


def cell_html(cell: dict[str, Any], known: set[str]) -> str:
    """One cell with its outputs."""
    if cell["cell_type"] == "markdown":
        return element("section", Markup(with_links(markdown2html_mistune(cell["source"]), known)))
    if cell["cell_type"] != "code" or not cell["source"].strip():
        return ""
    code = Highlight2HTML(pygments_lexer="ipython3")(cell["source"])
    outputs = [element("div", Markup(output_html(output)), class_="output") for output in cell["outputs"]]
    return join(element("div", Markup(code), class_="code"), *outputs)


def heading(notebook: dict[str, Any]) -> tuple[str, str]:
    """Title and first paragraph of a notebook, with the claim that it announces, as plain text."""
    first = next(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    title, _, rest = first.partition("\n")
    parts = [part.strip() for part in rest.split("\n\n") if part.strip()]
    place = next(place for place, part in enumerate(parts) if not part.startswith((">", "#")))
    paragraph = parts[place]
    if paragraph.endswith(":") and parts[place + 1 :] and parts[place + 1].startswith(">"):
        paragraph += " " + re.sub(r"^>\s*", "", parts[place + 1], flags=re.MULTILINE)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[*_`]", lambda found: found[1] or "", paragraph)
    return title.lstrip("# ").strip(), " ".join(plain.split())


def still_picture(notebook: dict[str, Any]) -> str:
    """The first picture of a notebook, or nothing."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            words = output.get("data", {}).get("text/html", "")
            if found := re.search(r'<img [^>]*src="data:image/svg\+xml[^"]*"[^>]*>', words):
                return found[0]
    return ""


def page_html(title: str, body: str, contents: list[tuple[str, str]], here: str) -> str:
    """A whole page: navigation, body, links to the page before and after."""
    names = [name for name, _ in contents]
    rows = [
        element("li", element("a", words, href=name, aria_current="page" if name == here else None))
        for name, words in contents
    ]
    around = join()
    if here in names[1:]:
        place = names.index(here)
        before = element("a", f"\u2190 {contents[place - 1][1]}", rel="prev", href=names[place - 1])
        after = None if place + 1 == len(names) else (
            element("a", f"{contents[place + 1][1]} \u2192", rel="next", href=names[place + 1]))  # fmt: skip
        around = element("nav", before, after, class_="around", aria_label="Pages")
    return (FILES / "page.html").read_text(encoding="utf-8").format(
        title=text(title), contents=join(*rows), body=body, around=around
    )  # fmt: skip


def index_html(notebooks: dict[str, nbformat.NotebookNode]) -> str:
    """What the site holds, one card for each notebook."""
    cards = []
    for name, notebook in notebooks.items():
        title, words = heading(notebook)
        shot = element("span", Markup(still_picture(notebook)), class_="shot", aria_hidden="true")
        link = element("a", shot, element("b", title), href=f"{name}.html")
        cards.append(element("li", link, element("p", words)))
    return (
        "<h1>subbyte</h1><p>Sub-byte convolutions on Tensor Cores, step by step. These are the toolkit's notebooks "
        "as they ran when the site was built. The views are alive: click into one and use the arrow keys. To change "
        "code, shapes and kernels, run the notebooks themselves with <code>make lab</code>.</p>"
        + element("ol", *cards, class_="cards")
    )


def style() -> str:
    """The site's style with the colours of the code, for light and dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in ("friendly", "github-dark"))
    own = (FILES / "site.css").read_text(encoding="utf-8")
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n{own}"


def build(sources: list[Path], target: Path) -> None:
    """Write the site of these notebooks to ``target``, which is emptied first. Raises CellExecutionError."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "views").mkdir(parents=True)
    notebooks = {}
    for path in sources:
        print(f"{path.name}: running", flush=True)
        notebooks[path.stem] = execute(path, target / "views")
    words = {Path(name).stem + ".html": (ROOT / name).read_text(encoding="utf-8") for name in WORDS}
    contents = [("index.html", "Start"), *((f"{name}.html", heading(one)[0]) for name, one in notebooks.items())]
    contents += [(name, text.partition("\n")[0].lstrip("# ")) for name, text in words.items()]
    known = {name for name, _ in contents} | {"README.html"}

    def write(name: str, title: str, body: str) -> None:
        body = body.replace('href="README.html"', 'href="index.html"')
        (target / name).write_text(page_html(title, body, contents, name), encoding="utf-8")

    write("index.html", "subbyte", index_html(notebooks))
    for name, notebook in notebooks.items():
        write(f"{name}.html", heading(notebook)[0], "".join(cell_html(cell, known) for cell in notebook.cells))
    for name, content in words.items():
        write(name, content.partition("\n")[0].lstrip("# "), with_links(markdown2html_mistune(content), known))
    (target / "site.css").write_text(style(), encoding="utf-8")
    shutil.copy(FILES / "site.js", target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target / 'index.html'}: {len(notebooks)} notebooks, {size / 1e6:.1f} MB")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of file names; default: every notebook")
    parser.add_argument("--to", type=Path, default=ROOT / "build/site", metavar="FOLDER")
    parser.add_argument("--notebooks", type=Path, default=FOLDER, metavar="FOLDER", help="where the notebooks are")
    given = parser.parse_args()
    sources = find(given.names) if given.notebooks == FOLDER else sorted(given.notebooks.glob("*.ipynb"))
    build(sources, given.to)
    return 0


if __name__ == "__main__":
    sys.exit(main())
