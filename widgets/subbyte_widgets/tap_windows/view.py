"""The windows of the taps: where each tap of a convolution starts in shared memory, and its descriptor decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.technique.listings import EXAMPLES, listing
from subbyte.technique.taps import TapAddresses, tap_addresses
from subbyte.technique.topics import explained
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import refuse_outside, script
from subbyte_widgets._code import code_data, example_data
from subbyte_widgets._given import expect
from subbyte_widgets._selection import FIRST, Choice
from subbyte_widgets._stepper import CODE, PLAYER, Stepper, style
from subbyte_widgets.svg import sentence_svg, standalone
from subbyte_widgets.tap_windows.picture import detail_svg, in_words, sentence, ways, windows_svg

HERE = Path(__file__).parent


class TapWindows(Stepper):
    """Draws :class:`~subbyte.technique.taps.TapAddresses`, tap by tap; play, click a tap or use the arrow keys.

    ``source``: a record, or a workload (a name, a spec or a ConvWorkload) whose estimated configuration is drawn; the
    default is the selected kernel. Boxes are pixels (8 images x 32 channels), dashed ones zeros; the coloured window is
    what one instruction reads. The browser writes ``tap``, an index into the record's taps.
    """

    _esm = script(CODE, *PLAYER, HERE / "view.js")
    _css = style(HERE, code=True)
    _state_in_page = ("data", "tap")

    tap = traitlets.Int(0, help="The tap that is taken apart").tag(sync=True)

    def __init__(self, source: TapAddresses | ConvWorkload | str | None = None, **options: Any) -> None:
        self.record: TapAddresses | None = None
        super().__init__(**options)
        if source is None and self.selection is not None:
            return
        self.show(source if source is not None else FIRST)
        if not self.error:
            refuse_outside(self, {name: options[name] for name in ("tap",) if name in options})

    def turn_to(self, choice: Choice) -> None:
        """Draw the taps of the selected kernel."""
        self.show(explained(TapAddresses, choice.workload, choice.config, choice.arch))

    def show(self, source: TapAddresses | ConvWorkload | str) -> None:
        """Draw other taps; errors are shown in the view."""
        try:
            if isinstance(source, str | ConvWorkload):
                source = tap_addresses(source)
            expect(self, source, TapAddresses, "give a workload, or a record of subbyte.technique.tap_addresses")
        except SubbyteError as problem:
            self.error = str(problem)
            return
        self.record = source
        with self.hold_sync():
            self.data = self._page_data(source)
            self.tap = max(0, min(self.tap, self.steps))
            self.error = ""
            self._say(None)

    def _page_data(self, record: TapAddresses) -> dict[str, Any]:
        taps = range(len(record.taps))
        return {
            "svg": windows_svg(record), "details": [detail_svg(record, index) for index in taps], "ways": ways(record),
            "says": [sentence(record, index) for index in taps], "taps": [f"{tap.r},{tap.s}" for tap in record.taps],
            "width": record.width, "code": _code(record),
        }  # fmt: skip

    @property
    def details(self) -> list[str]:
        """Each tap in detail."""
        return list(self.data.get("details", ()))

    @property
    def steps(self) -> int:
        """Number of steps after the first tap."""
        return len(self.record.taps) - 1 if self.record else 0

    @traitlets.validate("tap")
    def _a_tap(self, proposal: Any) -> int:
        last = proposal.value if self.record is None else self.steps
        return max(0, min(proposal.value, last))

    @traitlets.observe("tap")
    def _say(self, _change: Any) -> None:
        if self.record is not None:
            self.alternative = in_words(self.record, self.tap)

    def to_svg(self) -> str:
        """All taps and the chosen one in detail, as a self-contained picture."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to draw yet")
        return standalone(windows_svg(self.record, self.tap), style(HERE))


def _code(record: TapAddresses) -> dict[str, Any]:
    """Lines of the kernel that is drawn if they are recorded, else of the recorded kernel, which the view says."""
    if (record.workload, record.config) == EXAMPLES["taps"][:2]:
        return code_data(listing("taps"))
    return example_data(listing("taps"), f"{record.workload} {record.config}")
