"""A Gaussian process over knob coordinates: smooth, aware of what it has not seen, and good with few results.

The covariance has two parts: the effect of single knobs regardless of the others (learned from few results), and a
Matern kernel (5/2) over all of them with one length scale for each group of coordinates. Lengths, noise and the share
of the single-knob part are fitted by a few steps of resilient propagation on the penalized likelihood (Rasmussen and
Williams 2006, section 5.4; Igel and Huesken 2000); each fit starts from the previous one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc
from typing import Any

import numpy as np
import numpy.typing as npt

from subbyte.errors import InvalidInput
from subbyte.tune.search.features import halvings, knob_coordinates
from subbyte.tune.search.grid import Digits

Rows = npt.NDArray[np.float64]

LIMIT = 256
"""The most results learned from; of more, the best half as many, and others spread evenly over the rest."""
SETTLED = 200
"""Up to this many results, lengths and noise are fitted every time; each fit inverts a matrix of that size."""
SMOOTH, EVEN, JUMPY = 1.4, 1.5, 4.0
"""Prior lengths in units of a knob's range: for the order of its values, the powers of two in its
values, and the individual values."""
SINGLE = 0.2
"""Prior share of the variance due to single knobs."""
_NEAR = 0.5
"""Length within a single knob; half of its similarity comes from having the same value."""
_EVEN_TRAIT = 0.7
"""Weight of the powers of two within a single knob."""
_NOISE = 0.02
_SPREAD = (0.8, 1.0, 1.5)
"""Prior standard deviations of the logarithms of lengths, of the noise and of the odds of the single-knob share."""
_BOUNDS = ((0.08, 20.0), (1e-5, 0.5), (0.007, 20.0))
_STEPS = {True: 25, False: 10}
"""Steps of the first fit, and of a later one."""
_ROOT5 = np.sqrt(5.0)


class Places:
    """Coordinates of configurations: each knob by the order of its values, and again by its individual values.

    The latter lets a process learn that neighbouring values of a knob need not be alike; its prior length is
    large, so that a knob is assumed smooth until results say otherwise. Sizes of which some are divisible by higher
    powers of two than others (16, 48, 64 threads) are also placed by that exponent. Traits follow: columns whose inner
    product is the similarity of two configurations averaged over their knobs, each considered alone.
    """

    def __init__(self, values: Sequence[Sequence[Any]], more: int = 0) -> None:
        self._tables: list[tuple[int, Rows]] = []
        groups: list[int] = []
        lengths: list[float] = []
        ordered = [(knob, knob_coordinates(choices), SMOOTH) for knob, choices in enumerate(values)]
        as_such = [(knob, np.eye(len(values[knob])) / np.sqrt(2.0), JUMPY)
                   for knob, table, _ in ordered if table.shape[1] == 1 and len(table) > 2]  # fmt: skip
        even = {knob: table for knob, choices in enumerate(values) if (table := halvings(choices)).shape[1]}
        for knob, table, length in (*ordered, *as_such, *((knob, table, EVEN) for knob, table in even.items())):
            if table.shape[1]:
                self._tables.append((knob, table))
                groups += [len(lengths)] * table.shape[1]
                lengths.append(length)
        groups += range(len(lengths), len(lengths) + more)
        self.groups = np.array(groups, dtype=np.int64)
        """Group of each column; ``more`` further columns, each its own group, come last."""
        self.lengths = np.array(lengths + [SMOOTH] * more)
        """Prior length of each group."""
        several = [(knob, np.concatenate([table, *([_EVEN_TRAIT * even[knob]] if knob in even else [])], axis=1))
                   for knob, table, _ in ordered if len(table) > 1]  # fmt: skip
        self._traits = [(knob, _likeness(table) / np.sqrt(len(several))) for knob, table in several]

    def __call__(self, digits: Digits, more: Rows | None = None) -> Rows:
        """float64[n, columns + traits] for digits [n, knobs] and the further columns [n, more]."""
        parts = [table[digits[:, knob]] for knob, table in self._tables]
        parts += [] if more is None else [more]
        return np.concatenate([*parts, *(table[digits[:, knob]] for knob, table in self._traits)], axis=1)


def _likeness(table: Rows) -> Rows:
    """Rows [values, values] whose inner products are the similarities of a knob's values at ``table`` [values, d]."""
    same = np.eye(len(table))
    near, _ = _matern(((table[:, None] - table[None, :]) ** 2).sum(axis=2) / _NEAR**2)
    return np.asarray(np.linalg.cholesky(0.5 * same + 0.5 * near), dtype=np.float64)


