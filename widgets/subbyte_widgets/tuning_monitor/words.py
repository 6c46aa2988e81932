"""What the tuning monitor says in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from subbyte.analysis.monitoring import StudyState, study_state
from subbyte.tune.record import StudyRecord
from subbyte.tune.study import Study
from subbyte.workload import ConvWorkload
from subbyte_widgets._selection import Choice

_ENDED = {"trials": "finished", "exhausted": "every configuration seen", "stopped": "stopped"}


def columns(state: StudyState) -> dict[str, Any]:
    """The columns of a study that are drawn, with the words that go with them."""
    drawn = {name: value for name, value in state.to_dict().items() if name != "indices"}
    return {**drawn, "model_words": model_words(state), "selection_words": selection_words(state)}


def status(state: StudyState, total: int, paused: bool, ended: str, running: bool) -> str:
    """How far a study is, its best and its failures."""
    done = f"{len(state.numbers)}{f' of {total}' if total else ''} trials"
    failed = {kind: count for kind, count in state.outcomes.items() if kind != "measured"}
    lost = f", failed: {', '.join(f'{count} {kind}' for kind, count in failed.items())}" if failed else ""
    best = state.best_microseconds[-1] if state.best_microseconds else None
    found = "" if best is None else f", best {best:.2f} us at trial {state.best_number}"
    held = f", {state.throttled} with clocks held back" if state.throttled else ""
    now = "paused" if paused and running and not ended else _ENDED.get(ended, ended)
    return f"{done}{found}{lost}{held}{f' ({now})' if now else ''}"


def model_words(state: StudyState) -> str:
    """What the model's predictions were worth."""
    if not state.judged:
        return "This study has no prediction to compare yet."
    last = state.judged[-1]
    middle = f", median of {len(state.judged)}: {state.typical_correlation:.2f}" if len(state.judged) > 1 else ""
    return f"rank correlation of fit {last.fit}: {last.spearman:.2f}{middle}"


def selection_words(state: StudyState) -> list[str]:
    """What the diversity rule did for the latest plan, in two short lines; nothing where it plays no part."""
    chosen = state.selection
    if not chosen:
        return []
    copies = f"{chosen['copies_kept']} of {chosen['copies']} copies"
    return [
        f"Latest plan: {chosen['kept']} of {chosen['mutants']} mutants kept, {copies}.",
        f"Two mutants differ in {chosen['hamming']:.0%} of the knobs, two kept ones in {chosen['hamming_kept']:.0%}.",
    ]


def workload_of(source: Study | StudyRecord) -> ConvWorkload:
    """What a study tunes."""
    return source.workload if isinstance(source, StudyRecord) else source.space.workload


NOT_SEARCHED = "not searched here yet"


def other_layer(source: Study | StudyRecord, choice: Choice, aside: str = "") -> str:
    """What to say where another workload is selected than the one this study tunes; nothing where it is the same.
    ``aside``: the study is not shown."""
    mine, selected = workload_of(source), choice.workload
    if mine.spec == selected.spec:
        return ""
    if aside:
        return f"The search of {mine.label} is kept: select that layer to see it again."
    return f"Selected is {selected.label}; this search is of {mine.label}."


def places_of(sources: Sequence[Study | StudyRecord], workload: ConvWorkload) -> list[int]:
    """The places of the studies that tune a workload."""
    return [place for place, source in enumerate(sources) if workload_of(source).spec == workload.spec]


def trial_of(source: Study | StudyRecord, choice: Choice, trial: int) -> int:
    """Place of the trial that a selection names: ``trial`` if that tried its configuration, else the first that did,
    else -1. A trial alone is enough for a selection without configuration."""
    trials = source.trials
    if workload_of(source).spec != choice.workload.spec:
        return -1
    if 0 <= trial < len(trials) and choice.configuration in ("", trials[trial].config.key):
        return trial
    if not choice.configuration:
        return -1
    config = choice.config
    return next((place for place, one in enumerate(trials) if one.config == config), -1)


def alternative(states: Sequence[StudyState], shown: int, words: str) -> str:
    """The picture in words."""
    state = states[shown]
    parts = [f"Tuning {state.workload} with {state.strategy}: {words}"]
    for other in (one for place, one in enumerate(states) if place != shown):
        best = other.best_microseconds[-1] if other.best_microseconds else None
        found = "no success yet" if best is None else f"best {best:.2f} us"
        parts.append(f"{other.strategy}: {len(other.numbers)} trials, {found}")
    parts.append("{} of {} knob values tried".format(*state.covered))
    if state.judged:
        parts.append(model_words(state))
    return "; ".join([*parts, *(line.rstrip(".") for line in selection_words(state))])


def aside(view: Any) -> str:
    """The layer that is selected where no search of a monitor tunes it and none runs; else nothing."""
    if view.selection is None or view.running or not view.sources:
        return ""
    selected = view.selection.now.workload
    return "" if places_of(view.sources, selected) else str(selected.label)


def shown_traits(view: Any, instead: str) -> dict[str, Any]:
    """What a monitor shows of its studies now, by trait; nothing of them while another layer is shown ``instead``."""
    states = [study_state(source) for source in view.sources]
    if not states:
        return {"studies": [], "aside": instead}
    source, state = view.sources[view.shown], states[view.shown]
    found: dict[str, Any] = {"aside": instead, "title": f"Tuning {instead or state.workload}"}
    found["status"] = NOT_SEARCHED if instead else status(state, view.total, view.paused, source.ended, view.running)
    found["studies"] = [] if instead else [columns(state) for state in states]
    words = f"{found['title']}: {NOT_SEARCHED}." if instead else alternative(states, view.shown, found["status"])
    note = {} if view.selection is None else {"note": other_layer(source, view.selection.now, instead)}
    return {**found, "alternative": words, **note}
