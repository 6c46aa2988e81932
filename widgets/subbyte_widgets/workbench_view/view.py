"""The workbench: one selection, with the views that choose it on top and the views that follow it below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ipywidgets

from subbyte.errors import SubbyteError
from subbyte.html import Markup, element, join
from subbyte.measure.runner import Runner
from subbyte.records.landscape import Landscape
from subbyte.tune.sources import Sources
from subbyte.tune.study import Study
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Displayed, View
from subbyte_widgets._selection import FIRST, Selection
from subbyte_widgets.kernel_lab import KernelLab
from subbyte_widgets.space_explorer import SpaceExplorer
from subbyte_widgets.tuning_monitor import TuningMonitor
from subbyte_widgets.tuning_monitor.view import Source
from subbyte_widgets.workbench_view.controls import Controls
from subbyte_widgets.workbench_view.following import following_views


class Workbench(Displayed, ipywidgets.VBox):
    """Space explorer, tuning monitor and kernel lab above, the views of the techniques below, with one selection for
    all.

    ``studies``: studies or records to show in the monitor; the Tune button starts another on ``runner``, as
    :func:`subbyte.tune` accepts it (``auto``: a GPU if there is one, else recorded times). ``landscape``: what the
    space explorer shows (default: the shipped one of the workload). ``selection`` is the
    :class:`~subbyte_widgets.Selection`; ``choosing`` and ``following`` hold the views by name. A view in a closed tab
    computes nothing.
    """

    choosing: dict[str, Any]
    following: dict[str, Any]
    _sources: Sources | None = None

    def __init__(
        self,
        workload: ConvWorkload | str = FIRST,
        studies: Source | Sequence[Source] = (),
        *,
        arch: str = "sm_90a",
        landscape: Landscape | str | Path | None = None,
        runner: str | Runner = "auto",
        selection: Selection | None = None,
    ) -> None:
        self.selection = selection or Selection(workload, arch=arch)
        self.runner = runner
        explorer = SpaceExplorer(landscape) if landscape is not None else SpaceExplorer()
        self._given = explorer.landscape
        self.choosing = {"Space": explorer, "Tuning": TuningMonitor(studies)}
        self.choosing["Laboratory"] = KernelLab(self.selection.workload, selection=self.selection)
        for view in (explorer, self.choosing["Tuning"]):
            self.selection.attach(view)
        if explorer.landscape is not None and not explorer.error and not self.selection.configuration:
            self.selection.choose(configuration=explorer.landscape.config(explorer.landscape.best[0]))
        self.following = {name: view(selection=self.selection) for name, view in following_views().items()}
        self.controls = Controls(self.selection, self.tune, lambda: explorer.landscape)
        self.upper, self.lower = _tabs(self.choosing), _tabs(self.following)
        layout = ipywidgets.Layout(max_width="920px")
        super().__init__([self.controls, self.upper, self.lower], layout=layout)

    def tune(self, strategy: str = "auto", trials: int = 100) -> TuningMonitor | None:
        """Start a study of the selected workload in the background and show it in the monitor, once the previous one
        has ended; returns None if it cannot be started, and the line below the controls says why."""
        choice, given = self.selection.now, self._given
        same = given is not None and given.workload.spec == choice.workload.spec
        sources = Sources(self.runner, choice.arch, "paper", None, given if same else None, 0, None)
        try:
            runner, space = sources.of(choice.workload)
            study = Study(space, strategy)
            study.allowed_trials(trials)
        except SubbyteError as problem:
            self.controls.say(str(problem))
            return None
        if not self._end_search():
            sources.close()
            return None
        self._sources, before = sources, self.choosing["Tuning"]
        self.choosing["Tuning"] = monitor = TuningMonitor.start(study, runner, trials)
        monitor.selection = self.selection
        self.upper.children = tuple(self.choosing.values())
        self.upper.selected_index = list(self.choosing).index("Tuning")
        before.close()
        return monitor

    def _end_search(self) -> bool:
        """End the running search, if there is one, and give it time to finish; returns whether none is running any
        more."""
        if (before := self.choosing["Tuning"]).running:
            self.controls.say("The search before this one is ending ...")
            before.stop_requested = True
            if not before.session.ends():
                self.controls.say("The search before this one still measures; press Tune again once it has ended.")
                return False
            self.controls.follow()
        if self._sources is not None:
            self._sources.close()
        return True

    @property
    def shown(self) -> tuple[Any, Any]:
        """The open view above and the open one below."""
        return self.upper.children[self.upper.selected_index or 0], self.lower.children[self.lower.selected_index or 0]

    def static(self) -> dict[str, str]:
        """What is selected, and the pictures of the two open views."""
        pictures = [element("div", Markup(view.static()["text/html"])) for view in self.shown]
        return {"text/html": join(element("p", repr(self)), *pictures)}

    def close(self) -> None:
        """Remove the workbench and its views from every page."""
        if hasattr(self, "controls"):
            self._end_search()
        for name in ("choosing", "following"):
            for view in getattr(self, name, {}).values():  # none when it was refused while it was made
                view.close()
        super().close()

    def __repr__(self) -> str:
        return f"<Workbench: {repr(self.selection).removeprefix('<Selection: ')}"


def workbench(
    workload: ConvWorkload | str = FIRST, studies: Source | Sequence[Source] = (), **options: Any
) -> Workbench:
    """A :class:`Workbench` for a workload, with its arguments."""
    return Workbench(workload, studies, **options)


def _tabs(views: dict[str, View]) -> ipywidgets.Tab:
    tabs = ipywidgets.Tab(children=tuple(views.values()), titles=tuple(views), selected_index=0)
    tabs.add_class("sb-tabs")  # its styles come with the views (sight.js)
    return tabs