class GaussianProcess:
    """Learns from rows [n, columns + traits], as made by :class:`Places`.

    ``groups`` int[columns] assigns each coordinate to a group, ``lengths`` holds each group's prior length. Rows
    without traits leave out the single-knob part.
    """

    def __init__(self, groups: npt.NDArray[np.int64], lengths: Rows) -> None:
        self._groups = groups
        self._expected = np.log(np.concatenate([lengths, [_NOISE, SINGLE / (1.0 - SINGLE)]]))
        self._theta = self._expected.copy()
        """Logarithms of the lengths, of the noise, and of the odds of the single-knob share."""
        self._strays = np.array([_SPREAD[0]] * len(lengths) + list(_SPREAD[1:]))
        spans = [_BOUNDS[0]] * len(lengths) + list(_BOUNDS[1:])
        self._low, self._high = np.log(np.array(spans)).T
        self._fitted = False
        self._learned = 0

    def fit(self, places: Rows, targets: Rows) -> None:
        """Learn targets [n, t] at ``places``; lengths, noise and share are fitted to the first target.

        Beyond ``SETTLED`` places they are refitted only after the number of results has grown by a tenth.
        """
        told = len(places)
        learn = told <= SETTLED or told > 1.1 * self._learned
        if len(places) > LIMIT:
            order = np.argsort(targets[:, 0], kind="stable")
            rest = order[LIMIT // 2 :]
            spread = rest[np.linspace(0, len(rest) - 1, LIMIT - LIMIT // 2).astype(np.int64)]
            chosen = np.concatenate([order[: LIMIT // 2], spread])
            places, targets = places[chosen], targets[chosen]
        self._places, self._traits = self._split(places)
        self._alike = self._traits @ self._traits.T
        self._shift, self._scale = targets.mean(axis=0), np.maximum(targets.std(axis=0), 1e-9)
        wanted = (targets - self._shift) / self._scale
        gaps = self._gaps()
        if learn:
            self._learn(gaps, wanted[:, 0], _STEPS[not self._fitted])
            self._learned = told
        kernel = self._mixed(self._near(gaps)[0], self._alike)
        self._root = np.linalg.inv(np.linalg.cholesky(kernel + self._noise * np.eye(len(kernel))))
        self._weights = self._root.T @ (self._root @ wanted)
        self._fitted = True

    def predict(self, places: Rows) -> tuple[Rows, Rows]:
        """Means [m, t] of the targets and the deviation [m] of the first. Raises InvalidInput before the first fit."""
        mean, explained, _, prior = self._posterior(places)
        variance = np.maximum(prior - (explained**2).sum(axis=1), 0.0)
        return mean, np.sqrt(variance) * self._scale[0]

    def pick(self, places: Rows, count: int, best: float, waiting: Rows | None = None) -> list[int]:
        """At most ``count`` rows of ``places`` that promise the most below ``best``, each taking those before it into
        account.

        The criterion is the expected improvement of the first target, times the second if there is one: the probability
        of success. Picking a row reduces the uncertainty of the others by what its result would tell (batches as in
        Desautels et al. 2014), and so do the ``waiting`` rows [w, columns + traits]: picked earlier, result not known
        yet.
        """
        own = len(places)
        if waiting is not None and len(waiting):
            places = np.concatenate([places, waiting])
        mean, explained, scaled, prior = self._posterior(places)
        _, traits = self._split(places)
        chance = np.clip(mean[:, 1], 0.03, 1.0) if mean.shape[1] > 1 else np.ones(len(mean))
        variance = np.maximum(prior - (explained**2).sum(axis=1), 1e-12)
        open_ones = np.arange(len(places)) < own
        ahead = list(range(own, len(places)))
        picked: list[int] = []
        while ahead or len(picked) < min(count, own):
            if ahead:
                row = ahead.pop()
            else:
                gain = expected_improvement(mean[:, 0], np.sqrt(variance) * self._scale[0], best) * chance
                row = int(np.argmax(np.where(open_ones, gain, -np.inf)))
                picked.append(row)
                open_ones[row] = False
                if len(picked) == min(count, own):
                    break
            near, _ = _matern(((scaled - scaled[row]) ** 2).sum(axis=1))
            shared = self._mixed(near, traits @ traits[row]) - explained @ explained[row]
            variance = np.maximum(variance - shared**2 / (variance[row] + self._noise), 1e-12)
        return picked

    def _posterior(self, places: Rows) -> tuple[Rows, Rows, Rows, Rows]:
        """Means [m, t], what the results explain [m, n], coordinates in units of length, prior variance."""
        if not self._fitted:
            raise InvalidInput("the Gaussian process has not been fitted yet: tell more results first")
        scale = np.exp(-self._theta[:-2])[self._groups]
        there, traits = self._split(places)
        there, known = there * scale, self._places * scale
        squares = (there**2).sum(axis=1)[:, None] + (known**2).sum(axis=1)[None, :] - 2.0 * there @ known.T
        near, _ = _matern(np.maximum(squares, 0.0))
        kernel = self._mixed(near, traits @ self._traits.T)
        prior = self._mixed(np.ones(len(there)), (traits**2).sum(axis=1))
        return kernel @ self._weights * self._scale + self._shift, kernel @ self._root.T, there, prior

    def _split(self, places: Rows) -> tuple[Rows, Rows]:
        """Coordinates and traits."""
        return places[:, : len(self._groups)], places[:, len(self._groups) :]

    def _mixed(self, near: Rows, alike: Rows) -> Rows:
        mixed: Rows = (1.0 - self._single) * near + self._single * alike
        return mixed

    # ---- lengths, noise and share --------------------------------------------------------------------------------

    @property
    def _noise(self) -> float:
        return float(np.exp(self._theta[-2]))

    @property
    def _single(self) -> float:
        """Share of the variance attributed to single knobs; 0 for rows without traits."""
        return float(1.0 / (1.0 + np.exp(-self._theta[-1]))) if self._traits.shape[1] else 0.0

    def _learn(self, gaps: Rows, wanted: Rows, steps: int) -> None:
        step, before = np.full(len(self._theta), 0.2), np.zeros(len(self._theta))
        for _ in range(steps):
            slope = self.slope(gaps, wanted)
            turned = slope * before
            step = np.clip(np.where(turned > 0, step * 1.3, np.where(turned < 0, step * 0.5, step)), 0.01, 0.6)
            before = np.where(turned < 0, 0.0, slope)
            self._theta = np.clip(self._theta - np.sign(before) * step, self._low, self._high)

    def _gaps(self) -> Rows:
        """Squared differences [groups, n, n] of the coordinates."""
        gaps = np.zeros((len(self._theta) - 2, len(self._places), len(self._places)))
        for column, group in enumerate(self._groups.tolist()):
            own = self._places[:, column]
            gaps[group] += (own[:, None] - own[None, :]) ** 2
        return gaps

    def _near(self, gaps: Rows) -> tuple[Rows, Rows]:
        """Matern covariance of the results, and -2 times its derivative with respect to the squared distances."""
        return _matern((np.exp(-2.0 * self._theta[:-2]) @ gaps.reshape(len(gaps), -1)).reshape(gaps.shape[1:]))

    def loss(self, gaps: Rows, wanted: Rows) -> float:
        """Penalized negative log-likelihood of the standardized targets [n], up to a constant."""
        kernel = self._mixed(self._near(gaps)[0], self._alike)
        root = np.linalg.cholesky(kernel + self._noise * np.eye(len(kernel)))
        fit = np.linalg.solve(root, wanted)
        penalty = ((self._theta - self._expected) / self._strays) ** 2
        return float(0.5 * fit @ fit + np.log(np.diag(root)).sum() + 0.5 * penalty.sum())

    def slope(self, gaps: Rows, wanted: Rows) -> Rows:
        """Gradient of ``loss`` with respect to the logarithms of lengths, noise and the odds of the share."""
        near, bend = self._near(gaps)
        single = self._single
        inverse = np.linalg.inv(self._mixed(near, self._alike) + self._noise * np.eye(len(near)))
        weights = inverse @ wanted
        pull = inverse - np.outer(weights, weights)
        bent = (pull * bend).ravel() * (1.0 - single)
        by_length = 0.5 * (gaps.reshape(len(gaps), -1) @ bent) * np.exp(-2.0 * self._theta[:-2])
        by_noise = 0.5 * float(np.trace(pull)) * self._noise
        by_share = 0.5 * float((pull * (self._alike - near)).sum()) * single * (1.0 - single)
        slope: Rows = np.concatenate([by_length, [by_noise, by_share]])
        return slope + (self._theta - self._expected) / self._strays**2


def expected_improvement(mean: Rows, deviation: Rows, best: float) -> Rows:
    """The mean amount [n] by which a normal variable with ``mean`` [n] and ``deviation`` [n] falls below ``best``."""
    z = (best - mean) / deviation
    below = 0.5 * np.array([erfc(value) for value in (z / -np.sqrt(2.0)).tolist()])  # exact even for tiny probabilities
    improvement: Rows = (best - mean) * below + deviation * np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    return improvement


def _matern(squares: Rows) -> tuple[Rows, Rows]:
    """Covariance at squared distances, and -2 times its derivative with respect to them."""
    distance = _ROOT5 * np.sqrt(squares)
    decay = np.exp(-distance)
    return (1.0 + distance + distance**2 / 3.0) * decay, 5.0 / 3.0 * (1.0 + distance) * decay
