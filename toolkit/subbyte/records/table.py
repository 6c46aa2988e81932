"""Small helpers of the reports: HTML tables, pandas frames, operations per second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from subbyte.errors import MissingDependency
from subbyte.html import Markup, element, join, table
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    import pandas


def in_tops(workload: ConvWorkload, microseconds: float) -> float | None:
    """10^12 operations per second of the workload's actual sizes; None for a foreign kernel, whose operations are
    unknown."""
    operations: int | None = workload.operations
    return operations / microseconds / 1e6 if operations is not None else None


def frame(rows: Sequence[Mapping[str, Any]], index: str | None = None) -> pandas.DataFrame:
    """Rows as a pandas table. Raises MissingDependency when pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependency("tables need pandas: pip install pandas") from None
    found = pd.DataFrame(list(rows))
    return found.set_index(index) if index is not None and len(found) else found


def html_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> Markup:
    """A plain table; a single row is shown vertically, one field per line."""
    if len(rows) == 1:
        return table(((name, _text(value)) for name, value in rows[0].items()), caption=caption, upright=True)
    names = list(rows[0]) if rows else []
    return table(([_text(row[name]) for name in names] for row in rows), names, caption)


def left_out(skipped: Mapping[str, str]) -> Markup:
    """A line for each workload that was not tuned, with the reason."""
    return join(*(element("p", f"{label}: not tuned, {reason}") for label, reason in skipped.items()))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(item)}" for key, item in value.items())
    return str(value)
