"""Where the next trials of a network pay most.

The trials are handed out in portions. Every layer gets one portion first, the costly ones (operations times count)
before the cheap. After that each portion goes to the layer with the largest expected gain for the whole network,

    count * (0.2 * recent + 0.7 * hope + 0.1 * best / trials)     microseconds per trial

``recent`` is what the layer's last portion gained per trial; ``hope`` is the smaller of best / trials (a search that
has run for long gains little more) and best - reachable, where ``reachable`` is the time at half the throughput of the
network's best layer. This is the gradient of Ansor's task scheduler (Zheng et al. 2020, section 6, alpha = 0.2,
beta = 2) with a small share of best / trials added, so that no layer is ever left alone for good. A layer without any
success goes first for three portions and last after that. The rule sees results only: a resumed run decides as the
first one did.
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
    """A layer during tuning: how often it occurs, the operations a kernel does for it (padding included), and the best
    microseconds after each trial."""

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
        """What it costs the network, before anything is measured."""
        return self.count * self.operations


def expected_gain(layer: LayerState, layers: Sequence[LayerState], portion: int) -> float:
    """Microseconds the network is expected to gain per further trial of ``layer``; infinite before its first success
    (zero after three portions without one)."""
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
    """Trials handed out at a time: ``batch``, less when first portions of all layers would take more than a third of
    the budget, but at least two."""
    return batch if trials is None else max(min(batch, 2), min(batch, trials // (3 * layers)))


def next_layer(layers: Sequence[LayerState], portion: int) -> tuple[int, float | None] | None:
    """Which layer gets the next portion, and its expected gain (None for a layer's first); None when all are done."""
    left = [place for place, layer in enumerate(layers) if not layer.exhausted]
    if not left:
        return None
    unseen = [place for place in left if not layers[place].trials]
    if unseen:
        return max(unseen, key=lambda place: (layers[place].weight, -place)), None
    gains = {place: expected_gain(layers[place], layers, portion) for place in left}
    chosen = max(left, key=lambda place: (gains[place], -layers[place].trials, -place))
    return chosen, gains[chosen]
