"""What Sphinx reads: notebooks with frames for their views, pages from the repository, and those that list others."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import api_reference
import nbformat
import yaml
from site_pages import PAGE

from subbyte.html import Markup, element
from subbyte_widgets.charts.static import drawable, page_svg, scoped_style
from subbyte_widgets.charts.style import MIME as CHART

ROOT = Path(__file__).resolve().parent.parent
FILES = Path(__file__).resolve().parent / "site_files"
LESSONS, HOWTO, API = "lessons", "howto", "api"
GUIDES = ("tune_my_layer", "read_a_kernel", "pytorch", "measure", "own_kernel", "write_a_strategy", "add_a_family",
          "lesson_plan", "release")  # fmt: skip
"""The how-to pages in the order in which readers need them: from one layer to work on the project itself."""
WORDS = {"GLOSSARY.md": "glossary.md", "CHANGELOG.md": "changelog.md"}
"""Pages of the repository that are pages of the site."""
CHARTS = "chart-svg"
"""Class of the charts in pages: drawn in the page itself, so that they have its theme."""
LIVE = """The lessons are the project's notebooks as they ran when this site was built. Their views are alive; to change
code, shapes and kernels, run the notebooks with `make lab`."""


def write_sources(notebooks: Mapping[str, nbformat.NotebookNode], folder: Path, packages: Collection[str] = ()) -> None:
    """The sources of a site with these executed notebooks, whose views' pages lie in ``folder``/extra/views, and with
    the reference of some packages (default: all)."""
    for place in (LESSONS, HOWTO, API, "_static"):
        (folder / place).mkdir(exist_ok=True)
    shutil.copy(FILES / "conf.py", folder)
    shutil.copy(FILES / "site.js", folder / "_static")
    write(folder / "_static/site.css", site_style())
    where = places(notebooks)
    for name, notebook in notebooks.items():
        nbformat.write(lesson(notebook, where), folder / LESSONS / f"{name}.ipynb")
    for source, target in WORDS.items():
        write(folder / target, with_links((ROOT / source).read_text(encoding="utf-8"), where, "."))
    for name in GUIDES:
        text = (ROOT / f"docs/howto/{name}.md").read_text(encoding="utf-8")
        write(folder / HOWTO / f"{name}.md", with_links(text, where, HOWTO))
    modules = {name: text for name, text in api_reference.pages().items() if not packages or name in packages}
    for name, text in modules.items():
        write(folder / API / f"{name}.md", text)
    write(folder / "citation.md", citation((ROOT / "CITATION.cff").read_text(encoding="utf-8")))
    write(folder / "gallery.md", gallery(notebooks))
    write(folder / "index.md", index(notebooks, list(modules)))


def write(path: Path, text: str) -> None:
    """A page's text in its place."""
    path.write_text(text, encoding="utf-8")


def site_style() -> str:
    """The styles of the site's pages and of the charts in them."""
    return (FILES / "site.css").read_text(encoding="utf-8") + scoped_style(CHARTS) + "\n"


def places(notebooks: Mapping[str, Any]) -> dict[str, str]:
    """By the name of a file of the repository, the page of the site that shows it."""
    found = {f"{name}.ipynb": f"{LESSONS}/{name}.ipynb" for name in notebooks}
    found |= WORDS | {"README.md": "index.md"}
    return found | {f"{name}.md": f"{HOWTO}/{name}.md" for name in GUIDES}


