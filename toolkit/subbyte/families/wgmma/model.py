"""What is expected of a kernel that nobody measured: a model trained on those that were, on an H200.

``model.json`` is written by ``benchmarks/network train``, which says how it was judged. It corrects the estimate: its
trees give the logarithm of a kernel's time over :func:`~subbyte.families.wgmma.cycles.estimated_cycles`, and others the
odds that the compiler's report refuses it. Reading it takes neither xgboost nor a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.families.trees import Trees
from subbyte.families.wgmma import features, translate
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.former import FormerConfig
from subbyte.families.wgmma.likely import Winner
from subbyte.families.wgmma.pipeline.config import PipelineConfig
from subbyte.families.wgmma.single.config import SingleTileConfig
from subbyte.workload import workload

FILE = Path(__file__).with_name("model.json")
CLOCK_MHZ = 1755.0
"""Cycles of the estimate for each microsecond; another value changes the trees alone."""
REFUSED = 0.5
"""A kernel that is refused for certain ranks like one that takes 2^0.5 as long: another has to be built then."""


@dataclass(frozen=True)
class Model:
    """Trees, the winners that a search begins with, and what the trees were worth on layers that were left out."""

    time: Trees
    refused: Trees
    winners: tuple[Winner, ...]
    judged: Mapping[str, float]
    """``kernels``, ``layers``; of layers left out how much longer the first choice takes than the best measured:
    ``mean``, ``worst``."""

    def microseconds(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """What is expected of plans with these features."""
        return 2.0 ** self._logarithms(rows) / CLOCK_MHZ

    def rank(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """By what plans are put in order: the logarithm of the time, and more where the compiler may refuse them."""
        return list(map(float, self._logarithms(rows) + REFUSED * self.odds(rows)))

    def odds(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """How likely the compiler's report refuses plans with these features, 0 to 1."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.refused.predict(rows))))

    def _logarithms(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        return self.time.predict(rows) + np.asarray(rows)[:, features.NAMES.index("cycles")]

    @property
    def worth(self) -> str:
        """How it was judged, for a reader."""
        j = self.judged
        return (
            f"model of {j['kernels']:,.0f} kernels of {j['layers']:.0f} layers: its first choice took {j['mean']:.0%} "
            f"longer than the best measured of layers left out ({j['worst']:.0%} at worst)"
        )


@cache
def shipped() -> Model:
    """The model of this version. Raises what reading a damaged file of the package raises."""
    return read(json.loads(FILE.read_text(encoding="utf-8")))


def read(data: Mapping[str, Any]) -> Model:
    """A model as ``benchmarks/network train`` writes it. Raises ValueError where features are not those of today."""
    if tuple(data["features"]) != features.NAMES:
        raise ValueError("the model's features are not those of this version; train it again")
    winners = tuple(Winner(workload(spec), _config(key), us) for spec, key, us in data["winners"])
    return Model(Trees.of(data["time"]), Trees.of(data["refused"]), winners, data["judged"])


def _config(key: str) -> WgmmaConfig:
    if not translate.former_key(key):
        return (SingleTileConfig if key.startswith(SingleTileConfig.prefix) else PipelineConfig).from_key(key)
    found = translate.from_key(key)
    return translate.nearest(found) if isinstance(found, FormerConfig) else found
