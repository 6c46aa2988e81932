"""The kernel reader: TIRx, CUDA, PTX and SASS of a kernel, the instructions that matter, and differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import traitlets

from subbyte.errors import SubbyteError
from subbyte.kernel.kernel import Kernel, build
from subbyte.technique.kernel_reading import CLASSES, LANGUAGES, KernelReading, kernel_reading
from subbyte_widgets._base import View, refuse_outside, script
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets.kernel_reader.picture import LETTERS, in_words, reading_svg
from subbyte_widgets.svg import sentence_svg, standalone

HERE = Path(__file__).parent
LONGEST = 120_000
"""Most characters of one text that are sent; the rest stays in the kernel's own attribute."""


class KernelReader(View):
    """Draws a :class:`~subbyte.technique.kernel_reading.KernelReading` of one kernel, or of two compared.

    ``kernel`` and ``other``: a :class:`~subbyte.kernel.Kernel`, or a workload to build with its default configuration.
    The browser writes ``language`` (tir, cuda, ptx, sass), ``line`` (index of the current row), ``query`` (search text)
    and ``only_changes``.
    """

    _esm = script(HERE / "lines.js", HERE / "view.js")
    _css = HERE / "view.css"
    slow = True
    _state_in_page = ("title", "configs", "texts", "hunks", "facts", "classes", "languages", "language", "line",
                      "query", "only_changes")  # fmt: skip

    title = traitlets.Unicode("").tag(sync=True)
    configs: traitlets.List[str] = traitlets.List(help="Configuration keys of the one or two kernels").tag(sync=True)
    texts: traitlets.Dict[str, str] = traitlets.Dict(
        help="Each text; every line begins with its sign and the letter of its class"
    ).tag(sync=True)
    hunks: traitlets.Dict[str, Any] = traitlets.Dict(help="Ranges of rows that differ").tag(sync=True)
    facts: traitlets.List[Any] = traitlets.List(help="Name, numbers and change, as text").tag(sync=True)
    classes: traitlets.Dict[str, Any] = traitlets.Dict(
        {LETTERS[name]: [name, words] for name, words in CLASSES.items()}
    ).tag(sync=True)
    languages: traitlets.Dict[str, str] = traitlets.Dict(LANGUAGES).tag(sync=True)
    language = traitlets.Enum(tuple(LANGUAGES), "sass").tag(sync=True)
    line = traitlets.Int(0, help="Index of the visited row").tag(sync=True)
    query = traitlets.Unicode("").tag(sync=True)
    only_changes = traitlets.Bool(False, help="Show the rows that differ and their neighbours").tag(sync=True)

    def __init__(self, kernel: Kernel | str | None = None, other: Kernel | str | None = None, **options: Any) -> None:
        self.record: KernelReading | None = None
        self._opened = "line" in options
        super().__init__(**options)
        if kernel is not None:
            self.show(kernel, other)
            if not self.error:
                refuse_outside(self, {name: options[name] for name in ("line",) if name in options})

    def turn_to(self, choice: Choice) -> None:
        """Read the selected kernel."""
        self.show(build(choice.workload, choice.config, choice.arch))

    def show(self, kernel: Kernel | str, other: Kernel | str | None = None) -> None:
        """Read another kernel, or compare two; errors are shown in the view."""
        try:
            for one in (kernel, other):
                expect(self, one, (Kernel, str, type(None)), "give a kernel, such as subbyte.build(layer)")
            first = build(kernel) if isinstance(kernel, str) else kernel
            record = kernel_reading(first, build(other) if isinstance(other, str) else other)
        except SubbyteError as problem:
            self.error = str(problem)
            return
        self.show_record(record)

    def show_record(self, record: KernelReading) -> None:
        """Draw a record."""
        self.record = record
        with self.hold_sync():
            self.title = f"Kernel of {record.workload} on {record.arch}, instruction {record.instruction}"
            self.configs = [record.config] if record.other is None else [record.config, record.other]
            self.texts = {name: _packed(record, name) for name in record.rows}
            self.hunks = {name: [list(hunk) for hunk in hunks] for name, hunks in record.hunks.items()}
            self.facts = [list(row) for row in record.table().rows]
            if not self._opened:
                self.line = _first(record, self.language)
            self.line, self._opened = max(0, min(self.line, len(record.rows[self.language]) - 1)), True
            self.only_changes = self.only_changes and record.other is not None
            self.alternative, self.error = in_words(record), ""

    @traitlets.validate("line")
    def _a_row(self, proposal: Any) -> int:
        rows = self.record.rows[self.language] if self.record else ()
        return max(0, min(proposal.value, len(rows) - 1)) if rows else max(0, proposal.value)

    def to_svg(self) -> str:
        """A map of the instructions in the machine code, with the numbers, as a self-contained picture."""
        self.catch_up()
        if self.error or self.record is None:
            return sentence_svg(self.error or "nothing to read yet")
        return standalone(reading_svg(self.record), HERE / "view.css")


def _first(record: KernelReading, language: str) -> int:
    """The row at which a reader begins: the first that differs, or of one kernel its first that has a class."""
    if hunks := record.hunks.get(language):
        return int(hunks[0][0])
    rows = record.rows[language]
    begins = max((place for place, row in enumerate(rows) if "__global__" in row.text), default=0)
    return next((place for place, row in enumerate(rows) if row.kind and place >= begins), 0)


def _packed(record: KernelReading, language: str) -> str:
    lines, length = [], 0
    for place, row in enumerate(record.rows[language]):
        length += len(row.text) + 3
        if length > LONGEST:
            left = len(record.rows[language]) - place
            lines.append(f"  ... {left} more lines are in the kernel's .{language}")
            break
        lines.append(f"{row.sign}{LETTERS.get(row.kind, ' ')}{row.text}")
    return "\n".join(lines)
