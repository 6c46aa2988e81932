"""The tuning monitor: one or several studies while they run: what is tried, why, and with what result."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import traitlets

from subbyte.measure.runner import Runner
from subbyte.tune.record import StudyRecord
from subbyte.tune.study import Study
from subbyte_widgets._base import View, script
from subbyte_widgets._beside import Stoppable
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets.svg import standalone
from subbyte_widgets.tuning_monitor.picture import monitor_svg
from subbyte_widgets.tuning_monitor.session import Session, Updates
from subbyte_widgets.tuning_monitor.words import aside, other_layer, places_of, shown_traits, trial_of, workload_of

HERE = Path(__file__).parent
Source = Study | StudyRecord


class TuningMonitor(Stoppable, View):
    """Draws studies while they run, or finished ones: ``TuningMonitor.start(study, runner, trials=200)``.

    The browser writes ``shown`` (the study whose trials are drawn), ``selected`` (the index of the current trial in it,
    -1 for none), ``paused`` and ``stop_requested``. Every change of ``selected`` sets ``config``, the configuration of
    that trial as a dict (empty for none), and updates the ``selection``, so that the trial opens in all other views. A
    finished search is set aside while another layer is selected; a running one stays visible.
    """

    follows_at_once = True
    _choice: Choice | None = None
    aside = ""
    """The selected layer while other layers' searches are set aside for it."""
    _esm = script(HERE / "panels.js", HERE / "view.js")
    _css = HERE / "view.css"
    _state_in_page = ("title", "status", "studies", "total", "shown", "selected", "running", "paused", "stop_requested")

    title = traitlets.Unicode("").tag(sync=True)
    status = traitlets.Unicode("", help="How far the shown study is, in words").tag(sync=True)
    studies: traitlets.List[dict[str, Any]] = traitlets.List(
        help="Columns of subbyte.analysis.monitoring.StudyState, one dict per study"
    ).tag(sync=True)
    total = traitlets.Int(0, help="Trials asked for; 0 when unknown").tag(sync=True)
    shown = traitlets.Int(0, help="Place of the study whose trials are drawn").tag(sync=True)
    selected = traitlets.Int(-1, help="Place of the visited trial, -1 for none").tag(sync=True)
    config = traitlets.Dict(help="Configuration of the visited trial, empty for none").tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    paused = traitlets.Bool(False, help="Set by the Pause button: no trial begins").tag(sync=True)
    stop_requested = traitlets.Bool(False, help="Set by the Stop button; ends all studies").tag(sync=True)

    def __init__(self, studies: Source | Sequence[Source] = (), **options: Any) -> None:
        expect(self, studies, (Study, StudyRecord), "TuningMonitor.start(studies, runner) runs studies")
        self.sources = [studies] if isinstance(studies, Study | StudyRecord) else list(studies)
        self.session = Session(self._end)
        self._updates = Updates(self.show)
        self._lock = threading.RLock()
        super().__init__(**options)
        self.show()

    @classmethod
    def start(
        cls, studies: Study | Sequence[Study], runner: Runner, trials: int | None = None, **options: Any
    ) -> TuningMonitor:
        """Start the studies side by side, one thread each (:meth:`Study.start` takes ``options``), and watch them. They
        share ``runner``: run several at once only with one that looks results up, since a GPU measures one thing at a
        time."""
        several = [studies] if isinstance(studies, Study) else list(studies)
        asked = max((study.allowed_trials(trials) or 0 for study in several), default=0)
        view = cls(several, total=asked, running=True)
        callbacks = (*options.pop("callbacks", ()), view.on_trial)
        view.session.start(several, runner, trials, callbacks=callbacks, **options)
        return view

    def on_trial(self, study: Study, _trial: object, _result: object) -> None:
        """A callback for :meth:`Study.run`, for any number of studies: shows their state, at most slightly delayed."""
        if all(known is not study for known in self.sources):
            self.sources.append(study)
        self._updates.request(sum(len(state["numbers"]) for state in self.studies))

    def show(self) -> None:
        """Show all studies as they are now."""
        with self._lock, self.hold_sync():
            for name, value in shown_traits(self, aside(self)).items():
                setattr(self, name, value)

    def wait(self, timeout: float | None = None) -> tuple[StudyRecord, ...]:
        """Block until all studies have ended and are shown, or ``timeout`` seconds have passed; Ctrl-C stops them.

        Returns their records so far; raises what a study raised, and InvalidInput if none was started.
        """
        records = self.session.wait(timeout)
        self.save_picture()
        return records

    def to_svg(self) -> str:
        """The current studies as a self-contained picture."""
        self.catch_up()
        drawn = monitor_svg(self.studies, self.shown, self.total, self.title, self.error or self.status, self.selected)
        return standalone(drawn, HERE / "view.css")

    def _end(self, problem: str) -> None:
        self.running, self.error = False, problem
        self.show()

    @traitlets.observe("paused", "stop_requested")
    def _control(self, _change: Any) -> None:
        self.session.control(self.paused, self.stop_requested)
        self.show()

    @traitlets.observe("shown")
    def _turn(self, _change: Any) -> None:
        self.selected = -1
        self.show()

    @traitlets.validate("shown")
    def _inside(self, proposal: Any) -> int:
        return min(max(int(proposal["value"]), 0), max(len(self.sources) - 1, 0))

    @traitlets.observe("selected")
    def _visit(self, _change: Any) -> None:
        trials = self.sources[self.shown].trials if self.sources else ()
        inside = 0 <= self.selected < len(trials)
        self.config = trials[self.selected].config.to_dict() if inside else {}
        shown = {"workload": workload_of(self.sources[self.shown]), "configuration": self.config} if inside else {}
        self.write_selection(**shown, trial=self.selected)

    def turn_to(self, choice: Choice) -> None:
        """Go to the selected trial, or to the one that tried the selected configuration."""
        chosen, self._choice, before = self.selection, choice, self._choice
        if chosen is None or not self.sources:
            return
        places = places_of(self.sources, choice.workload)
        if places and self.shown not in places:
            self.shown = places[0]
        if self.aside != aside(self):
            self.show()
        self.note = other_layer(self.sources[self.shown], choice, self.aside)
        if choice == before and chosen.trial != self.selected:  # only the trial was changed: its configuration follows
            self.selected = min(chosen.trial, len(self.sources[self.shown].trials) - 1)
            chosen.choose(configuration=self.config or None)
        else:
            self.selected = trial_of(self.sources[self.shown], choice, chosen.trial)
        chosen.trial = self.selected
