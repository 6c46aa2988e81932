"""The driver in Python (fake_driver.py) for the tests that ask for it."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # for the tests and for the processes they start

from fake_driver import FakeDriver, Fault, Hang, kernel


@pytest.fixture
def fake():
    """The fake's parts: ``fake.Driver``, ``fake.kernel``, ``fake.Fault``, ``fake.Hang``."""

    class Parts:
        Driver = FakeDriver

    Parts.kernel, Parts.Fault, Parts.Hang = staticmethod(kernel), Fault, Hang
    return Parts
