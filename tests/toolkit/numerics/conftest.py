"""Makes operand_types.py known to the tests here, and gives an encoding that the library does not have."""

import sys
from pathlib import Path

import pytest

from subbyte.workload import Encoding, register_encoding, unregister_encoding

sys.path.append(str(Path(__file__).parents[1] / "workload"))


@pytest.fixture
def powers():
    """Signs in the top bit and powers of two below it: gaps, and a zero that two codes mean."""

    def value(code, bits):
        size = code & ((1 << (bits - 1)) - 1)
        magnitude = 0 if size == 0 else 1 << (size - 1)
        return -magnitude if code >> (bits - 1) else magnitude

    register_encoding(Encoding("powers", value, "pow", "sign and power of two", least_bits=2))
    yield "powers"
    unregister_encoding("powers")
