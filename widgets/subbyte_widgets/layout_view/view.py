"""The layout view: what one warp's accesses touch, sector by sector and bank by bank, in three layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import InvalidInput, SubbyteError, did_you_mean
from subbyte.spaces.configuration import Configuration
from subbyte.technique import Access, Accesses, access_map, accesses
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import PACKED, SHELL, View, refuse_outside, refuse_unknown, script
from subbyte_widgets._selection import FIRST, Choice
from subbyte_widgets.layout_view.picture import KINDS, NAMES, access_svg, in_words
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent


class LayoutView(View):
    """Draws the accesses of one warp (:func:`subbyte.accesses`); of each kind the one with the most active lanes.

    ``workload``: a name, a spec or a ConvWorkload; the default is that of the selection, or ResNet50's second stage.
    ``where`` takes ``arch``, ``block``, ``warp`` and ``iteration`` of :func:`subbyte.accesses`. The browser writes
    ``data_layout`` (nhwc, hwnc, nhwcnc), ``kind`` (``tile``, ``activation load``, ...) and ``lane`` (-1 for none).
    """

    _esm = script(SHELL, HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("pictures", "kinds", "layouts", "data_layout", "kind", "lane")

    pictures: traitlets.Dict[str, str] = traitlets.Dict(
        help="Pictures by 'kind|layout', or by kind where the layout makes no difference"
    ).tag(**PACKED)
    kinds: traitlets.Dict[str, str] = traitlets.Dict(help="Names of the kinds of access there are").tag(sync=True)
    layouts: traitlets.Dict[str, str] = traitlets.Dict(NAMES).tag(sync=True)
    data_layout = traitlets.Unicode("nhwc", help="nhwc, hwnc or nhwcnc").tag(sync=True)
    kind = traitlets.Unicode("tile").tag(sync=True)
    lane = traitlets.Int(-1, help="The chosen lane, -1 for none").tag(sync=True)

    def __init__(
        self,
        workload: ConvWorkload | str | None = None,
        config: Configuration | None = None,
        where: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        refuse_unknown(type(self), options)
        self.records: dict[str, Accesses] = {}
        super().__init__(**options)
        if workload is not None or self.selection is None:
            self.show(workload or FIRST, config, **(where or {}))
        refuse_outside(self, {name: options[name] for name in ("lane",) if name in options})

    def turn_to(self, choice: Choice) -> None:
        """Draw the accesses of the selected kernel's first block."""
        config, self.note = choice.config_for(Accesses)
        self.show(choice.workload, config, arch=choice.arch)
        self.data_layout = config.layout

    def show(
        self, workload: ConvWorkload | str, config: Configuration | None = None, whole: bool = True, **where: Any
    ) -> None:
        """Draw the accesses of another warp; errors are shown in the view.

        If not ``whole``, only the chosen kind and layout is drawn now, the others when they are chosen.
        """
        try:
            self.records = {name: accesses(workload, config, name, **where) for name in NAMES}
        except SubbyteError as problem:
            self.error = str(problem)
            return
        with self.hold_sync():
            self.kinds = {kind: name for kind, name in KINDS.items() if self._group(kind, "nhwc")}
            self.pictures = {}
            if whole:
                self._complete()
            self._say(None)

    def _complete(self) -> None:
        """Draw what is not drawn yet: every kind in every layout."""
        chosen = {self._key(kind, layout): (kind, layout) for kind in self.kinds for layout in NAMES}
        drawn = {key: self.pictures.get(key) or self._draw(*which) for key, which in chosen.items()}
        self.pictures = drawn

    def to_html(self, path: str | Path | None = None) -> str:
        """A page with every kind and layout, live without a kernel or a network; also written to ``path``."""
        self.catch_up()
        if self.records:
            self._complete()
        return super().to_html(path)

    def access(self, kind: str, layout: str) -> Access:
        """The access that stands for its kind. Raises InvalidInput for names that do not exist."""
        if layout not in NAMES:
            raise InvalidInput(f"unknown layout {layout!r}: {did_you_mean(layout, NAMES)}")
        if not (group := self._group(kind, layout)):
            raise InvalidInput(f"unknown kind of access {kind!r}: {did_you_mean(kind, self.kinds)}")
        return min(group, key=lambda access: access.addresses.count(None))

    def _group(self, kind: str, layout: str) -> tuple[Access, ...]:
        record = self.records[layout]
        return (record.tile,) if kind == "tile" else record.of(kind)

    def _key(self, kind: str, layout: str) -> str:
        found = {self.access(kind, name).addresses for name in NAMES}
        return kind if len(found) == 1 else f"{kind}|{layout}"

    def _draw(self, kind: str, layout: str, lane: int = -1) -> str:
        others = {name: self.access(kind, name) for name in NAMES}
        own = layout if self._key(kind, layout) != kind else None
        return access_svg(access_map(others[layout]), kind, own, others, len(self._group(kind, layout)), lane)

    @traitlets.observe("data_layout", "kind")
    def _say(self, _change: Any) -> None:
        if not self.records:
            return
        try:
            self.alternative, self.error = in_words(self.access(self.kind, self.data_layout), self.data_layout), ""
            if (key := self._key(self.kind, self.data_layout)) not in self.pictures:
                self.pictures = {**self.pictures, key: self._draw(self.kind, self.data_layout)}
        except SubbyteError as problem:
            self.alternative, self.error = "", str(problem)

    @traitlets.validate("lane")
    def _a_lane(self, proposal: Any) -> int:
        return proposal.value if 0 <= proposal.value < 32 else -1

    def to_svg(self) -> str:
        """The chosen access as a self-contained picture."""
        self.catch_up()
        if self.error or not self.records:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(self._draw(self.kind, self.data_layout, self.lane), HERE / "view.css")
