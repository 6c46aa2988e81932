"""What the C header of a kernel of the windows family needs."""

from __future__ import annotations

from subbyte.families.base import ExportParts
from subbyte.families.windows.plan import WindowsPlan


def header_parts(plan: WindowsPlan) -> ExportParts:
    raise NotImplementedError
