"""The base of the info records, which packages below this one use as well: see :mod:`subbyte.info_record`."""

from subbyte.info_record import InfoRecord, Table, columns_text, grid_text, plain, table_html

__all__ = ["InfoRecord", "Table", "columns_text", "grid_text", "plain", "table_html"]
