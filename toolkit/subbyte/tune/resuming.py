"""How a study resumes from a log."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from subbyte.errors import BrokenRecord
from subbyte.records.log import LogWriter, refuse_other
from subbyte.tune.record import Trial

if TYPE_CHECKING:
    from subbyte.tune.study import Study

Ask: TypeAlias = tuple[int, int, int]
"""Number of an ask, number of trials asked for, number of results told before it."""


def take_over(study: Study, log: LogWriter) -> None:
    """Resume from a log: repeating the same asks and tells in the same order restores the strategy's state.

    Raises InvalidInput when the log is of another study, BrokenRecord when it does not fit the space.
    """
    refuse_other(_with_defaults(log.contents.header, study), study._header, str(log.path))
    study._header = log.contents.header
    entries = log.contents.entries
    asks = iter(_with_lost(sorted({entry.ask for entry in entries if entry.ask is not None})))
    ahead = next(asks, None)
    proposed: dict[int, Trial] = {}
    drifted = False
    for line, entry in enumerate(entries, start=2):
        while ahead is not None and ahead[2] <= len(study._told):
            study._asks = ahead[0]
            study._numbers = max([study._numbers, *(trial.number + 1 for trial in study._told)])
            proposed.update((trial.index, trial) for trial in study._ask_strategy(ahead[1], entry.started)[0])
            ahead = next(asks, None)
        if entry.index in study._told_indices or entry.config != study.space.config(entry.index):
            raise BrokenRecord(f"{log.path}, line {line}: index {entry.index} repeats, or has another configuration")
        if proposed.pop(entry.index, None) is None and entry.ask is not None and not drifted:
            drifted = True
            warnings.warn(
                f"record log {log.path}: strategy {study.strategy.name} no longer proposes what it did when the log "
                "was written; its results are kept, the search goes on differently",
                stacklevel=3,
            )
        study._accept(Trial.from_entry(entry), entry.result)
    study._numbers = max([study._numbers, *(trial.number + 1 for trial in study._told)])
    study._again = list(proposed.values())


def _with_defaults(header: Mapping[str, Any], study: Study) -> dict[str, Any]:
    """A log's header, with defaults for the options that its strategy has gained since."""
    old = header["strategy"]
    defaults = {key: option.default for key, option in getattr(study.strategy, "OPTIONS", {}).items()}
    if old.get("name") != study.strategy.name or not isinstance(old.get("options"), Mapping):
        return dict(header)
    return {**header, "strategy": {**old, "options": {**defaults, **old["options"]}}}


def _with_lost(asks: list[Ask]) -> list[Ask]:
    """The asks in order, including those whose trials were in flight when a run on several devices ended: the log has
    no entry for them, but the strategy was asked. Ask numbers are consecutive, and so are the numbers of results told
    before them."""
    found: list[Ask] = []
    for (number, _, told), after in pairwise([(-1, 0, 0), *asks]):
        gap = after[0] - number
        found += [(number + step, after[1], told + (after[2] - told) * step // gap) for step in range(1, gap)]
        found.append(after)
    return found
