"""Runs inside a notebook's kernel while the site is built: every view that is displayed leaves its page in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subbyte_widgets._base import Displayed, View

PAGE = "application/vnd.subbyte.page+json"
# Tells the page around it how high the view is, and keeps telling; takes over that page's theme.
MEASURE = """<style>
:root[data-theme=dark] { color-scheme: dark; --jp-content-font-color1: #e6e6e6; --jp-content-font-color2: #b0b0b0;
  --jp-layout-color1: #16181b; --jp-layout-color2: #24272c; --jp-layout-color3: #3a3e45; --jp-border-color1: #55585e;
  --jp-border-color2: #33363b; --jp-brand-color1: #6cb2f5; }
:root[data-theme=dark] body { background: #16181b; color: #e6e6e6; }
:root[data-theme=light] { color-scheme: light; --jp-content-font-color1: initial; --jp-content-font-color2: initial;
  --jp-layout-color1: initial; --jp-layout-color2: initial; --jp-layout-color3: initial; --jp-border-color1: initial;
  --jp-border-color2: initial; --jp-brand-color1: initial; }
:root[data-theme=light] body { background: #fff; color: #1f2328; }
</style>
<script>
addEventListener("message", (event) => {
  if (typeof event.data?.dark !== "boolean") return;
  document.documentElement.dataset.theme = event.data.dark ? "dark" : "light";
  document.body.dataset.jpThemeLight = String(!event.data.dark);
});
const say = () => parent.postMessage({ high: document.documentElement.offsetHeight }, "*");
new ResizeObserver(say).observe(document.body);
</script>
</body>"""


def collect(folder: str, prefix: str) -> None:
    """From now on, write the page of each displayed view to ``folder``/``prefix``-NUMBER.html and name it beside the
    static picture. A view that is shown again, or renewed, keeps its number."""
    plain = Displayed._repr_mimebundle_
    numbers: dict[int, int] = {}
    kept: list[Any] = []  # ids stay unique while their objects live

    def with_page(self: Displayed, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = plain(self, **options)
        view = getattr(self, "view", self)
        if isinstance(view, View) and not view.error:
            if id(view) not in numbers:
                numbers[id(view)] = len(numbers)
                kept.append(view)
            name = f"{prefix}-{numbers[id(view)]}.html"
            text = view.to_html().replace("</body>", MEASURE)
            (Path(folder) / name).write_text(text, encoding="utf-8")
            data[PAGE] = {
                "page": name, "title": view.alternative, "controls": view is not self, "view": type(view).__name__
            }  # fmt: skip
        return data, metadata

    Displayed._repr_mimebundle_ = with_page  # type: ignore[method-assign]
