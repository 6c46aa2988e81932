"""Whether a thread's two pixels are inside the border: a few instructions in every turn replace the class lookup."""

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from subbyte.families.bits.emit.block import Block
from subbyte.families.bits.emit.stores import Pixel
from subbyte.tirx.emit import every


def interior(block: Block, pixels: list[Pixel]) -> Any:
    """Whether both pixels belong to the inner class."""
    plan = block.plan
    rows, columns = (_run(classes) for classes in plan.border_rows)
    if not plan.config.run_on and columns[0] == columns[1]:
        return T.bool(False)
    conditions = []
    for pixel in pixels if plan.config.run_on else pixels[:1]:
        conditions.append(_within(block.first_row + pixel.row, *rows))
        last = columns[1] if plan.config.run_on else columns[1] - 1  # both are neighbours in a row
        conditions.append(_within(pixel.column, columns[0], last))
    return every(conditions)


def _run(classes: tuple[int, ...]) -> tuple[int, int]:
    """First and last index of the inner class."""
    inner = (max(classes) + 1) // 2
    return classes.index(inner), len(classes) - 1 - classes[::-1].index(inner)


def _within(index: Any, first: int, last: int) -> Any:
    """first <= index <= last, with one comparison."""
    return T.cast(index - first, "uint32") <= T.uint32(last - first)
