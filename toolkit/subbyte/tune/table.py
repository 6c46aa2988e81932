"""Small helpers of the reports: HTML tables, pandas frames, operations per second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from subbyte.errors import MissingDependency
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    import pandas


def in_tops(workload: ConvWorkload, microseconds: float) -> float | None:
    """10^12 operations per second of the workload's true sizes; None for a foreign kernel, whose work is unknown."""
    operations: int | None = workload.operations
    return operations / microseconds / 1e6 if operations is not None else None


def frame(rows: Sequence[Mapping[str, Any]], index: str | None = None) -> pandas.DataFrame:
    """Rows as a pandas table. Raises MissingDependency when pandas is not installed."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingDependency("tables need pandas: pip install pandas") from None
    table = pd.DataFrame(list(rows))
    return table.set_index(index) if index is not None and len(table) else table


def html_table(rows: Sequence[Mapping[str, Any]], caption: str = "") -> str:
    """A plain table; a single row is shown upright, one field per line."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    if len(rows) == 1:
        body = "".join(f"<tr><th>{escape(str(k))}</th><td>{escape(_text(v))}</td></tr>" for k, v in rows[0].items())
        return f"<table>{title}<tbody>{body}</tbody></table>"
    names = list(rows[0]) if rows else []
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(row[name]))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={_text(item)}" for key, item in value.items())
    return str(value)
