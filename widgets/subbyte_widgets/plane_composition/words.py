"""The plane composition in words: a sentence for each step, with {names} that a place fills, and the whole."""

from __future__ import annotations

from subbyte.technique.composition import PlaneComposition


def sentences(record: PlaneComposition) -> list[str]:
    """What each step shows."""
    p, q = record.weight_planes, record.planes
    ones = any(band.what == "ones" for band in record.bands)
    rows = (
        "Rows: the activations' planes are multiplied one after another, the sums doubled in between."
        if record.doubled
        else f"Rows: each of {_many(q, 'plane')} of the activations is an instruction, with accumulators of its own."
    )
    columns = f"{_many(p, 'plane')} of the weights" + (" and ones that count the activations' own bits" if ones else "")
    counted, worth = "Each register is a count: bits that are set in both planes, over the window.", "its two bits"
    if record.doubled:
        counted = (
            "Each register adds up the counts of all planes of the activations, the higher ones doubled more often."
        )
        worth = "the bits of its plane of the weights"
    return [
        (
            f"One instruction multiplies 64 rows of bits (8 pixels of 8 images) by {record.columns} columns of bits: "
            f"{columns}. {_many(record.steps, 'instruction')} of K = 256 {'makes' if record.steps == 1 else 'make'} a "
            "window. Up and down arrow keys follow another output channel."
        ),
        f"{rows} Pixel {record.pixel} of image {record.image} is row {record.row}, which warp {record.warp} holds.",
        (
            f"Columns: output channel {{channel}} is column {{columns}}: one for each plane of the weights"
            f"{', the last of ones' if ones else ''}. Where they cross its rows are all of its counts."
        ),
        "All of these are registers of one lane, lane {lane}: no other thread and no memory is needed to combine them.",
        counted,
        f"Each is multiplied by what {worth} are worth, and by what all products have in common.",
        "{sum} {constant} = {total}: the output, the same as from the values. Only the constant was known beforehand.",
    ]


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def in_words(record: PlaneComposition) -> str:
    """The picture in one or two sentences."""
    first = record.outputs[0]
    registers = ", ".join(str(term.register) for term in first.terms if term.register >= 0)
    return (
        f"{record.title()}. Output channel {first.channel} is in lane {first.lane} of warp {record.warp}, registers "
        f"{registers}; with the constant {first.constant:,} the sum is {first.total:,}."
    )
