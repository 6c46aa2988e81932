"""The live curve: the trials of a running study, the best so far, and a Stop button."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import traitlets

from subbyte.measure.runner import Runner
from subbyte.tune.background import StudyHandle
from subbyte.tune.record import StudyRecord, Trial
from subbyte.tune.study import Study
from subbyte_widgets._base import View
from subbyte_widgets._beside import Stoppable
from subbyte_widgets._given import expect
from subbyte_widgets._selection import Choice
from subbyte_widgets.live_curve.picture import EMPTY, curve_svg
from subbyte_widgets.live_curve.words import in_words
from subbyte_widgets.svg import standalone
from subbyte_widgets.tuning_monitor.words import other_layer, trial_of

HERE = Path(__file__).parent
SHORTEST_INTERVAL = 0.08  # seconds between two updates; longer curves are sent less often
TRIALS_PER_SECOND = 2500


class LiveCurve(Stoppable, View):
    """Draws a study while it runs, or a finished record: ``LiveCurve.start(study, runner, trials=64)``.

    The browser writes ``selected`` (the index of the current trial, -1 for none) and ``stop_requested``; everything
    else is sent completely, at most about ten times a second, so that a view opened late or again shows the same.
    """

    follows_at_once = True
    _record: StudyRecord | None = None
    _esm = HERE / "view.js"
    _css = HERE / "view.css"
    _state_in_page = ("title", "status", "curve", "labels", "total", "running", "stop_requested", "selected")

    title = traitlets.Unicode("").tag(sync=True)
    status = traitlets.Unicode("", help="How far the study is, in words").tag(sync=True)
    curve = traitlets.Dict(EMPTY, help="Columns of subbyte.tune.record.BestCurve").tag(sync=True)
    labels: traitlets.List[str] = traitlets.List(help="Short name of each trial's configuration").tag(sync=True)
    total = traitlets.Int(0, help="Trials asked for; 0 when unknown").tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    stop_requested = traitlets.Bool(False, help="Set by the Stop button; ends a study after its batch").tag(sync=True)
    selected = traitlets.Int(-1, help="Place of the visited trial, -1 for none").tag(sync=True)

    def __init__(self, record: StudyRecord | None = None, **options: Any) -> None:
        expect(self, record, (StudyRecord, type(None)), "give study.record; LiveCurve.start(study, runner) runs one")
        super().__init__(**options)
        self.handle: StudyHandle | None = None
        self._lock = threading.Lock()
        self._sent = 0.0
        self._timer: threading.Timer | None = None
        if record is not None:
            self._show_record(record)

    @classmethod
    def start(cls, study: Study, runner: Runner, trials: int | None = None, **options: Any) -> LiveCurve:
        """Start ``study`` in the background (:meth:`Study.start` takes ``options``) and return its curve."""
        view = cls(total=study.allowed_trials(trials) or 0, running=True)
        callbacks = (*options.pop("callbacks", ()), view.on_trial)
        view._show_record(study.record)
        view.handle = study.start(runner, trials, callbacks=callbacks, **options)
        threading.Thread(target=view._await_end, name="subbyte-curve", daemon=True).start()
        return view

    def on_trial(self, study: Study, _trial: Trial, _result: object) -> None:
        """A callback for :meth:`Study.run`: shows the study as it is now, with a short delay at most."""
        with self._lock:
            if self._timer is not None:
                return
            interval = max(SHORTEST_INTERVAL, len(study.trials) / TRIALS_PER_SECOND)
            wait = self._sent + interval - time.monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._later, (study,))
                self._timer.daemon = True
                self._timer.start()
                return
        self._show_record(study.record)

    def wait(self, timeout: float | None = None) -> StudyRecord:
        """Block until the study ended and its last point is in the view; Ctrl-C stops it."""
        if self.handle is None:
            raise RuntimeError("nothing was started: use LiveCurve.start(study, runner)")
        record = self.handle.wait(timeout)
        self.end(record)
        self.save_picture()
        return record

    def _later(self, study: Study) -> None:
        with self._lock:
            self._timer = None
        self._show_record(study.record)

    def _await_end(self) -> None:
        assert self.handle is not None
        try:
            record = self.handle.wait()
        except BaseException as problem:  # of the study's thread: said in the view, raised again by wait()
            self.error = f"The study ended with an error: {problem}"
            record = self.handle.study.record
        self.end(record)

    def end(self, record: StudyRecord) -> None:
        """Show a study that has ended, or whose wait has."""
        progress = self.handle.progress if self.handle is not None else None
        self.running = bool(progress and progress.running)
        self._show_record(record)

    def _show_record(self, record: StudyRecord) -> None:
        curve = record.curve.to_dict()
        with self._lock:
            if len(curve["numbers"]) < len(self.curve["numbers"]):
                return  # an older state, overtaken by another thread
            self._sent = time.monotonic()
            with self.hold_sync():
                self.curve, self._record = curve, record
                self.labels = [trial.config.key for trial in record.trials]
                self.title = f"Tuning {record.workload.label}"
                self.status = in_words(record, self.total, self.running)
                self.alternative = f"{self.title}: {self.status}"

    @traitlets.observe("selected")
    def _visit(self, _change: Any) -> None:
        known = self._record
        if known is not None and 0 <= self.selected < len(known.trials):
            config = known.trials[self.selected].config
            self.write_selection(workload=known.workload, configuration=config, trial=self.selected)

    def turn_to(self, choice: Choice) -> None:
        """Go to the trial that tried the selected configuration."""
        if self._record is not None and self.selection is not None:
            self.selected = trial_of(self._record, choice, self.selection.trial)
            self.note = other_layer(self._record, choice)

    @traitlets.observe("stop_requested")
    def _stop(self, change: Any) -> None:
        if change.new and self.handle is not None:
            self.handle.stop()

    def to_svg(self) -> str:
        """The current curve as a self-contained picture."""
        return standalone(curve_svg(self.curve, self.total, self.title, self.error or self.status), HERE / "view.css")
