"""The base class of the info records, also used by packages below this one: see :mod:`subbyte.info_record`."""

from subbyte.info_record import InfoRecord, Table, columns_text, grid_text, plain, table_html

__all__ = ["InfoRecord", "Table", "columns_text", "grid_text", "plain", "table_html"]
