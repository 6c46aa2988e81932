"""What all views share: strict keywords, a short repr, errors shown in place, pictures without a kernel."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import anywidget
import ipywidgets
import traitlets
from IPython.display import DisplayHandle, display

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.html import element, join, picture, text
from subbyte_widgets._cells import displayed, opened
from subbyte_widgets._selection import Follower, Selection

_PAGE = Path(__file__).parent / "page.html"
_SIGHT = Path(__file__).parent / "sight.js"
SHELL = Path(__file__).parent / "shell.js"
"""The script that views with one picture share; it precedes a view's own script."""
RADIOS = Path(__file__).parent / "radios.js"
"""Radio buttons; the styles for them are :data:`RADIOS_STYLE`."""
RADIOS_STYLE = RADIOS.with_suffix(".css").read_text(encoding="utf-8")
_END = "export default { render };"
_SVG_DATA = "data:image/svg+xml;base64,"
_ONLY_LIVE = re.compile(r' data-[\w-]+="[^"]*"| tabindex="0"|<title>[^<]*</title>')


_WORTH_PACKING = 1000
"""A value with at least this many characters of JSON is packed."""


def packed(value: Any, _widget: Any = None) -> Any:
    """``value`` as it is sent to the browser: deflated JSON in base64 after a marker, or the value itself if it is
    short."""
    text = json.dumps(value, separators=(",", ":"))
    if len(text) < _WORTH_PACKING:
        return value
    return "deflate," + base64.b64encode(zlib.compress(text.encode(), 4)).decode()


def unpacked(value: Any) -> Any:
    """The inverse of :func:`packed`."""
    if not isinstance(value, str) or not value.startswith("deflate,"):
        return value
    return json.loads(zlib.decompress(base64.b64decode(value.removeprefix("deflate,"))))


PACKED: dict[str, Any] = {"sync": True, "to_json": packed, "packed": True}
"""Tags for a large trait that only the kernel writes: it is sent packed and unpacked before the view sees it."""


def script(*files: Path) -> str:
    """The module of a view: scripts that it shares or is split into, then its own."""
    return "".join(file.read_text(encoding="utf-8") for file in files)


def refuse_unknown(cls: type[traitlets.HasTraits], given: dict[str, Any]) -> None:
    """Raise InvalidInput for a keyword that is not a public trait of ``cls`` (traitlets would silently accept it)."""
    known = [name for name in cls.class_trait_names() if not name.startswith("_")]
    for name in given:
        if name not in known:
            raise InvalidInput(f"{cls.__name__} has no option {name!r}: {did_you_mean(name, known)}")


