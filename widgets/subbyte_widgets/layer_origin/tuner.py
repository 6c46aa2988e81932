"""The layer's origin with a search below it: Start, Stop, progress; what was measured is remembered and shown."""

from __future__ import annotations

import os
import threading
from typing import Any

import ipywidgets

from subbyte.errors import InvalidInput, SubbyteError
from subbyte.families.registry import families
from subbyte.html import join, text
from subbyte.kernel.own import gpu_names
from subbyte.measure.runner import Runner
from subbyte.records.result import Result
from subbyte.tune.background_tuning import TuningHandle, start_tuning
from subbyte.tune.record import StudyRecord, Trial
from subbyte.tune.sources import has_gpu
from subbyte.tune.study import Study
from subbyte.workload import ConvWorkload
from subbyte_widgets._base import Panel
from subbyte_widgets._selection import FIRST, Choice, Selection
from subbyte_widgets.layer_origin.view import LayerOrigin
from subbyte_widgets.layer_origin.words import Search, ending
from subbyte_widgets.live_curve import LiveCurve
from subbyte_widgets.tuning_monitor.session import Updates

DEFAULT_TRIALS = 64


class LayerTuner(Panel):
    """A :class:`LayerOrigin` with a search below it: Start tunes the layer in the background, the curve has a Stop
    button.

    On a GPU every trial is built, verified and timed, and the best goes into the user's ``store``, which the picture
    shows when the search has ended. Without a GPU a recorded landscape of the layer is searched, if one is shipped, and
    nothing is stored; if there is none, a sentence says what is missing. ``runner`` is that of :func:`subbyte.tune`,
    ``kind`` a kind of space (default: that of the chosen kernel), ``gpu`` that of :func:`subbyte.compile`. ``wait()``
    blocks until the search has ended.
    """

    _search: tuple[TuningHandle, threading.Thread] | None = None
    _study: Study | None = None

    def __init__(
        self, workload: ConvWorkload | str = FIRST, *, arch: str = "sm_90a", trials: int = DEFAULT_TRIALS,
        runner: str | Runner = "auto", kind: str | None = None, store: str | os.PathLike[str] | None = None,
        gpu: str | None = None, selection: Selection | None = None,
    ) -> None:  # fmt: skip
        self.runner, self.kind = runner, kind
        self.view = LayerOrigin(workload, arch=arch, store=store, gpu=gpu)
        self.curve = LiveCurve()
        self.trials = ipywidgets.BoundedIntText(
            value=trials, min=1, max=100_000, description="trials", layout=ipywidgets.Layout(width="170px")
        )
        self.button = ipywidgets.Button(
            description="Start", button_style="primary", icon="play", tooltip="Search for a faster kernel of this layer"
        )
        self.status = ipywidgets.HTML()
        self._updates = Updates(self._show)
        self.button.on_click(lambda _button: self.start())
        self._row = ipywidgets.HBox([self.trials, self.button, self.status])
        self._row.layout = ipywidgets.Layout(flex_flow="row wrap", margin="0 0 6px 8px")
        super().__init__([self.view, self._row], selection, layout=ipywidgets.Layout(max_width="820px"))

    def turn_to(self, choice: Choice) -> None:
        """Show the selected layer; a running search continues with its own layer."""
        self.view.turn_to(choice)

    @property
    def running(self) -> bool:
        """Whether a search is running."""
        return self._search is not None and self._search[1].is_alive()

    def start(self) -> None:
        """Start a search in the background, one at a time. If it cannot start, the reason is shown beside the
        button."""
        record = self.view.record
        if self.running or record is None:
            return
        if isinstance(self.runner, str) and has_gpu() and not gpu_names(record.arch):
            self._say(f"No search: no GPU of this machine is {record.arch}; show the layer with its own arch=")
            return
        self.button.disabled, self._study = True, None
        self.curve.close()
        self.curve = LiveCurve(total=self.trials.value, running=True)
        self.curve.observe(self._stop, "stop_requested")
        self.children = [self.view, self._row, self.curve]
        self._say("The first kernels are built ...")
        kind = self.kind or next(iter(families()[record.taken.family].kinds))
        handle = start_tuning(
            record.workload, self.runner, trials=self.trials.value, kind=kind, arch=record.arch, device="any",
            store=self.view.store, callbacks=(self._told,),
        )  # fmt: skip
        ends = threading.Thread(
            target=self._await_end, args=(handle, record.workload), name="subbyte-tuner", daemon=True
        )
        self._search = handle, ends
        ends.start()

    def wait(self, timeout: float | None = None) -> StudyRecord:
        """Block until the search has ended and is shown; Ctrl-C stops it. Returns its record.

        Raises what the search raised, InvalidInput if none was started or it is still running after ``timeout``
        seconds.
        """
        if self._search is None:
            raise InvalidInput("no search was started: press Start, or call start()")
        handle, ends = self._search
        report = handle.wait(timeout)
        ends.join(timeout)
        if report is None or ends.is_alive():
            raise InvalidInput(f"the search goes on after {timeout:g} s: stop it, or wait longer")
        self.save_picture()
        return report.records[0]

    def close(self) -> None:
        """Remove it from every page; a search ends after the measurement in flight."""
        if self._search is not None:
            self._search[0].stop()
        super().close()

    def static(self) -> dict[str, str]:
        """The picture, and the curve of a search."""
        found = super().static()
        if self._study is None:
            return found
        return {"text/html": join(found["text/html"], self.curve.static()["text/html"])}

    # ---- inside ------------------------------------------------------------------------------------------------

    def _told(self, study: Study, trial: Trial, result: Result) -> None:
        if self._study is None:
            self._study = study
            self._say("")
        self.curve.on_trial(study, trial, result)
        self._updates.request(len(study.trials))

    def _show(self) -> None:
        """What has been found so far, beside what was known."""
        if self._study is not None:
            self.view.draw(_found(self._study))

    def _await_end(self, handle: TuningHandle, layer: str) -> None:
        try:
            handle.wait()
            said = ""
        except SubbyteError as problem:
            said = f"No search: {problem}" if self._study is None else f"The search ended: {problem}"
        except Exception as problem:  # a thread has no cell to raise in: the line says it, wait() raises it
            said = f"The search ended with an error: {type(problem).__name__}: {problem}"
        if self._study is None:
            self.children = [self.view, self._row]
        else:
            self.curve.end(self._study.record)
            self.view.show(layer)
            self._show()
            assert self.view.record is not None
            said = said or ending(_found(self._study), self.view.record)
        self._say(said)
        self.button.disabled = False

    def _stop(self, change: Any) -> None:
        if change.new and self._search is not None:
            self._search[0].stop()

    def _say(self, words: str) -> None:
        self.status.value = text(words)


def _found(study: Study) -> Search:
    """What a study has found so far."""
    device = study.record.header["device"] or {}
    best = study.best
    time = best.microseconds if best is not None else None
    return Search(time, str(device.get("name", "")), len(study.trials), device.get("runner") == "cuda")
