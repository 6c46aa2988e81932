"""The kernel lab: change a knob and have the kernel rebuilt, checked and, on a GPU, timed."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets

from subbyte.errors import SubbyteError
from subbyte.html import element, text
from subbyte.kernel.default import default_config
from subbyte.records.landscape import Landscape
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload
from subbyte_widgets._base import Displayed
from subbyte_widgets._selection import FIRST, Choice, Follower, Selection
from subbyte_widgets.kernel_lab.attempt import Attempt, attempt_one, table
from subbyte_widgets.kernel_lab.controls import dropdown, offered, options, space_around


class KernelLab(Displayed, Follower, ipywidgets.VBox):
    """Knobs of a configuration and a button that builds, runs and checks it in the background.

    ``workload``: a name, a spec or a ConvWorkload; ``device``: ``auto``, ``emulator`` or ``cuda:0``. If a constraint
    rejects a configuration, the reason is shown at once. With a ``landscape``, the controls start at its fastest
    configuration, and its recorded time is shown beside each attempt. With a ``selection``, they show its configuration
    and change it. ``attempts`` holds every outcome; ``wait()`` blocks until the current attempt is done.
    """

    follows_at_once = True

    def __init__(
        self,
        workload: ConvWorkload | str = FIRST,
        *,
        arch: str = "sm_90a",
        device: str = "auto",
        landscape: Landscape | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.workload = parse_workload(workload)
        self.arch, self.device, self.landscape = arch, device, landscape
        self.attempts: tuple[Attempt, ...] = ()
        self._thread: threading.Thread | None = None
        self._busy, self._problem = False, ""
        self._base = landscape.config(landscape.best[0]) if landscape else default_config(self.workload, arch)
        self.knobs: dict[str, ipywidgets.Dropdown] = {}
        self.button = ipywidgets.Button(description="Build and check", button_style="primary", icon="play")
        self.status, self.table = ipywidgets.HTML(), ipywidgets.HTML()
        self.grid = ipywidgets.GridBox(
            layout=ipywidgets.Layout(grid_template_columns="repeat(auto-fill, 260px)", max_width="860px")
        )
        self._set_knobs()
        self.button.on_click(lambda _button: self.start())
        super().__init__([self.grid, ipywidgets.HBox([self.button, self.status]), self.table])
        self._judge()
        self.selection = selection

    def turn_to(self, choice: Choice) -> None:
        """Set the controls to what is selected; say whether it can be built."""
        self._base, self.workload, self.arch = choice.config, choice.workload, choice.arch
        self._set_knobs()
        self._judge()

    @property
    def error(self) -> str:
        """Why the controls do not show what is selected; shown beside the button."""
        return self._problem

    @error.setter
    def error(self, words: str) -> None:
        self._problem = words
        if words:  # what the controls show was selected before: it is not built by mistake
            self.status.value, self.button.disabled = text(words), True

    def _set_knobs(self) -> None:
        """Knobs of the base's own family, at its values."""
        self.space = space_around(self.workload, self.arch, self._base)
        values = offered(self.space, self._base)
        others = [*values] != [*self.knobs]
        if others:
            self.knobs = {name: dropdown(name, self._base.rows[name].meaning) for name in values}
            self.grid.children = tuple(self.knobs.values())
        for name, knob in self.knobs.items():
            knob.options = options(values[name], getattr(self._base, name))
            knob.value = getattr(self._base, name)
            if others:
                knob.observe(self._turned, "value")

    def _turned(self, _change: Any) -> None:
        if not self._turning:
            self.note = ""
            self._judge()
            self.write_selection(configuration=self.config)

    @property
    def config(self) -> Configuration:
        """The configuration the controls show."""
        return self._base.with_values({name: knob.value for name, knob in self.knobs.items()})

    def start(self) -> None:
        """Build, run and check the shown configuration in the background; one at a time."""
        if self._busy:
            return
        self._busy = self.button.disabled = True
        self._thread = threading.Thread(target=self._work, args=(self.config,), name="subbyte-lab", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> Attempt | None:
        """Block until the current attempt has an outcome; returns the latest attempt."""
        if self._thread is not None:
            self._thread.join(timeout)
            self.save_picture()
        return self.attempts[-1] if self.attempts else None

    def _judge(self, _change: Any = None) -> None:
        if self._busy:
            return
        reason = self.space.check(self.config)
        self.button.disabled = reason is not None
        self.status.value = text(f"Refused: {reason}" if reason else f"Ready. {self.note}".strip())

    def _work(self, config: Configuration) -> None:
        try:
            attempt = attempt_one(self.workload, config, self.arch, self.device, self._say)
        except SubbyteError as problem:
            attempt = Attempt(config, False, str(problem))
        except Exception as problem:  # a thread has no cell to raise in: the table says it
            attempt = Attempt(config, False, f"{type(problem).__name__}: {problem}")
        self.attempts = (*self.attempts, attempt)
        self.table.value = self.to_html()
        self._busy = False
        self._judge()

    def _say(self, words: str) -> None:
        self.status.value = text(words)

    def to_html(self) -> str:
        """The attempts so far as a table, the latest one first."""
        return table(self.attempts, self.landscape)

    def __repr__(self) -> str:
        return f"<KernelLab: {self.workload.label}, {len(self.attempts)} attempts>"

    def static(self) -> dict[str, str]:
        """The attempts so far."""
        title = element("p", f"Kernel laboratory for {self.workload.label} (its controls need a running kernel)")
        return {"text/html": title + self.to_html()}
