"""Where the C header of a kernel on one-bit warpgroup products places weights and thresholds (``places.h``)."""

from __future__ import annotations

from pathlib import Path

from subbyte.errors import Unsupported
from subbyte.families.base import ExportParts
from subbyte.families.bits.config import PAIRS, PLAIN
from subbyte.families.bits.plan import BitsPlan
from subbyte.families.bits.weights import HALF
from subbyte.families.shared.header import Forms, bit_parts, sections_of
from subbyte.numerics.bit_products import AND, count_form
from subbyte.workload.operand import BLOCK_BITS, WORD_BITS

_BLOCK_WORDS = BLOCK_BITS // WORD_BITS


def header_parts(plan: BitsPlan) -> ExportParts:
    """What the header needs. Raises Unsupported for fused outputs and byte activations."""
    if plan.whole_values:
        raise Unsupported(
            f"export of {plan.workload}: this kernel multiplies whole values, C headers are written for bit planes; "
            "build it with whole_values=0"
        )
    texts = sections_of(Path(__file__).with_name("places.h"))
    places = [texts["weight"], *([texts["ones"]] if plan.ones else []), texts["entry"]]
    forms = Forms(
        PAIRS if plan.paired_rows else PLAIN,
        PAIRS if plan.paired_output else PLAIN,
        plan.slices,
        plan.config.channels,
        count_form(plan.workload.precision, AND),
        0,
        f"{HALF} - needed" if plan.paired else "needed - 1",
    )
    return bit_parts(plan, plan, forms, places, _words(plan))


def _words(plan: BitsPlan) -> dict[str, str]:
    paired, blocks = plan.paired_rows, plan.channel_blocks
    parities = plan.parities if paired else (0,)
    slot, half = "word", "0"
    if plan.paired:
        slot, half = ("0", "word") if plan.words == 2 else ("word / 4 * 2 + word % 2", "word % 4 / 2")
    found = {
        "pieces": " (of two input rows, 64 channels each)" if paired else "",
        "piece": f"row / 2 * {plan.view.s} + s" if paired else f"(row * {plan.view.s} + s) * {blocks} + c / 128",
        "word": "row % 2 * 2 + c / 32" if paired else "c % 128 / 32",
        "parities": ", ".join(map(str, parities)),
        "variants": str(len(plan.parities)),
        "variant_words": str(plan.variant_bytes // 4),
        "columns": str(plan.n),
        "behind": str(plan.slice_words - plan.weight_bytes // 4),
        "first_ones": str(plan.filter_columns),
        "words_of_tap": str(2 if paired else blocks * _BLOCK_WORDS),
        "tap_words": str(plan.view.r * plan.view.s * (2 if paired else blocks * _BLOCK_WORDS)),
        "slot": slot,
        "half": half,
        "slots": str(plan.slots),
        "entry_mask": "0xFFFF" if plan.paired else "0xFFFFFFFF",
    }
    return {**found, "ones": str(plan.ones)} if plan.ones else found
