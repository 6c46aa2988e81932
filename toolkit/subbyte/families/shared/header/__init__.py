"""The parts of a C header for kernels on bit planes: packing of planes, weights and thresholds, and unpacking.

The texts are in ``planes.h`` next to this file; each family adds where its kernels store a weight and a table
entry (``places.h`` in its folder).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from subbyte.errors import Unsupported
from subbyte.families.base import ExportParts, Plan
from subbyte.numerics.bit_products import CLASSES, CountForm, border_taps
from subbyte.numerics.float_requant import LINE_SCALE_LOG2
from subbyte.numerics.fusion import SEPARATOR
from subbyte.numerics.planes import NB8R, words_shape
from subbyte.workload.conv import BATCH_GROUP, ConvWorkload, ceil_div
from subbyte.workload.operand import BLOCK_BITS, WORD_BITS, Operand
from subbyte.workload.precision import SUMS

_HERE = Path(__file__).parent


class Table(Protocol):
    """Sizes of the thresholds or addends, as plans on bit planes have them."""

    @property
    def table_words(self) -> int:
        """Words of a block's table."""
        ...

    @property
    def flip_words(self) -> int:
        """Words that hold the flips; they come last."""
        ...

    @property
    def divisor(self) -> int:
        """The part of a sum that varies with the pixel is divided by this."""
        ...

    @property
    def span(self) -> tuple[int, int]:
        """Its smallest and largest value."""
        ...

    @property
    def slice_words(self) -> int:
        """Words of a block's weights, including the table if sums are the output."""
        ...


@dataclass(frozen=True)
class Forms:
    """Memory layouts of a kernel's buffers: input and output, ``slices`` of ``channels`` output channels,
    the sums as counts; ``entry`` is the C expression for a table entry given what is ``needed``."""

    x: str
    y: str
    slices: int
    channels: int
    counts: CountForm
    shift: int
    entry: str


