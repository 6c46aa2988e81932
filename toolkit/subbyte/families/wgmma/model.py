"""The expected time of a kernel that was never measured: a model trained on measured kernels, on an H200.

``model.json`` is written by ``benchmarks/network train``, which also evaluates it. It corrects the estimate: its trees
give the logarithm of a kernel's time over :func:`~subbyte.families.wgmma.cycles.estimated_cycles`, and other trees the
odds that the compiler's report rejects it. Using it takes neither xgboost nor a GPU.
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
"""Cycles of the estimate per microsecond; another value would only change the trees."""
REFUSED = 0.5
"""A kernel that is certain to be rejected ranks like one that takes 2^0.5 times as long: another must then be built."""


@dataclass(frozen=True)
class Model:
    """Trees, the winners with which a search begins, and the trees' accuracy on held-out layers."""

    time: Trees
    refused: Trees
    winners: tuple[Winner, ...]
    judged: Mapping[str, float]
    """``kernels``, ``layers``; on held-out layers, how much longer the first choice takes than the best measured one:
    ``mean``, ``worst``."""

    def microseconds(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """The expected times of plans with these features."""
        return 2.0 ** self._logarithms(rows) / CLOCK_MHZ

    def rank(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """The sort key of plans: the logarithm of the time, plus a penalty if the compiler may reject them."""
        return list(map(float, self._logarithms(rows) + REFUSED * self.odds(rows)))

    def odds(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """The probability, 0 to 1, that the compiler's report rejects plans with these features."""
        return np.asarray(1.0 / (1.0 + np.exp(-self.refused.predict(rows))))

    def _logarithms(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        return self.time.predict(rows) + np.asarray(rows)[:, features.NAMES.index("cycles")]

    @property
    def worth(self) -> str:
        """The model's accuracy as text."""
        j = self.judged
        return (
            f"model of {j['kernels']:,.0f} kernels of {j['layers']:.0f} layers: its first choice took {j['mean']:.0%} "
            f"longer than the best measured of layers left out ({j['worst']:.0%} at worst)"
        )


@cache
def shipped() -> Model:
    """The model of this version. Raises the reader's error if the package's file is damaged."""
    return read(json.loads(FILE.read_text(encoding="utf-8")))


def read(data: Mapping[str, Any]) -> Model:
    """A model as written by ``benchmarks/network train``. Raises ValueError if its features are not today's."""
    if tuple(data["features"]) != features.NAMES:
        raise ValueError("the model's features are not those of this version; train it again")
    winners = tuple(Winner(workload(spec), _config(key), us) for spec, key, us in data["winners"])
    return Model(Trees.of(data["time"]), Trees.of(data["refused"]), winners, data["judged"])


def _config(key: str) -> WgmmaConfig:
    if not translate.former_key(key):
        return (SingleTileConfig if key.startswith(SingleTileConfig.prefix) else PipelineConfig).from_key(key)
    found = translate.from_key(key)
    return translate.nearest(found) if isinstance(found, FormerConfig) else found
