"""The operand types: weights 0, 1, 2 and 4, activations and outputs 0 to 3."""

from __future__ import annotations

from subbyte.workload import Encoding
from subbyte.workload.conv import ConvWorkload


def _power(code: int, bits: int) -> int:
    return (1 << code) >> 1


POWERS = Encoding("powers", _power, "pow", "0, or two to the power of the code less 1")
TYPES = "w2a2:powers.unsigned"
BITS, PER_WORD, WORDS, CHANNELS = 2, 16, 4, 64
"""Of every operand; values in a word; words and channels in a block of 128 bits."""


def other_types(workload: ConvWorkload) -> str | None:
    """Why kernels of these types do not take the workload's operands; None when they do."""
    found = workload.precision.text
    return None if found == TYPES else f"operands: toy kernels compute {TYPES}, not {found or 'int4'}"
