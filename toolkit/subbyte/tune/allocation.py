"""Which layer of a network gains most from the next trials.

Trials are handed out in portions. Every layer gets one portion first, the expensive ones (operations times count)
before the cheap ones. After that each portion goes to the layer with the largest expected gain for the whole network,

    count * (0.2 * recent + 0.7 * hope + 0.1 * best / trials)     microseconds per trial

``recent`` is the layer's gain per trial in its last portion; ``hope`` is the smaller of best / trials (a search that
has run for long gains little more) and best - reachable, where ``reachable`` is the time at half the throughput of the
network's best layer. This is the gradient of Ansor's task scheduler (Zheng et al. 2020, section 6, alpha = 0.2,
beta = 2) with a small share of best / trials added, so that no layer is abandoned for good. A layer without any
success goes first for three portions and last after that. The rule depends on results only: a resumed run decides like
an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

RECENT, HOPE, STEADY = 0.2, 0.7, 0.1
REACHABLE = 2.0
TRIES_WITHOUT_SUCCESS = 3


@dataclass(frozen=True)
class LayerState:
    """A layer during tuning: how often it occurs, the operations its kernel performs (padding included), and the best
    time in microseconds after each trial."""

    count: int
    operations: int
    best: tuple[float | None, ...] = ()
    exhausted: bool = False

    @property
    def trials(self) -> int:
        """Results so far."""
        return len(self.best)

    @property
    def microseconds(self) -> float | None:
        """Best time so far in microseconds; None before the first result."""
        return self.best[-1] if self.best else None

    @property
    def weight(self) -> int:
        """The layer's share in the cost of the network before anything is measured: operations times count."""
        return self.count * self.operations


def expected_gain(layer: LayerState, layers: Sequence[LayerState], portion: int) -> float:
    """Expected gain of the network, in microseconds per further trial of ``layer``; infinite before the layer's first
    success (zero after three portions without one)."""
    best = layer.microseconds
    if best is None:
        return math.inf if layer.trials < TRIES_WITHOUT_SUCCESS * portion else 0.0
    window = min(portion, layer.trials)
    before = layer.best[-1 - window] if layer.trials > window else None
    recent = (before - best) / window if before is not None else best / layer.trials
    rates = [other.operations / other.microseconds for other in layers if other.microseconds is not None]
    reachable = REACHABLE * layer.operations / max(rates)
    hope = min(best / layer.trials, max(0.0, best - reachable))
    return layer.count * (RECENT * recent + HOPE * hope + STEADY * best / layer.trials)


def portion_of(trials: int | None, layers: int, batch: int) -> int:
    """Trials handed out at a time: ``batch``, or fewer (at least two) if first portions for all layers would take more
    than a third of the budget."""
    return batch if trials is None else max(min(batch, 2), min(batch, trials // (3 * layers)))


def next_layer(layers: Sequence[LayerState], portion: int) -> tuple[int, float | None] | None:
    """The layer that gets the next portion, and its expected gain (None for its first portion); None when all are
    done."""
    left = [place for place, layer in enumerate(layers) if not layer.exhausted]
    if not left:
        return None
    unseen = [place for place in left if not layers[place].trials]
    if unseen:
        return max(unseen, key=lambda place: (layers[place].weight, -place)), None
    gains = {place: expected_gain(layers[place], layers, portion) for place in left}
    chosen = max(left, key=lambda place: (gains[place], -layers[place].trials, -place))
    return chosen, gains[chosen]
