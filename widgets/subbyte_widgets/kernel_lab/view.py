"""The kernel laboratory: change a knob, have the kernel rebuilt, checked and, on a GPU, timed."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ipywidgets

from subbyte.errors import SubbyteError
from subbyte.schedule import ConvConfig
from subbyte.space import space as space_of
from subbyte.schedule.config import DUPLICATE_AWARE, LAYOUTS
from subbyte.workload import ConvWorkload
from subbyte.workload import workload as parse_workload

SWITCHES: dict[str, tuple[Any, ...]] = {
    "duplicate_aware": DUPLICATE_AWARE,
    "register_packing": (True, False),
    "layout": tuple(reversed(LAYOUTS)),
}


@dataclass(frozen=True)
class Attempt:
    """What came of one configuration: where it ran, what the check said, the time in microseconds on a GPU."""

    config: ConvConfig
    ok: bool
    outcome: str
    where: str = ""
    microseconds: float | None = None


class KernelLab(ipywidgets.VBox):
    """Knobs of a configuration and a button that builds, runs and checks it in the background.

    ``workload``: a name, a spec or a ConvWorkload; ``device``: ``auto``, ``emulator`` or ``cuda:0``. What a constraint
    refuses is said at once, with its reason. ``attempts`` holds every outcome, ``wait()`` blocks until it is there.
    """

    def __init__(self, workload: ConvWorkload | str, *, arch: str = "sm_90a", device: str = "auto") -> None:
        self.workload = parse_workload(workload)
        self.space = space_of(self.workload, arch)
        self.arch, self.device = arch, device
        self.attempts: tuple[Attempt, ...] = ()
        self._thread: threading.Thread | None = None
        start = self.space.config(self.space.valid[0])
        knobs = {**self.space.knobs, **SWITCHES}
        self.knobs = {name: _dropdown(name, values, getattr(start, name)) for name, values in knobs.items()}
        self.button = ipywidgets.Button(description="Build and check", button_style="primary", icon="play")
        self.status = ipywidgets.HTML()
        self.table = ipywidgets.HTML()
        for knob in self.knobs.values():
            knob.observe(self._judge, "value")
        self.button.on_click(lambda _button: self.start())
        grid = ipywidgets.GridBox(
            tuple(self.knobs.values()),
            layout=ipywidgets.Layout(grid_template_columns="repeat(auto-fill, minmax(250px, 1fr))", max_width="860px"),
        )
        super().__init__([grid, ipywidgets.HBox([self.button, self.status]), self.table])
        self._judge()

    @property
    def config(self) -> ConvConfig:
        """The configuration the controls show."""
        base = self.space.config(self.space.valid[0])
        return base.with_values({name: knob.value for name, knob in self.knobs.items()})

    def start(self) -> None:
        """Build, run and check the shown configuration in the background; one at a time."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=self._work, args=(self.config,), name="subbyte-lab", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> Attempt | None:
        """Block until the attempt under way has an outcome; the latest attempt."""
        if self._thread is not None:
            self._thread.join(timeout)
        return self.attempts[-1] if self.attempts else None

    def _judge(self, _change: Any = None) -> None:
        reason = self.space.why_not(self.config)
        self.button.disabled = reason is not None
        self.status.value = f"Refused: {html.escape(reason)}" if reason else "Ready."

    def _work(self, config: ConvConfig) -> None:
        self.button.disabled = True
        try:
            attempt = attempt_one(self.workload, config, self.arch, self.device, self._say)
        except SubbyteError as problem:
            attempt = Attempt(config, False, str(problem))
        self.attempts = (*self.attempts, attempt)
        self.table.value = self.to_html()
        self._judge()

    def _say(self, words: str) -> None:
        self.status.value = html.escape(words)

    def to_html(self) -> str:
        """The attempts so far as a table."""
        heads = "<tr><th>configuration</th><th>outcome</th><th>ran on</th><th>time</th></tr>"
        rows = [
            f"<tr><td><code>{html.escape(a.config.key)}</code></td>"
            f"<td style='text-align:left'>{'&#10003;' if a.ok else '&#10007;'} {html.escape(a.outcome)}</td>"
            f"<td>{html.escape(a.where)}</td><td>{f'{a.microseconds:.2f} µs' if a.microseconds else ''}</td></tr>"
            for a in self.attempts
        ]
        return f"<table>{heads}{''.join(rows)}</table>" if rows else "<p>Nothing built yet.</p>"

    def __repr__(self) -> str:
        return f"<KernelLab: {self.workload.label}, {len(self.attempts)} attempts>"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        title = f"<p>Kernel laboratory for {html.escape(self.workload.label)}: needs a running kernel.</p>"
        return {**bundle, "text/plain": repr(self), "text/html": title + self.to_html()}


def attempt_one(
    workload: ConvWorkload, config: ConvConfig, arch: str, device: str, say: Callable[[str], None]
) -> Attempt:
    """Build ``config``, run it on random operands, compare every element; time it where there is a GPU."""
    from subbyte.kernel.execute import EMULATOR, expected, random_operands, resolve_device
    from subbyte.kernel.kernel import build
    from subbyte.measure.check import compare

    say("Building ...")
    kernel = build(workload, config, arch)
    place = resolve_device(device, arch)
    where = "CPU, through the emulator" if place == EMULATOR else place
    say(f"Running on {where} ...")
    x, w, requant = random_operands(kernel, seed=0)
    report = compare(kernel.run(x, w, requant, device=place), expected(kernel, x, w, requant))
    if place == EMULATOR or not report.ok:
        return Attempt(config, report.ok, str(report), where)
    say("Timing ...")
    return Attempt(config, True, str(report), where, kernel.time(device=place).microseconds)


def _dropdown(name: str, values: tuple[Any, ...], value: Any) -> ipywidgets.Dropdown:
    options = [(str(v).lower() if isinstance(v, bool) else str(v), v) for v in values]
    return ipywidgets.Dropdown(
        options=options,
        value=value if value in values else values[0],
        description=name,
        style={"description_width": "130px"},
        layout=ipywidgets.Layout(width="250px"),
    )
