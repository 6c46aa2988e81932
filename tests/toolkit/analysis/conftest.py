"""A small made-up landscape with failures."""

from __future__ import annotations

import pytest

import subbyte
from subbyte.measure.fake import FakeRunner
from subbyte.tune import Landscape


@pytest.fixture(scope="session")
def recorded() -> Landscape:
    """A small made-up landscape with failures."""
    space = subbyte.space("n8h7w7c64k64r3s3p1")
    results = FakeRunner(noise=0.05, failures={"timeout": 0.1}).run(
        space.workload, [space.config(index) for index in space.valid]
    )
    return Landscape.from_results(space, dict(zip(space.valid, results, strict=True)), {"name": "Some GPU"})
