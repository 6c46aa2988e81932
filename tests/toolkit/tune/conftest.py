"""A small space with the interface of a Space: 3*3*3*2*2*2 = 216 configurations, some refused."""

from __future__ import annotations

import hashlib
import sys
from functools import cached_property
from math import prod
from pathlib import Path

import pytest

from subbyte.errors import InvalidInput
from subbyte.families.mma.config import MmaConfig
from subbyte.workload import ConvWorkload

sys.path.append(str(Path(__file__).parent))  # fake_measuring.py, for the tests and for the processes they start
WORKLOAD = ConvWorkload(8, 14, 14, 64, 64, 3, 3, 1, name="toy@8")
KNOBS = {
    "blk_row_warps": (1, 2, 4),
    "blk_col_warps": (1, 2, 4),
    "warp_row_tiles": (1, 2, 4),
    "warp_col_tiles": (2, 4),
    "chunk": (1, 2),
    "reorder_inner": (0, 1),
}


class ToySpace:
    """Refuses configurations of more than eight warps and tiles of one pixel."""

    kind = "paper"
    arch = "sm_90a"

    def __init__(self, workload: ConvWorkload = WORKLOAD, layout: str = "nhwcnc", knobs: int = len(KNOBS)) -> None:
        self.workload = workload
        self.fixed = {"layout": layout}
        self.knobs = dict(list(KNOBS.items())[:knobs])

    def __len__(self) -> int:
        return prod(map(len, self.knobs.values()))

    def config(self, index: int) -> MmaConfig:
        if not 0 <= index < len(self):
            raise InvalidInput(f"index {index}")
        values = {}
        for name, choices in self.knobs.items():
            index, digit = divmod(index, len(choices))
            values[name] = choices[digit]
        return MmaConfig.from_dict({**values, **self.fixed})

    def index(self, config: MmaConfig) -> int:
        place, scale = 0, 1
        for name, choices in self.knobs.items():
            if getattr(config, name) not in choices:
                raise InvalidInput(f"{name}={getattr(config, name)}: not in the space")
            place += scale * choices.index(getattr(config, name))
            scale *= len(choices)
        return place

    def check(self, config: MmaConfig | int) -> str | None:
        config = self.config(config) if isinstance(config, int) else config
        if config.threads > 256:
            return "more than eight warps"
        return "a tile of one pixel" if config.pixels == 1 else None

    @cached_property
    def valid(self) -> tuple[int, ...]:
        return tuple(index for index in range(len(self)) if self.check(index) is None)

    @property
    def hash(self) -> str:
        return hashlib.sha256(f"{self.knobs}{self.fixed}{self.workload.spec}".encode()).hexdigest()


@pytest.fixture
def toy() -> ToySpace:
    return ToySpace()


@pytest.fixture
def make_space() -> type[ToySpace]:
    return ToySpace