def with_links(text: str, where: Mapping[str, str], here: str) -> str:
    """Markdown whose links lead to pages of the site; links to other files of the repository become their words."""

    def lead(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        if "://" in target or target.startswith("#"):
            return found[0]
        page = where.get(Path(target.partition("#")[0]).name)
        return f"[{words}]({os.path.relpath(page, here)})" if page else words

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", lead, re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text))


def lesson(notebook: nbformat.NotebookNode, where: Mapping[str, str]) -> nbformat.NotebookNode:
    """A notebook as Sphinx shows it: one form of each output, views in frames, links inside the site."""
    found = nbformat.from_dict(notebook)
    found.metadata.pop("widgets", None)
    for cell in found.cells:
        if cell.cell_type == "markdown":
            cell.source = with_links(cell.source, where, LESSONS)
        for output in cell.get("outputs", ()):
            if "data" in output:
                output.data, output.metadata = shown(output.data), {}
    return found


def shown(data: Mapping[str, Any]) -> dict[str, Any]:
    """The one form of an output that a page shows."""
    if PAGE in data:
        return {"text/html": frame(data[PAGE], data.get("text/html", ""), "../")}
    if CHART in data and drawable(data[CHART]):
        said = re.search(r' alt="([^"]*)"', data["text/html"])
        words = html.unescape(said[1]) if said else ""
        return {
            "text/html": element("figure", Markup(page_svg(data[CHART], words, CHARTS, live=False)), class_="chart")
        }
    for kind in ("text/html", "image/svg+xml", "image/png"):
        if kind in data:
            return {kind: data[kind]}
    return {"text/plain": data.get("text/plain", "")}


def frame(page: Mapping[str, Any], still: str, up: str) -> str:
    """A view: its live page in a frame, and its picture where frames do not run."""
    place = f"{up}views/{page['page']}"
    note = " Its sliders and menus need a kernel: run the notebook." if page["controls"] else ""
    alone = element("a", "Open it alone", href=place)
    return element(
        "figure",
        element("iframe", src=place, title=page["title"], loading="lazy"),
        element("div", Markup(still), class_="still"),
        element("figcaption", f"Alive: click into it and use the arrow keys.{note} ", alone, "."),
        class_="view",
    )


def heading(notebook: Mapping[str, Any]) -> tuple[str, str]:
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


def citation(text: str) -> str:
    """The page that says what to cite, from the text of CITATION.cff."""
    facts = yaml.safe_load(text)

    def named(work: Mapping[str, Any]) -> str:
        people = [one.get("name") or f"{one['given-names']} {one['family-names']}" for one in work["authors"]]
        return f"{', '.join(people)}: *{work['title']}*"

    papers = [f"* {named(one)}, {one['year']}. <{one['url']}> {one['notes']}" for one in facts["references"]]
    own = f"{named(facts)}, version {facts['version']}, {facts['license']}."
    return "\n\n".join(["# How to cite", facts["message"], own, "## The papers", "\n".join(papers),
                        f"## As a file\n\n```yaml\n{text}```"]) + "\n"  # fmt: skip


def gallery(notebooks: Mapping[str, nbformat.NotebookNode]) -> str:
    """One live example of each kind of view, with the lesson that explains it."""
    seen: dict[str, str] = {}
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            for output in cell.get("outputs", ()):
                page = output.get("data", {}).get(PAGE)
                if page and page["view"] not in seen:
                    still = output["data"].get("text/html", "")
                    lead = f"[{heading(notebook)[0]}]({LESSONS}/{name}.ipynb)"
                    seen[page["view"]] = f"## {page['view']}\n\nIn the lesson {lead}.\n\n{frame(page, still, '')}\n"
    return "# Gallery\n\nOne example of each view, alive.\n\n" + "\n".join(seen.values())


def index(notebooks: Mapping[str, nbformat.NotebookNode], modules: list[str]) -> str:
    """The first page, with the contents of all others."""
    intro = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n![")[0]
    cards = []
    for name, notebook in notebooks.items():
        title, words = heading(notebook)
        cards.append(element("li", element("a", element("b", title), href=f"{LESSONS}/{name}.html"),
                             element("p", words)))  # fmt: skip
    parts = [
        intro,
        LIVE,
        element("ol", *cards, class_="cards"),
    ]
    trees = {
        "Lessons": [f"{LESSONS}/{name}" for name in notebooks], "How to": [f"{HOWTO}/{name}" for name in GUIDES],
        "Reference": ["gallery", *(f"{API}/{name}" for name in modules), "glossary", "changelog", "citation"],
    }  # fmt: skip
    for caption, pages in trees.items():
        listed = "\n".join(pages)
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```" if pages else "")
    return "\n\n".join(parts) + "\n"
