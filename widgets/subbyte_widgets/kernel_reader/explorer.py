"""A kernel reader with controls: flip a technique, or an architecture, and see which instructions change."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets

from subbyte.device.arch import ARCHS
from subbyte.errors import SubbyteError
from subbyte.kernel.default import default_config
from subbyte.kernel.kernel import build
from subbyte.spaces.configuration import Configuration
from subbyte.technique.kernel_reading import KernelReading, kernel_reading
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload
from subbyte_widgets._base import Panel, refuse_unknown
from subbyte_widgets._selection import Choice
from subbyte_widgets.kernel_reader.view import KernelReader

SAID = {True: "on", False: "off"}


class KernelExplorer(Panel):
    """A :class:`KernelReader` that compares a kernel with a variant whose techniques the controls choose.

    ``workload``: a name, a spec or a ConvWorkload; ``config`` defaults to the best known one of the mma family. Kernels
    are built in the background; ``wait()`` blocks until the view matches the controls. With a ``selection``, the kernel
    is the selected one.
    """

    def __init__(
        self,
        workload: ConvWorkload | str = "resnet50.stage2@8",
        config: Configuration | None = None,
        arch: str = "sm_90a",
        **options: Any,
    ) -> None:
        refuse_unknown(KernelReader, options)
        selection = options.pop("selection", None)
        self.workload = parse_workload(workload)
        self.config: Any = config or default_config(self.workload, arch)
        self.arch = ipywidgets.Dropdown(options=list(ARCHS), value=arch, description="architecture")
        self.status = ipywidgets.HTML()
        self._moved, self._asked = True, 0
        self._prepare(self.arch)
        self.switches: dict[str, ipywidgets.Dropdown] = {}
        self.controls = ipywidgets.HBox(layout=ipywidgets.Layout(flex_flow="row wrap", max_width="1140px"))
        self._set_switches()
        self._moved = False
        self.view = KernelReader(**options)
        self._thread: threading.Thread | None = None
        super().__init__([self.controls, self.view], selection)
        self.add_class("sb-choosing")
        if selection is None:
            self._update()

    def turn_to(self, choice: Choice) -> None:
        """Read the selected kernel; the switches are reset to its values."""
        self.workload, self.config = choice.workload, choice.config
        self._moved = True
        try:
            self.arch.value = choice.arch
            self._set_switches()
        finally:
            self._moved = False
        self._update()
        if self._thread is not None:
            self._thread.join()

    def wait(self, timeout: float | None = None) -> KernelReading | None:
        """Block until the view matches the controls."""
        if self._thread is not None:
            self._thread.join(timeout)
            self.save_picture()
        return self.view.record

    def _set_switches(self) -> None:
        """The switches of the configuration at their present values; another kind of kernel may have others."""
        rows = {name: row for name, row in self.config.rows.items() if row.switch}
        if [*rows] != [*self.switches]:
            self.switches = {name: ipywidgets.Dropdown(description=name.replace("_", " ")) for name in rows}
            for control in self.switches.values():
                self._prepare(control)
            self.controls.children = [*self.switches.values(), self.arch, self.status]
        for name, row in rows.items():
            self.switches[name].options = [
                (SAID[one], one) if isinstance(one, bool) else one for one in row.values.listed
            ]
            self.switches[name].value = getattr(self.config, name)

    def _prepare(self, control: ipywidgets.Dropdown) -> None:
        control.style, control.layout = {"description_width": "112px"}, ipywidgets.Layout(width="215px")
        control.observe(self._update, "value")

    def _update(self, _change: Any = None) -> None:
        if self._moved:
            return
        self._asked += 1
        changed = self.config.with_values({name: control.value for name, control in self.switches.items()})
        self.status.value = "&nbsp; Building ..."
        job = (self._asked, changed, self.arch.value, self._thread)
        self._thread = threading.Thread(target=self._work, args=job, name="subbyte-reader", daemon=True)
        self._thread.start()

    def _work(self, number: int, changed: Configuration, arch: str, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()
        if number != self._asked:
            return  # the controls have moved on
        problem, record = "", None
        try:
            first = build(self.workload, self.config, arch)
            record = kernel_reading(first, None if changed == self.config else build(self.workload, changed, arch))
        except SubbyteError as refused:
            problem = str(refused)
        except Exception as error:  # a thread has no cell to raise in: the view says it
            problem = f"{type(error).__name__}: {error}"
        if number != self._asked:
            return
        self.status.value = ""
        if record is not None:
            self.view.show_record(record)
        self.view.error = problem
