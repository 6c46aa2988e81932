"""What a page shows of a picture, and what a picture from Python would show."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
SHOWN = """(selector) => [...document.querySelectorAll(`${selector} .stage svg text`)]
  .filter((e) => getComputedStyle(e).visibility === "visible" && e.textContent).map((e) => e.textContent)"""
SENTENCE_IN_SIGHT = """(selector) => {
  const say = document.querySelector(`${selector} .say`).getBoundingClientRect();
  return say.height > 0 && say.bottom <= window.innerHeight && say.right <= window.innerWidth;
}"""


def visible(svg: str) -> list[str]:
    """The texts that a picture from Python shows, in their order."""

    def texts(node: ElementTree.Element) -> list[str]:
        if node.get("class") in ("later", "none"):
            return []
        own = [node.text] if node.tag == f"{SVG}text" and node.text else []
        return own + [words for child in node for words in texts(child)]

    return texts(ElementTree.fromstring(svg))


def states(svg: str) -> list[str]:
    """The classes of the boxes that have a state, in their order."""
    rows = [one for one in ElementTree.fromstring(svg).iter() if one.get("data-kind") == "states"]
    return [str(cell.get("class")) for row in rows for cell in row]
