"""Where dense kernels are faster: the densities at which both took equally long, as measured."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.workload.conv import ConvWorkload

MEASURED = Path(__file__).with_name("measured.json")
"""Break-even density by a product's spec, 0 if dense was faster at every density; written by ``benchmarks/sparse
densities collect``."""


@cache
def measured() -> dict[str, Any]:
    """The GPU and the break-even densities."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def dense_at(workload: ConvWorkload, density: float) -> str | None:
    """Why dense kernels should be used when this fraction of both operands is nonzero; None if finding zeros is faster.
    For a product that was not measured, the highest measured break-even is used."""
    found = measured()
    own = found["products"].get(workload.spec)
    limit = max(found["products"].values()) if own is None else own
    if density < limit:
        return None
    what = "on this product" if own is not None else f"on all products measured ({len(found['products'])})"
    where = f"only below density {limit:.2g}" if limit else "at no density"
    why = f"at density {density:g} finding zeros takes longer than multiplying them"
    return f"{why}: it paid {where} {what}, {found['gpu']}"
