"""The controls above the views: workload, architecture, a search to start, and what is known about the selection."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets

from subbyte.device.arch import ARCHS
from subbyte.device.arch import arch as arch_named
from subbyte.errors import SubbyteError
from subbyte.families.registry import family_of
from subbyte.html import element
from subbyte.kernel.choose import best_known
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.tune.strategy import STRATEGIES
from subbyte.workload.networks import LAYERS
from subbyte_widgets._selection import Selection

DEFAULT_STRATEGY = "auto"


class Controls(ipywidgets.VBox):
    """Two rows of ipywidgets bound to a :class:`~subbyte_widgets.Selection`, and a line that describes the selection.

    ``tune(strategy, trials)`` is called by the button; ``known()`` returns the landscape whose times are quoted.
    """

    def __init__(
        self, selection: Selection, tune: Callable[[str, int], object], known: Callable[[], Landscape | None]
    ) -> None:
        self.selection, self._known = selection, known
        wide = {"description_width": "90px"}
        self.workload = ipywidgets.Combobox(
            value=selection.workload, options=[f"{name}@8" for name in LAYERS], description="workload",
            continuous_update=False, style=wide, layout=ipywidgets.Layout(width="330px"),
        )  # fmt: skip
        self.arch = ipywidgets.Dropdown(
            options=list(ARCHS), value=selection.arch, description="architecture", style=wide,
            layout=ipywidgets.Layout(width="200px"),
        )  # fmt: skip
        self.best = ipywidgets.Button(description="Best known", icon="trophy", tooltip="Go to the best configuration")
        self.strategy = ipywidgets.Dropdown(
            options=sorted(STRATEGIES), value=DEFAULT_STRATEGY, description="strategy", style=wide,
            layout=ipywidgets.Layout(width="250px"),
        )  # fmt: skip
        self.trials = ipywidgets.BoundedIntText(
            value=100, min=1, max=100_000, description="trials", layout=ipywidgets.Layout(width="160px")
        )
        self.tune = ipywidgets.Button(
            description="Tune",
            button_style="primary",
            icon="play",
            tooltip="Search, and watch it in the tuning monitor",
        )
        self.status = ipywidgets.HTML()
        self.workload.observe(lambda change: self._turn_to(change.new), "value")
        self.arch.observe(lambda change: self._choose(arch=change.new), "value")
        self.best.on_click(lambda _button: self._choose(configuration=""))
        self.tune.on_click(lambda _button: tune(self.strategy.value, self.trials.value))
        selection.observe(self.follow, ["workload", "arch", "configuration", "error"])
        row = ipywidgets.Layout(flex_flow="row wrap")
        super().__init__([
            ipywidgets.HBox([self.workload, self.arch, self.best], layout=row),
            ipywidgets.HBox([self.strategy, self.trials, self.tune], layout=row), self.status,
        ])  # fmt: skip
        self.follow()

    def say(self, words: str) -> None:
        """Show one sentence instead of what is known."""
        self.status.value = element("div", words, style="line-height:1.4;padding:2px 4px")

    def _turn_to(self, workload: str) -> None:
        # a configuration belongs to its workload: another one starts at its own best
        if workload != self.selection.workload:
            self._choose(workload=workload, configuration="")

    def _choose(self, **parts: str) -> None:
        try:
            self.selection.choose(**parts)
        except SubbyteError as problem:
            self.say(str(problem))

    def follow(self, _change: object = None) -> None:
        """Show what is selected, and what is known about it."""
        self.workload.value, self.arch.value = self.selection.workload, self.selection.arch
        self.say(self.selection.error or in_words(self.selection, self._known()))


def in_words(selection: Selection, landscape: Landscape | None) -> str:
    """What is known about the selection in one sentence: its key, and its recorded time or why it is rejected."""
    choice = selection.now
    try:
        config = choice.config
        family = family_of(config)
        reason = family.check(family.plan(choice.workload, config, arch_named(choice.arch)))
    except SubbyteError as problem:
        return str(problem)
    named = config.key if choice.configuration else f"best known configuration {config.key}"
    if reason:
        return f"{named} cannot be built: {reason}"
    same = landscape is not None and landscape.workload.spec == choice.workload.spec and landscape.arch == choice.arch
    result = landscape.results.get(landscape.by_config.get(config, -1)) if landscape and same else None
    if not isinstance(result, Measured):
        how = "" if choice.configuration else best_known(choice.workload, choice.arch)[1]
        if "measured configuration" in how:  # with its time, from another record than this landscape
            return f"{named}: {how}."
        return f"{named}: no recorded time here; the laboratory builds and checks it."
    share = result.microseconds / landscape.best[1].microseconds if landscape else 1.0
    device = landscape.device.get("name", "") if landscape else ""
    return f"{named}: {result.microseconds:.2f} us on {device}, {share:.2f} times the best of its landscape."
