"""The bit products in words: a sentence for each step, with {names} that a place fills, and the whole."""

from __future__ import annotations

from subbyte.technique.bits import BitSum
from subbyte_widgets.bit_product.picture import Drawing

_BORDERS = {
    "nothing": "Pixels beyond the border are bits 0, which count nowhere.",
    "constant": "Pixels beyond the border are filled with a code and count like all others.",
    "classes": "No code has the value of a pixel beyond the border: P and n are over the taps inside the image.",
}


def sentences(drawing: Drawing) -> list[str]:
    """What each step does."""
    record, sets = drawing.record, drawing.sets
    terms = record.workload.c * len(record.taps)
    pixel, weight = sets["activations"].written, sets["weights"].written
    found = [
        (
            f"The output is a sum of {terms:,} products, weight times pixel. Here are channels {{first}} to {{last}} "
            "of tap {tap}; up and down arrow keys go to others.{beyond}"
        ),
        (
            f"Encode: each value becomes a code, and each bit of the code goes into a plane. A pixel is {pixel}, a "
            f"weight {weight}.{{beyond}}"
        ),
    ]
    for (s, t), factor, number in zip(drawing.pairs, record.pair_factors, range(len(drawing.pairs)), strict=True):
        counted = "" if len(drawing.pairs) == 1 else f" Each counts {factor} in U."
        found.append(
            f"Multiply: weight plane {s} AND pixel plane {t}. {{w{s}&x{t}}} bits are set in both here, "
            f"{{count{number}}} in all channels of the tap: one instruction does AND and count.{counted}"
        )
    found += [_part(drawing, number) for number in drawing.shown]
    return [*found, f"Y = {record.formula} = {record.total:,}. Multiplying the values gives {record.reference:,}, too."]


def _part(drawing: Drawing, number: int) -> str:
    record = drawing.record
    value, factor = record.parts[number], record.factors[number]
    if number == 0:
        pairs = "" if len(drawing.pairs) == 1 else ", each pair of planes times its factor"
        return f"U: the counts of all {len(record.taps)} taps{pairs} add up to {value:,}."
    if number == 1:
        return (
            f"S counts the pixels' own bits in the window: {value:,}, times {factor}. It is the same for every output "
            "channel, so it is counted once for each pixel."
        )
    if number == 2:
        return (
            f"P counts the weights' own bits: {value:,}, times {factor}. It is known before the pixels are. "
            f"{_BORDERS[record.border]}"
        )
    return f"n is the number of products: {value:,}, times {factor}. {_BORDERS[record.border]}"


def in_words(record: BitSum) -> str:
    """The picture in one or two sentences."""
    parts = ", ".join(f"{name} = {part:,}" for name, part in zip("USPn", record.parts, strict=True))
    return (
        f"{record.title()}. Y = {record.formula} with {parts} is {record.total:,}; by the values {record.reference:,}."
    )
