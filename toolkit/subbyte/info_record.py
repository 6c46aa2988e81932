"""What every info record offers: plain data, JSON, a table, and renderings for terminals and notebooks.

A record is a small frozen dataclass. It decides nothing about drawing beyond one table and one plain text, so that a
widget, a static picture and ``--json`` on the command line all show the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from subbyte.charts import Charted
from subbyte.former import written
from subbyte.html import Markup, element, join
from subbyte.html import table as html_table
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    import pandas

HTML_ROWS = 40
"""Rows of a table that a notebook shows; below them it says how many more there are."""


class Table(NamedTuple):
    """Column names and rows of cells, in display order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class InfoRecord(Charted):
    """Mixin of the frozen info records. A subclass implements ``title()``, ``table()`` and ``text()``."""

    def title(self) -> str:
        """One line that names what the record shows."""
        raise NotImplementedError

    def table(self) -> Table:
        """The record as one table, from which :meth:`to_frame` and the notebook rendering are made."""
        raise NotImplementedError

    def text(self) -> str:
        """The record as plain text for a terminal."""
        return self.title() + "\n\n" + columns_text(self.table())

    def to_dict(self) -> dict[str, Any]:
        """All fields as dicts, lists, numbers, text, true/false and None: ready for JSON."""
        record: Any = self
        return {name: plain(field) for name, field in written(record).items()}

    def to_json(self, indent: int | None = None) -> str:
        """The fields as JSON text."""
        return json.dumps(self.to_dict(), indent=indent)

    def to_frame(self) -> pandas.DataFrame:
        """The record's table as a pandas DataFrame. Raises MissingDependency when pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            from subbyte.errors import MissingDependency

            raise MissingDependency("to_frame() needs pandas: pip install pandas") from None
        table = self.table()
        return pd.DataFrame(list(table.rows), columns=list(table.columns))

    def _repr_html_(self) -> str:
        return table_html(self.title(), self.table())

    def __str__(self) -> str:
        return self.text()


def plain(value: Any) -> Any:
    """``value`` with records, workloads, tuples and numpy numbers converted to types that ``json.dumps`` accepts."""
    if isinstance(value, ConvWorkload):
        return value.spec
    if isinstance(value, InfoRecord):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(field) for name, field in written(value).items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def columns_text(table: Table, indent: str = "") -> str:
    """A table as aligned plain text: numbers to the right, text to the left."""
    cells = [[_cell(cell) for cell in row] for row in table.rows]
    widths = [max(len(line[i]) for line in [list(table.columns), *cells]) for i in range(len(table.columns))]
    right = [bool(table.rows) and all(_is_number(row[i]) for row in table.rows) for i in range(len(table.columns))]
    lines = []
    for line in [list(table.columns), *cells]:
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        lines.append((indent + "  ".join(padded)).rstrip())
    return "\n".join(lines)


def grid_text(top: Sequence[str], left: Sequence[str], cells: Sequence[Sequence[str]], corner: str = "") -> str:
    """A grid of right-aligned cells of equal width under the column heads ``top``, beside the row heads ``left``."""
    width = max([len(head) for head in top] + [len(cell) for row in cells for cell in row])
    stub = max([len(corner)] + [len(head) for head in left])
    lines = [" ".join([corner.ljust(stub)] + [head.rjust(width) for head in top])]
    for head, row in zip(left, cells, strict=True):
        lines.append(" ".join([head.ljust(stub)] + [cell.rjust(width) for cell in row]))
    return "\n".join(line.rstrip() for line in lines)


def table_html(title: str, table: Table) -> Markup:
    """A table as a small HTML fragment without scripts or external styles, cut after :data:`HTML_ROWS` rows."""
    rows = ((_cell(cell) for cell in row) for row in table.rows[:HTML_ROWS])
    left_out = len(table.rows) - HTML_ROWS
    more = element("p", f"... and {left_out} more rows: see .to_frame()") if left_out > 0 else None
    return join(html_table(rows, table.columns, element("div", element("b", title), style="text-align:left")), more)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, tuple):
        return "(" + ",".join(str(item) for item in value) + ")"
    return str(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
