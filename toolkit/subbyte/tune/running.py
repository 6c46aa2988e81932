"""How a study passes trials to a runner: in batches, or one whenever a device is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from subbyte.measure.runner import Runner, results_of
from subbyte.spaces.configuration import Configuration
from subbyte.tune.record import Trial

if TYPE_CHECKING:
    from subbyte.tune.study import Callback, Stop, Study


def in_batches(
    study: Study, runner: Runner, trials: int | None, batch: int, callbacks: Sequence[Callback], stop: Sequence[Stop]
) -> str:
    """Ask for at most ``batch`` trials, have them evaluated, repeat; returns why it ended.

    A strategy that prefers to see a few results first can say so with ``next_batch``.
    """
    while not _stopped(study, stop):
        left = batch if trials is None else min(batch, trials - len(study.trials))
        if left <= 0:
            return "trials"
        asked = study.ask(min(left, getattr(study.strategy, "next_batch", left)))
        if not asked:
            return "exhausted"
        try:
            with closing(results_of(runner, study.space.workload, [trial.config for trial in asked])) as results:
                for portion in results:
                    for result in portion:
                        done = study.tell(asked[0], result)
                        del asked[0]
                        for callback in callbacks:
                            callback(study, done, result)
                    if _stopped(study, stop):
                        break
        finally:
            study.give_back(asked)
    return "stopped"


def as_completed(
    study: Study, stream: Callable[..., Any], trials: int | None, callbacks: Sequence[Callback], stop: Sequence[Stop]
) -> str:
    """Ask for a trial whenever the runner can take one, and tell each result as soon as it is known; returns why it
    ended."""
    if _stopped(study, stop):
        return "stopped"
    asked: dict[int, Trial] = {}
    ended = ["trials"]

    def more() -> Iterator[Configuration]:
        place = 0
        while trials is None or len(study.trials) + len(asked) < trials:
            found = study.ask(1)
            if not found:
                ended[0] = "exhausted"
                return
            asked[place] = found[0]
            place += 1
            yield found[0].config

    try:
        with closing(stream(study.space.workload, more())) as results:
            for place, result in results:
                done = study.tell(asked[place], result)
                del asked[place]
                for callback in callbacks:
                    callback(study, done, result)
                if _stopped(study, stop):
                    return "stopped"
    finally:
        study.give_back(list(asked.values()))
    return ended[0]


def _stopped(study: Study, stop: Sequence[Stop]) -> bool:
    return any(condition(study) for condition in stop)
