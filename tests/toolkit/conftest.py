"""Makes the toy family known to the tests that ask for it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))


@pytest.fixture
def toy() -> Iterator[str]:
    """The toy family, registered for one test; the spec of a layer that it computes."""
    import toy_family

    with toy_family.registered():
        yield toy_family.SPEC