def sections_of(path: Path) -> dict[str, str]:
    """The texts in a file by the names on their ``//@`` lines."""
    parts = re.split(r"^//@ (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: body.strip("\n") + "\n" for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def bit_parts(plan: Plan, table: Table, forms: Forms, places: Iterable[str], words: Mapping[str, str]) -> ExportParts:
    """What the header of a kernel on bit planes needs; ``places`` are the family's texts. Raises Unsupported if no
    header can be written for the kernel."""
    if SEPARATOR in plan.output:
        raise Unsupported(
            f"export of {plan.workload}: {plan.output} has a fused layer; C headers are written only for "
            f"{plan.workload.precision.output.name} and {SUMS}"
        )
    steps = (1 << plan.workload.precision.output.bits) - 1
    w, types, sums, texts = plan.workload, plan.workload.precision, plan.output == SUMS, sections_of(_HERE / "planes.h")
    index = [_index(texts, "x", forms.x, types.activations, w)]
    if not sums:
        index.append(_index(texts, "y", forms.y, types.output, w))
    ones = [] if "ones" in words else [texts["no_ones"]]
    sections = {
        "index": "\n".join(index),
        "operands": texts["operands"],
        "weights": "\n".join([texts["constants"], *places, *ones, texts["weights"]]),
        **{name: f"{texts['levels']}\n{texts[name]}" for name in ("parameters_thresholds", "parameters_line")},
        "output": texts["output_sums" if sums else "output_bits"],
    }
    values = {**_values(plan, table, forms), **words}
    if sums:
        sections["weights"] = sections["weights"].replace("@write_table@", texts["table_of_sums"])
    return ExportParts(
        sections, (forms.slices, table.slice_words), {"write_table": "", **values}, shapes=_shapes(plan, table, forms),
        parameters={"dtype": "int32", "shape": [steps, w.k], "axes": "levels; flips uint8 [K] beside them"},
    )  # fmt: skip


def _index(texts: Mapping[str, str], name: str, layout: str, operand: Operand, w: ConvWorkload) -> str:
    """The text of a tensor's word index."""
    rows, columns, channels = (w.h, w.w, w.c) if name == "x" else (w.p, w.q, w.k)
    sizes = {"rows": rows, "columns": columns, "blocks": ceil_div(channels, BLOCK_BITS), "planes": operand.bits}
    text = texts[f"word_{layout}"].replace("@tensor@", name)
    return re.sub(r"@tensor_(\w+)@", lambda match: str(sizes[match[1]]), text)


def _shapes(plan: Plan, table: Table, forms: Forms) -> dict[str, tuple[int, ...]]:
    w, types = plan.workload, plan.workload.precision
    found = {"A": _tensor(forms.x, types.activations, w, (w.h, w.w, w.c)), "Prm": (forms.slices, table.table_words)}
    if plan.output != SUMS:
        return {**found, "Out": _tensor(forms.y, types.output, w, (w.p, w.q, w.k))}
    if forms.y == "nhwc":
        return {**found, "Out": (w.batch_groups * BATCH_GROUP, w.p, w.q, w.padded_filters)}
    return {**found, "Out": (w.batch_groups, w.p, w.q, w.filter_blocks, BATCH_GROUP, types.output.block)}


def _tensor(layout: str, operand: Operand, w: ConvWorkload, sizes: tuple[int, int, int]) -> tuple[int, ...]:
    rows, columns, channels = sizes
    if layout == NB8R:
        return words_shape(NB8R, operand, (w.n, *sizes))
    block = (ceil_div(channels, BLOCK_BITS), operand.bits)
    if layout == "nhwc":
        return (w.batch_groups * BATCH_GROUP, rows, columns, *block, BLOCK_BITS // WORD_BITS)
    return (w.batch_groups, rows, columns, *block, BATCH_GROUP, BLOCK_BITS // WORD_BITS)


def _values(plan: Plan, table: Table, forms: Forms) -> dict[str, str]:
    """The values that replace the names in the texts."""
    w, types, sums, counts = plan.workload, plan.workload.precision, plan.output == SUMS, forms.counts
    rows, columns = border_taps(w) if counts.form.border == CLASSES else (((True,) * w.r,), ((True,) * w.s,))
    steps = 1 if sums else (1 << types.output.bits) - 1
    numbers = {
        "planes": types.activations.bits, "weight_planes": types.weights.bits, "output_planes": types.output.bits,
        "row_classes": len(rows), "column_classes": len(columns), "classes": len(rows) * len(columns),
        "scale": counts.scale, "per_channel": counts.form.channel, "per_count": counts.form.count,
        "window": counts.window, "shift": forms.shift, "divisor": table.divisor, "least": table.span[0],
        "never": table.span[1] + 1, "thresholds": steps, "slices": forms.slices,
        "slice_channels": forms.channels, "table_channels": forms.slices * forms.channels,
        "table_words": table.table_words, "first_flip": table.table_words - table.flip_words,
        "slice_words": table.slice_words, "table_step": table.slice_words if sums else table.table_words,
        "table_first": table.slice_words - table.table_words if sums else 0,
    }  # fmt: skip
    usage = (
        " *   prepare_parameters(w, levels, flips, words)\n"
        " *                                            words to the device, PARAMETER_BYTES\n"
    )
    sum_word = "((((n / 8 * height + p) * width + q) * {} + k / {}) * 8 + n % 8) * {} + k % {}"
    block = types.output.block
    by_channel = f"((n * height + p) * width + q) * {w.padded_filters} + k"
    return {
        **{name: str(value) if value >= 0 else f"({value})" for name, value in numbers.items()},
        **_type("x", types.activations), **_type("w", types.weights), **_type("y", types.output),
        "w_bits": _listed(_sum_of_bits(code, counts.form.weights.weights) for code in range(1 << types.weights.bits)),
        "row_taps": _nested(rows), "column_taps": _nested(columns),
        "entry": forms.entry,
        "scale_log2": str(LINE_SCALE_LOG2),
        "sum_word": by_channel if forms.y == "nhwc" else sum_word.format(w.filter_blocks, block, block, block),
        "with_table": ",\n * and behind those of each block what is added to its sums" if sums else "",
        "packing": "Bit i of a word is of channel i of 32, in one plane.",
        "channels": str(ceil_div(w.c, BLOCK_BITS) * BLOCK_BITS),
        "filters": str(w.padded_filters if sums else ceil_div(w.k, BLOCK_BITS) * BLOCK_BITS),
        "clip": ", the raw sums" if sums else ", compared with thresholds",
        "usage_parameters": "" if sums else usage,
    }  # fmt: skip


def _type(name: str, operand: Operand) -> dict[str, str]:
    """The texts for a type: its dtype, its values by code, and the codes of all numbers from the smallest value on."""
    code = {value: index for index, value in enumerate(operand.values)}
    codes = (code.get(value, -1) for value in range(operand.least, operand.largest + 1))
    return {
        f"{name}_c": f"{operand.dtype}_t", f"{name}_host": operand.dtype, f"{name}_least": str(operand.least),
        f"{name}_codes": _listed(codes), f"{name}_values_by_code": _listed(operand.values),
    }  # fmt: skip


def _sum_of_bits(code: int, weights: tuple[int, ...]) -> int:
    return sum(weight for plane, weight in enumerate(weights) if code >> plane & 1)


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _nested(taps: Iterable[Iterable[bool]]) -> str:
    return ", ".join(f"{{{_listed(map(int, one))}}}" for one in taps)
