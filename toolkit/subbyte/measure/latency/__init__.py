"""The cost of loading and storing a tile as a function of its row distance, and of back-to-back one-bit products, in
clock cycles of a multiprocessor: the measurements with which TCBNN (arXiv 2006.16578) begins."""

from __future__ import annotations

from subbyte.measure.latency.measure import measure_strides
from subbyte.measure.latency.report import StridesShape, text_of

__all__ = ["StridesShape", "measure_strides", "text_of"]
