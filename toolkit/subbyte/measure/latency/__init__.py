"""What a tile costs to load and to store by the distance of its rows, and one-bit products one behind the other, by the
clock of a multiprocessor: the measurements that TCBNN (arXiv 2006.16578) begins with."""

from __future__ import annotations

from subbyte.measure.latency.measure import measure_strides
from subbyte.measure.latency.report import StridesShape, text_of

__all__ = ["StridesShape", "measure_strides", "text_of"]
