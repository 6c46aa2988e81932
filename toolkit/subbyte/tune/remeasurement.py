"""Top-k re-measurement: a study's fastest configurations are measured again, interleaved, and ties are reported as
ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from subbyte.arguments import checked
from subbyte.errors import SubbyteError
from subbyte.former import former_arguments
from subbyte.kernel.own import Memory
from subbyte.measure.noise import Standing, rank_interleaved
from subbyte.measure.runner import Runner
from subbyte.records.table import html_table
from subbyte.spaces.configuration import Configuration
from subbyte.tune.record import StudyRecord, Trial

TOP_K = 5
ROUNDS = 9
"""With nine rounds the second lowest and second highest ratios bound the median with 96 % confidence."""


@dataclass(frozen=True)
class Remeasurement:
    """``standings`` are fastest first; ``trials[standing.place]`` is the corresponding trial.

    ``remeasured`` is false when the times are the recorded samples of a landscape. ``notice`` says why there are none.
    """

    trials: tuple[Trial, ...]
    standings: tuple[Standing, ...]
    remeasured: bool
    notice: str = ""

    @property
    def winner(self) -> Trial | None:
        """The fastest trial of the re-measurement; None when there was none."""
        return self.trials[self.standings[0].place] if self.standings else None

    @property
    def winner_config(self) -> Configuration | None:
        """Its configuration."""
        return self.winner.config if self.winner else None

    @property
    def tied(self) -> tuple[int, ...]:
        """Numbers of the trials that cannot be distinguished from the winner, the winner first; a single number means
        no tie."""
        return tuple(self.trials[standing.place].number for standing in self.standings if standing.tied)

    def remember(self, memory: Memory, device: Mapping[str, Any], trials: int) -> None:
        """Have the user's own store keep the winner, with its times from the re-measurement, instead of the trial that
        was fastest when each was measured alone."""
        if self.winner is not None:
            memory.settle(self.winner.config, self.standings[0].samples, device, trials)

    def rows(self) -> list[dict[str, Any]]:
        """One row per configuration, fastest first."""
        return [
            {
                "trial": self.trials[standing.place].number, "index": self.trials[standing.place].index,
                "microseconds": standing.microseconds, "slower": standing.slower, "tied": standing.tied,
                "first_microseconds": self.trials[standing.place].microseconds,
            }
            for standing in self.standings
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "remeasured": self.remeasured, "tied": list(self.tied), "rows": self.rows(),
            "samples": {str(self.trials[s.place].number): list(s.samples) for s in self.standings},
            "notice": self.notice,
        }  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"Remeasurement(winner {self.tied[0]}, {len(self.tied)} tied)"
            if self.tied
            else f"Remeasurement({self.notice})"
        )

    def _repr_html_(self) -> str:
        return html_table(self.rows(), "Top-k re-measurement")


@former_arguments(finalists="top_k")
@checked
def remeasure(record: StudyRecord, runner: Runner, top_k: int = TOP_K, rounds: int = ROUNDS) -> Remeasurement | None:
    """Measure the ``top_k`` fastest trials of a study again in interleaved ``rounds``; None if there are fewer than
    two, or the runner cannot re-measure. A failure now must not lose the study: the notice reports it."""
    rematch = getattr(runner, "rematch", None)
    timed = [trial for trial in record.trials if trial.microseconds is not None]
    timed = sorted(timed, key=lambda trial: (trial.microseconds, trial.number))[:top_k]
    if rematch is None or len(timed) < 2:
        return None
    fresh = runner.device.get("runner") != "replay"
    try:
        times = rematch(record.workload, [trial.config for trial in timed], rounds)
    except SubbyteError as error:
        return Remeasurement(tuple(timed), (), fresh, f"the fastest could not be measured again: {error}")
    return Remeasurement(tuple(timed), rank_interleaved(times), fresh)


def default_top_k(runner: Runner) -> int:
    """How many trials to re-measure by default: none if times are made up."""
    return 0 if runner.device.get("runner") == "fake" else TOP_K
