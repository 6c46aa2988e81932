"""Arithmetic of estimates."""

from __future__ import annotations


def longest(sharpness: float, *cycles: float) -> float:
    """A smooth maximum: slightly more than the longest if others are close to it. ``sharpness`` is the exponent of the
    norm."""
    most = max(cycles)
    return float(most * sum((one / most) ** sharpness for one in cycles) ** (1 / sharpness))
