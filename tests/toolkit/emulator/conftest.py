"""A kernel cache of the test session, so that every kernel is compiled once and nothing is left behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # generated.py, wgmma_cases.py


@pytest.fixture(scope="session", autouse=True)
def _emulator_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("SUBBYTE_CACHE")
    if before is None:
        os.environ["SUBBYTE_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        os.environ.pop("SUBBYTE_CACHE", None)
