"""How a landscape's times are distributed: how many configurations are nearly as fast as the fastest."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from subbyte.arguments import checked
from subbyte.errors import InvalidInput
from subbyte.records.landscape import Landscape
from subbyte.records.result import Measured
from subbyte.technique.record import InfoRecord, Table

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
BINS = 60


@dataclass(frozen=True)
class Spread(InfoRecord):
    """Times of all measured configurations in microseconds, ascending. ``good`` maps a share of the best speed to the
    number of configurations that reach it."""

    name: str
    workload: str
    device: str
    microseconds: tuple[float, ...]
    best: float
    median: float
    good: dict[float, int]

    @property
    def finding(self) -> str:
        """The share of configurations that reach 90 % of the best speed."""
        share = self.good[0.9] / len(self.microseconds)
        return (
            f"{self.good[0.9]} of {len(self.microseconds):,} configurations ({share:.1%}) reach 90 % of the best speed"
        )

    @property
    def bins(self) -> tuple[tuple[float, float, int], ...]:
        """The times in BINS intervals of equal width: from, to (microseconds), number of configurations."""
        width = (self.microseconds[-1] - self.best) / BINS or 1.0
        counts = [0] * BINS
        for time in self.microseconds:
            counts[min(int((time - self.best) / width), BINS - 1)] += 1
        return tuple((self.best + i * width, self.best + (i + 1) * width, count) for i, count in enumerate(counts))

    def title(self) -> str:
        """What was measured, and where."""
        return f"Times of {self.workload} on {self.device}"

    def table(self) -> Table:
        """One row for each share of the best speed."""
        count = len(self.microseconds)
        rows = [(f"{share:.0%}", self.best / share, good, f"{good / count:.1%}") for share, good in self.good.items()]
        return Table(("of the best speed", "us at most", "configurations", "share"), tuple(rows))


@checked
def spread(landscape: Landscape) -> Spread:
    """How a landscape's times are distributed. Raises InvalidInput when nothing in it was measured."""
    times = sorted(result.microseconds for result in landscape.results.values() if isinstance(result, Measured))
    if not times:
        raise InvalidInput(f"landscape {landscape.name}: no configuration was measured, there are no times")
    good = {share: sum(time <= times[0] / share for time in times) for share in SHARES}
    return Spread(landscape.name, landscape.workload.label, str(landscape.device.get("name", "")), tuple(times),
                  times[0], statistics.median(times), good)  # fmt: skip