def refuse_outside(view: Any, given: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> None:
    """Raise InvalidInput for a number among the options ``given`` that the view had to clamp to its range.

    ``shown`` is what is drawn, by name; by default the traits themselves. An empty view accepts any number.
    """
    for name, value in given.items():
        taken = getattr(view, name) if shown is None else shown[name]
        if isinstance(value, int) and taken != value:
            nearest = "" if taken == -1 else f"; the nearest there is: {taken}"
            raise InvalidInput(f"{type(view).__name__}: {name}={value} is out of range{nearest}")


class Displayed:
    """Adds to a widget a static picture for pages without a kernel, and keeps the one in the notebook's file up to
    date."""

    _saved: DisplayHandle | None = None

    def static(self) -> dict[str, str]:
        """What to show without a kernel, by MIME type."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if isinstance(self, Follower):
            self.catch_up()
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**(data or {}), "text/plain": repr(self), **self.static()}, metadata

    def _ipython_display_(self) -> None:
        opened(self)
        data, metadata = self._repr_mimebundle_()
        self._saved = display(data, metadata=metadata, raw=True, display_id=True)
        displayed(self)

    def save_picture(self) -> None:
        """Update the picture of this view in the notebook's file, after it has changed. Call it from a cell."""
        if self._saved is not None:
            data, metadata = self._repr_mimebundle_()
            self._saved.update(data, metadata=metadata, raw=True)


class StaticPicture(Displayed):
    """Static content for an object with ``to_svg()`` and ``alternative``: its picture."""

    alternative: str
    error: Any = ""
    note: Any = ""

    def to_svg(self) -> str:
        """The current state as a self-contained SVG picture."""
        raise NotImplementedError

    def static(self) -> dict[str, str]:
        """The picture as an image in HTML. It is sent with each display, so it contains nothing that only a live page
        uses."""
        svg = _ONLY_LIVE.sub("", self.to_svg())
        encoded = base64.b64encode(svg.encode()).decode()
        # An image, not inline SVG: the styles of a saved picture must not reach the live one on the same page.
        said = element("p", text(self.note)) if self.note else None
        return {"text/html": join(said, picture(f"{_SVG_DATA}{encoded}", self.error or self.alternative))}


def picture_in(data: Mapping[str, Any]) -> str:
    """The SVG text in what :meth:`StaticPicture.static` made; empty when there is none."""
    found = re.search(rf'src="{re.escape(_SVG_DATA)}([^"]*)"', str(data.get("text/html", "")))
    return base64.b64decode(found[1]).decode() if found else ""


def _packed_traits(cls: type) -> list[str]:
    """Names of the traits of a class, still in the making, that travel packed."""
    found = {name: one for base in reversed(cls.__mro__) for name, one in vars(base).items()}
    return [name for name, one in found.items()
            if isinstance(one, traitlets.TraitType) and one.metadata.get("packed")]  # fmt: skip


class View(StaticPicture, Follower, anywidget.AnyWidget):
    """Base of the drawn views. The state is in traits; the browser may write only those that the docstring names.

    With a ``selection``, a view shows what is selected there; one without other input waits until it is first visible.
    """

    error = traitlets.Unicode("", help="One sentence shown in place of the picture; empty when all is well").tag(
        sync=True
    )
    note = traitlets.Unicode("", help="One sentence above the picture: why it is not of what was asked")
    note.tag(sync=True)
    roomy = traitlets.Bool(False, help="Whether the line of the note is kept free, so that nothing moves").tag(
        sync=True
    )
    alternative = traitlets.Unicode("", help="The picture in words, for screen readers and text pages").tag(sync=True)
    in_sight = traitlets.Bool(False, help="Whether a browser shows the view; the browser says so").tag(sync=True)
    waiting = traitlets.Bool(False, help="The kernel works on what the view shows next").tag(sync=True)
    slow = False
    """Whether following takes so long that the view should show a waiting state."""
    _state_in_page: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Put the part that watches whether the view is shown around its module."""
        module = cls.__dict__.get("_esm")
        if isinstance(module, str | Path):  # a trait in the class that anywidget makes for each instance
            text = module.read_text(encoding="utf-8") if isinstance(module, Path) else module
            assert text.rstrip().endswith(_END), f"{cls.__name__}: the module must end with {_END}"
            names = json.dumps(_packed_traits(cls))
            watched = f"export default {{ render: sighted(render, {names}) }};\n"
            cls._esm = _SIGHT.read_text(encoding="utf-8") + text.rstrip().removesuffix(_END) + watched
        super().__init_subclass__(**options)

    def __init__(self, **traits: Any) -> None:
        refuse_unknown(type(self), traits)
        try:
            super().__init__(**traits)
        except traitlets.TraitError as problem:
            raise InvalidInput(f"{type(self).__name__}: {problem}") from None

    @traitlets.observe("in_sight")
    def _seen(self, change: Any) -> None:
        if change.new and self.selection is not None:
            self.selection.wake()

    def _wait(self, waiting: bool) -> None:
        if self.slow:
            self.waiting = waiting

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.error or self.alternative or 'empty'}>"

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with this view in it, live without a kernel or a network; also written to ``path``."""
        self.catch_up()
        state = self.get_state(["error", "note", "alternative", *self._state_in_page])
        page = Template(_PAGE.read_text(encoding="utf-8")).substitute(
            title=text(self.alternative or type(self).__name__),
            style=str(self._css),
            # "<" never occurs raw inside the scripts, so no text in the state can close them
            state=json.dumps(state).replace("<", "\\u003c"),
            module=json.dumps(str(self._esm)).replace("<", "\\u003c"),
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page


class Panel(StaticPicture, Follower, ipywidgets.VBox):
    """A view with its controls above it, displayed as one object so that the static picture is kept.

    ``view`` is set before ``super().__init__`` is called. With a ``selection``, the controls follow it too.
    """

    view: View

    def __init__(self, children: Sequence[ipywidgets.Widget], selection: Selection | None = None, **box: Any) -> None:
        super().__init__(list(children), **box)
        self.view.roomy = True
        self.view.observe(self._seen, "in_sight")
        self.selection = selection

    @property
    def in_sight(self) -> bool:
        """Whether a browser currently shows the view."""
        return self.view.in_sight

    @property
    def error(self) -> str:
        """The view's error."""
        return self.view.error

    @error.setter
    def error(self, words: str) -> None:
        self.view.error = words

    @property
    def note(self) -> str:
        """What the view says above its picture."""
        return self.view.note

    @note.setter
    def note(self, words: str) -> None:
        self.view.note = words

    def _seen(self, change: Any) -> None:
        if change.new and self.selection is not None:
            self.selection.wake()

    def _wait(self, waiting: bool) -> None:
        self.view._wait(waiting)

    @property
    def alternative(self) -> str:  # type: ignore[override]
        """The picture in words."""
        return self.view.alternative

    def to_html(self, path: str | Path | None = None) -> str:
        """The view as a page of its own, without the controls; also written to ``path``."""
        self.catch_up()
        return self.view.to_html(path)

    def to_svg(self) -> str:
        """The view's picture, without the controls."""
        self.catch_up()
        return self.view.to_svg()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.view.error or self.alternative or 'empty'}>"
