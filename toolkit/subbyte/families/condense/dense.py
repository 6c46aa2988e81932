"""Where dense kernels are faster: the densities at which both took as long, as they were measured."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from subbyte.workload.conv import ConvWorkload

MEASURED = Path(__file__).with_name("measured.json")
"""By spec of a product its break-even, 0 where dense was faster at every density; written by ``benchmarks/sparse
densities collect``."""


@cache
def measured() -> dict[str, Any]:
    """The GPU and the break-evens."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def dense_at(workload: ConvWorkload, density: float) -> str | None:
    """Why dense kernels are to be taken where this share of both operands is not 0; None where finding zeros is faster.
    Of a product that was not measured the highest break-even of those that were is taken."""
    found = measured()
    own = found["products"].get(workload.spec)
    limit = max(found["products"].values()) if own is None else own
    if density < limit:
        return None
    what = "on this product" if own is not None else f"on all products measured ({len(found['products'])})"
    where = f"only below density {limit:.2g}" if limit else "at no density"
    why = f"at density {density:g} finding zeros takes longer than multiplying them"
    return f"{why}: it paid {where} {what}, {found['gpu']}"
