"""Landscapes in other tools' formats: Kernel Tuner's cache, T4, CSV and pandas, each in both directions."""

from subbyte.records.exchange.files import FORMATS, export_landscape, import_landscape, to_text
from subbyte.records.exchange.kernel_tuner import from_kernel_tuner, restriction, to_kernel_tuner
from subbyte.records.exchange.t4 import from_t4, to_t4
from subbyte.records.exchange.tables import from_frame, from_rows, to_csv

__all__ = [
    "FORMATS",
    "export_landscape",
    "from_frame",
    "from_kernel_tuner",
    "from_rows",
    "from_t4",
    "import_landscape",
    "restriction",
    "to_csv",
    "to_kernel_tuner",
    "to_t4",
    "to_text",
]
