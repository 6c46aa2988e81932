"""``optuna``: the samplers of Optuna as a strategy, through the extra ``subbyte[optuna]``.

Optuna cannot be told which combinations are valid, and it may repeat a proposal. Neither costs a trial here: a rejected
proposal is reported to Optuna as pruned (its samplers then rank it below any result, whereas they forget failed trials
and would propose them again), and a repeated one with the result it already has; then another one is asked for.
``rejected`` counts both. Candidates that fail are reported as pruned, too. If many asks in a row bring nothing new, a
random valid configuration is drawn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from subbyte.errors import MissingDependency
from subbyte.records.describe import SpaceLike
from subbyte.records.result import Measured, Result
from subbyte.tune.search.grid import Grid, grid_of
from subbyte.tune.strategy import Option, choice

SAMPLERS = ("tpe", "random", "nsga2")
_TRIES = 100


def load_optuna() -> Any:
    """The optuna module, with its log messages silenced. Raises MissingDependency."""
    try:
        import optuna
    except ImportError:
        raise MissingDependency("the strategy optuna needs its extra: pip install 'subbyte[optuna]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Optuna:
    """An Optuna study over the knobs, with each sampler's documented defaults.

    ``sampler``: ``tpe``, ``random`` or ``nsga2``. ``knobs``: ``categorical`` presents the values to Optuna as unordered
    choices, ``ordered`` as positions in the list of values.
    """

    name: ClassVar[str] = "optuna"
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "sampler": Option(choice(*SAMPLERS), "tpe", "Optuna's sampler: tpe, random or nsga2"),
        "knobs": Option(choice("categorical", "ordered"), "categorical", "what Optuna is told of a knob's values"),
    }

    def __init__(self, space: SpaceLike, seed: int, sampler: str = "tpe", knobs: str = "categorical") -> None:
        self.options: Mapping[str, Any] = {"sampler": sampler, "knobs": knobs}
        self.rejected: dict[str, int] = {"refused": 0, "repeated": 0}
        self._optuna = load_optuna()
        self._space = space
        self._grid: Grid = grid_of(space)
        self._rng = np.random.default_rng([seed, 7])
        self._distributions = {
            name: self._distribution(len(values), knobs) for name, values in space.knobs.items() if len(values) > 1
        }
        makers: dict[str, Callable[..., Any]] = {
            "tpe": self._optuna.samplers.TPESampler,
            "random": self._optuna.samplers.RandomSampler,
            "nsga2": self._optuna.samplers.NSGAIISampler,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the samplers warn that they are experimental
            self._study = self._optuna.create_study(sampler=makers[sampler](seed=seed))
        self._open: dict[int, Any] = {}
        self._results: dict[int, float | None] = {}

    def _distribution(self, size: int, knobs: str) -> Any:
        kinds = self._optuna.distributions
        if knobs == "ordered":
            return kinds.IntDistribution(0, size - 1)
        return kinds.CategoricalDistribution(list(range(size)))

    def ask(self, n: int) -> list[int]:
        """At most ``n`` new indices."""
        found: list[int] = []
        while len(found) < n:
            index = self._propose()
            if index is None:
                break
            found.append(index)
        return found

    def _propose(self) -> int | None:
        for _ in range(_TRIES):
            trial = self._study.ask(self._distributions)
            digits = [trial.params.get(name, 0) for name in self._grid.names]
            index = int(self._grid.indices(np.array(digits)))
            if not bool(self._grid.is_valid([index], self._space)[0]):
                self.rejected["refused"] += 1
                self._report(trial, None)
            elif index in self._open:
                self.rejected["repeated"] += 1
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)  # nothing is known about it yet
            elif index in self._results:
                self.rejected["repeated"] += 1
                self._report(trial, self._results[index])
            else:
                self._open[index] = trial
                return index
        drawn = self._grid.sample(1, self._rng, self._space, [*self._open, *self._results])
        if not len(drawn):
            return None
        index = int(drawn[0])
        self._open[index] = None
        return index

    def tell(self, index: int, result: Result) -> None:
        """Pass on a result; one that Optuna did not ask for is added to its study."""
        value = result.microseconds if isinstance(result, Measured) else None
        trial = self._open.pop(index, None)
        self._results[index] = value
        if trial is not None:
            self._report(trial, value)
            return
        digits = self._grid.digits([index])[0].tolist()
        params = {name: digit for name, digit in zip(self._grid.names, digits, strict=True)
                  if name in self._distributions}  # fmt: skip
        state = self._optuna.trial.TrialState
        self._study.add_trial(
            self._optuna.trial.create_trial(
                params=params, distributions=self._distributions, value=value,
                state=state.COMPLETE if value is not None else state.PRUNED,
            )
        )  # fmt: skip

    def _report(self, trial: Any, value: float | None) -> None:
        if value is None:
            self._study.tell(trial, state=self._optuna.trial.TrialState.PRUNED)
        else:
            self._study.tell(trial, value)
