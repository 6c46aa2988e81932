"""Change a kernel's CUDA text: it is compiled, run and compared with the reference, and the reader shows the
differences."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets

from subbyte.errors import InvalidInput
from subbyte.html import Markup, element
from subbyte.kernel.edit import EditReport, try_edit
from subbyte.kernel.kernel import Kernel, build
from subbyte_widgets._base import Panel, refuse_unknown
from subbyte_widgets._selection import Choice
from subbyte_widgets.kernel_reader.view import KernelReader

HEIGHT = "clamp(120px, calc((100vh - 430px) * 0.45), 320px)"
"""Of the text: with the reader below it, it fits JupyterLab's window."""


class KernelEditor(Panel):
    """The editable CUDA text of a kernel, a button, and a :class:`KernelReader` of the difference.

    ``kernel``: a :class:`~subbyte.kernel.Kernel`, or a workload to build; a small one responds at once. ``device``:
    ``emulator`` (checks every access) or ``cuda:0``. ``reports`` holds every outcome; ``wait()`` blocks until the
    current one is done.
    """

    def __init__(self, kernel: Kernel | str = "n8h7w7c32k32r3s3p1", device: str = "emulator", **options: Any) -> None:
        refuse_unknown(KernelReader, options)
        selection = options.pop("selection", None)
        self.kernel = build(kernel) if isinstance(kernel, str) else kernel
        self.device = device
        self.reports: tuple[EditReport, ...] = ()
        self._thread: threading.Thread | None = None
        size = ipywidgets.Layout(width="calc(100% - 4px)", height=HEIGHT)
        self.text = ipywidgets.Textarea(self.kernel.cuda, layout=size, placeholder="CUDA text of the kernel")
        for name in ("sb-reader-edit", "sideways"):
            self.text.add_class(name)
        self.button = ipywidgets.Button(description="Build and check", button_style="primary", icon="play")
        self.reset = ipywidgets.Button(description="Undo changes", icon="undo")
        self.outcome = ipywidgets.HTML("Change the text, for example a mask or a shuffle, then build and check.")
        self.button.on_click(lambda _button: self.start())
        self.reset.on_click(lambda _button: setattr(self.text, "value", self.kernel.cuda))
        self.view = KernelReader(self.kernel, **{"language": "cuda", **options})
        buttons = ipywidgets.HBox([self.button, self.reset])
        layout = ipywidgets.Layout(max_width="1140px")
        super().__init__([self.text, buttons, self.outcome, self.view], selection, layout=layout)
        self.add_class("sb-editing")

    def turn_to(self, choice: Choice) -> None:
        """Edit the selected kernel. Raises InvalidInput if changes would be lost."""
        if self.text.value != self.kernel.cuda:
            raise InvalidInput("The text was changed: undo the changes to turn to the selected kernel.")
        self.kernel = build(choice.workload, choice.config, choice.arch)
        self.text.value = self.kernel.cuda
        self.view.show(self.kernel)

    def start(self) -> None:
        """Build, run and check the text in the background; one at a time."""
        if self.button.disabled:
            return
        self.button.disabled = True
        self.outcome.value = "Building and running ..."
        self._thread = threading.Thread(target=self._work, args=(self.text.value,), name="subbyte-edit", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> EditReport | None:
        """Block until the current edit has an outcome; returns the latest report."""
        if self._thread is not None:
            self._thread.join(timeout)
            self.save_picture()
        return self.reports[-1] if self.reports else None

    def _work(self, words: str) -> None:
        try:
            report = try_edit(self.kernel, words, self.device)
        except Exception as error:  # a thread has no cell to raise in: the outcome says it
            report = EditReport(False, f"{type(error).__name__}: {error}", self.device, 0.0)
        self.reports = (*self.reports, report)
        self.outcome.value = outcome_html(report)
        changed = report.kernel is not None and report.kernel.cuda != self.kernel.cuda
        self.view.show(self.kernel, report.kernel if changed else None)
        if changed and self.view.record is not None and self.view.record.hunks["cuda"]:
            self.view.language, self.view.line = "cuda", self.view.record.hunks["cuda"][0][0]
        self.button.disabled = False

    def static(self) -> dict[str, str]:
        """The latest outcome and the reader's picture."""
        pictures = super().static()
        said = (
            outcome_html(self.reports[-1]) if self.reports else element("p", "Kernel editor (needs a running kernel)")
        )
        return {**pictures, "text/html": said + pictures["text/html"]}


def outcome_html(report: EditReport) -> Markup:
    """An outcome as HTML: right or wrong in one line, the first wrong element, what the compiler said."""
    mark, colour = ("\u2713 right", "#0072b2") if report.ok else ("\u2717 not right", "#d55e00")
    first, _, rest = report.outcome.partition("\n")
    where = element("span", f"({report.where}, {report.seconds:.1f} s)", style="opacity:0.7")
    more = element("pre", rest, style="margin:4px 0 0;white-space:pre-wrap;line-height:1.35") if rest else None
    style = f"border-left:4px solid {colour};padding:6px 12px;line-height:1.45"
    return element("div", element("b", mark), f": {first} ", where, more, style=style)
