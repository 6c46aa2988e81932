"""One run of one participant on one landscape, reduced to what comparisons need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.records.landscape import Landscape
from subbyte.records.reading import typed
from subbyte.records.result import Measured
from subbyte.records.shapes import Count, Int, Name, Seconds, Time
from subbyte.tune.record import StudyRecord

Judged = tuple[float | None, float | None]
"""Quality of a model on configurations that it was not fitted to: ``holdout`` and ``found`` of a batch."""
MOST_TRIALS = 10**7
"""Most trials of a run in a file."""
WINDOW = 32
"""Trials per batch for which diversity is computed: the plan size of AutoTVM's search."""


@dataclass(frozen=True)
class LandscapeFacts:
    """What a race needs to know about a landscape. ``size`` counts its configurations, ``failed`` those without a
    time."""

    name: Name
    workload: Name
    spec: Name
    device: Name
    arch: Name
    kind: Name
    space_hash: Name
    size: Count
    failed: Count
    optimum_microseconds: Time

    @classmethod
    def of(cls, landscape: Landscape) -> LandscapeFacts:
        """The facts of a landscape. Raises InvalidInput when nothing in it was measured."""
        failed = sum(not result.ok for result in landscape.results.values())
        return cls(
            landscape.name, landscape.workload.label, landscape.workload.spec,
            str(landscape.device.get("name", "unknown")), landscape.arch, landscape.kind, landscape.space_hash,
            len(landscape), failed, landscape.best[1].microseconds,
        )  # fmt: skip


@dataclass(frozen=True)
class Batch:
    """How diverse one batch of a run is; None where a value is undefined.

    ``hamming``: mean share of knobs in which two of the batch differ; ``nearest``: mean share of knobs that differ from
    the most similar configuration measured before; ``values``: mean share of a knob's values that occur; ``spread``:
    coefficient of variation of the times; ``holdout``: rank correlation between the scores of the model in use at that
    time and the speeds of configurations drawn from the whole landscape; ``found``: the share of the fastest tenth of
    those that is in the tenth with the best scores.
    """

    trials: int
    hamming: float | None
    nearest: float | None
    values: float | None
    spread: float | None
    holdout: float | None = None
    found: float | None = None


@dataclass(frozen=True)
class Fit:
    """How well a model predicted the results between its fit and the next: rank correlation, and the share of the ten
    fastest among the ten best predicted (None if there were no more than ten)."""

    spearman: float | None
    recall: float | None


Share: TypeAlias = int | float | None


