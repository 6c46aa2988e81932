"""PyTorch for the tests of this folder, imported by the first of them that runs; without it they are left out."""

import pytest


@pytest.fixture(scope="session")
def torch():
    """PyTorch."""
    return pytest.importorskip("torch", reason="torch is not installed: make test-torch brings a build for the CPU")