class BatchShape(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A batch as stored in a race file: the values of :class:`Batch`."""

    trials: Count
    hamming: Share
    nearest: Share
    values: Share
    spread: Share
    holdout: Share = None
    found: Share = None


class RunShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run as stored in a race file; its best times are [trial, time] wherever they improved."""

    landscape: Name
    participant: Name
    seed: Int
    evaluated: Count
    failed: Count
    trials: Annotated[int, msgspec.Meta(ge=0, le=MOST_TRIALS)]
    improvements: list[tuple[Count, Time]]
    batches: list[BatchShape]
    fits: list[tuple[Share, Share]]
    seconds: Seconds = 0.0


@dataclass(frozen=True)
class Run:
    """The best time after each trial, in microseconds; None before the first success.

    ``evaluated`` counts the distinct configurations tried; a run that ended early keeps its best to the end.
    """

    landscape: str
    participant: str
    seed: int
    best_microseconds: tuple[float | None, ...]
    evaluated: int
    failed: int
    seconds: float = 0.0
    batches: tuple[Batch, ...] = ()
    fits: tuple[Fit, ...] = ()

    @classmethod
    def of(
        cls,
        record: StudyRecord,
        landscape: str,
        participant: str,
        trials: int,
        holdout: Sequence[Judged] = (),
        fits: Sequence[Fit] = (),
        seconds: float = 0.0,
        window: int = WINDOW,
    ) -> Run:
        """The run in a study's record; ``holdout`` (by batch) and ``fits`` give the quality of its model."""
        times = [trial.microseconds for trial in record.trials[:trials]]
        indices = [trial.index for trial in record.trials[:trials]]
        knobs = record.header["space"]["knobs"]
        batches = describe_batches(indices, times, [len(values) for values in knobs.values()], holdout, window)
        seed = int(record.header["seed"])
        best = best_so_far(times, trials)
        return cls(landscape, participant, seed, best, len(times), times.count(None), seconds, batches, tuple(fits))

    @classmethod
    def of_indices(
        cls,
        landscape: Landscape,
        participant: str,
        seed: int,
        indices: Sequence[int],
        trials: int,
        window: int = WINDOW,
    ) -> Run:
        """The run of an external search that visited ``indices``; repeated visits to a configuration count once.

        Raises InvalidInput for an index that is not in the landscape.
        """
        unique = list(dict.fromkeys(indices))[:trials]
        times: list[float | None] = []
        for index in unique:
            if index not in landscape.results:
                raise InvalidInput(f"{participant}, seed {seed}: index {index} is not in landscape {landscape.name}")
            result = landscape.results[index]
            times.append(result.microseconds if isinstance(result, Measured) else None)
        sizes = [len(values) for values in landscape.header["space"]["knobs"].values()]
        batches = describe_batches(unique, times, sizes, (), window)
        best = best_so_far(times, trials)
        return cls(landscape.name, participant, seed, best, len(times), times.count(None), 0.0, batches)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: best times only at the trials where they improved; shares to four digits."""
        data = asdict(self)
        data["trials"] = len(data.pop("best_microseconds"))
        data["improvements"] = improvements(self.best_microseconds)
        data["batches"] = [[_short(getattr(batch, field.name)) for field in fields(Batch)] for batch in self.batches]
        data["fits"] = [[_short(fit.spearman), _short(fit.recall)] for fit in self.fits]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Run:
        """The run whose ``to_dict()`` gave ``data``. Raises BrokenRecord."""
        source = f"run of {data.get('participant')!r:.80}, seed {data.get('seed')!r:.40}"
        shape: RunShape = typed(data, RunShape, source)
        try:
            best = from_improvements(shape.improvements, shape.trials)
        except InvalidInput as error:
            raise BrokenRecord(f"{source}: {error}") from None
        fits = tuple(Fit(*fit) for fit in shape.fits)
        return cls(shape.landscape, shape.participant, shape.seed, best, shape.evaluated, shape.failed, shape.seconds,
                   tuple(Batch(*msgspec.structs.astuple(one)) for one in shape.batches), fits)  # fmt: skip


def best_so_far(times: Sequence[float | None], trials: int) -> tuple[float | None, ...]:
    """The minimum time after each of ``trials`` trials; the last one is repeated if there are fewer times."""
    best: float | None = None
    curve: list[float | None] = []
    for time in times[:trials]:
        if time is not None and (best is None or time < best):
            best = time
        curve.append(best)
    return tuple(curve + [best] * (trials - len(curve)))


def improvements(best: Sequence[float | None]) -> list[list[float]]:
    """[trial, time] wherever the best time improved, trials counted from 1."""
    before: Sequence[float | None] = [None, *best]
    changes = zip(before, best, strict=False)
    return [[place, time] for place, (old, time) in enumerate(changes, start=1) if time is not None and time != old]


def from_improvements(changes: Sequence[Sequence[float]], trials: int) -> tuple[float | None, ...]:
    """The best time after each of ``trials`` trials. Raises InvalidInput for a curve that rises, or ends too late."""
    places = [int(place) for place, _ in changes]
    times = [float(time) for _, time in changes]
    if times != sorted(times, reverse=True) or min(times, default=1.0) <= 0 or places != sorted(set(places)):
        raise InvalidInput("a best-so-far curve never rises")
    if places and not 1 <= places[0] <= places[-1] <= trials:
        raise InvalidInput(f"improvements at trials {places[0]} to {places[-1]}: the run has {trials}")
    ends = [*places[1:], trials + 1][: len(places)]
    held = [time for place, end, time in zip(places, ends, times, strict=True) for _ in range(end - place)]
    return (*[None] * (trials - len(held)), *held)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def describe_batches(
    indices: Sequence[int],
    times: Sequence[float | None],
    sizes: Sequence[int],
    holdout: Sequence[Judged] = (),
    window: int = WINDOW,
) -> tuple[Batch, ...]:
    """Batches of ``window`` trials in order; ``sizes`` are the numbers of values of the knobs, first knob fastest.

    An incomplete last batch counts when it holds at least two configurations.
    """
    digits = _digits(indices, sizes)
    several = [knob for knob, size in enumerate(sizes) if size > 1]
    digits = digits[:, several]
    batches = []
    for number, start in enumerate(range(0, len(indices), window)):
        part = digits[start : start + window]
        if len(part) < 2 or not several:
            break
        timed = [time for time in times[start : start + window] if time is not None]
        shares = [len(np.unique(part[:, k])) / min(sizes[knob], len(part)) for k, knob in enumerate(several)]
        batches.append(
            Batch(
                len(part), _mean_pairwise(part), _nearest(part, digits[:start]), float(np.mean(shares)),
                float(np.std(timed) / np.mean(timed)) if len(timed) > 1 else None,
                *(holdout[number] if number < len(holdout) else (None, None)),
            )
        )  # fmt: skip
    return tuple(batches)


def _digits(indices: Sequence[int], sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """int64[n, knobs] of indices [n]."""
    weights = np.cumprod([1, *sizes[:-1]]).astype(np.int64)
    return np.asarray(indices, dtype=np.int64)[:, None] // weights % np.asarray(sizes, dtype=np.int64)


def _mean_pairwise(part: npt.NDArray[np.int64]) -> float:
    """Mean share of knobs in which two rows differ."""
    n, knobs = part.shape
    equal = sum(float((np.bincount(part[:, knob]) ** 2).sum() - n) for knob in range(knobs))
    return 1.0 - equal / (n * (n - 1) * knobs)


def _nearest(part: npt.NDArray[np.int64], before: npt.NDArray[np.int64]) -> float | None:
    """Mean over the rows of the smallest share of knobs that differ from any row of ``before``."""
    if not len(before):
        return None
    differ = (part[:, None, :] != before[None, :, :]).mean(axis=2)
    return float(differ.min(axis=1).mean())
