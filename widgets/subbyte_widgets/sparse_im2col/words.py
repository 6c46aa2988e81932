"""Sparse im2col in words: a sentence for each step, with {names} that a place fills, and the whole."""

from __future__ import annotations

from subbyte.sparse.lowering import LoweredColumn, RowLowering

SENTENCES = ("{start}", "{mask}", "{phase}", "{shift}", "{cut}", "{first}", "{count}", "{column}")


def place_words(record: RowLowering, one: LoweredColumn) -> dict[str, str]:
    """What the sentences say of one offset, by step."""
    wl = record.workload
    offset = one.s * wl.dilation - wl.pad
    reads = f"x * {wl.stride} {'+' if offset >= 0 else '-'} {abs(offset)}" if wl.stride > 1 or offset else "x"
    outside = "" if one.inside else " This row lies in the padding above or below the image: no bits, no values."
    way = "right" if one.shift > 0 else "left"
    moved = f"by {abs(one.shift)} to the {way}" if one.shift else "by nothing"
    rest = {1: "All pixels", 2: ("Even pixels", "Odd pixels")[one.phase]}
    which = (
        rest[wl.stride] if wl.stride == 1 else rest.get(wl.stride, f"Pixels {one.phase}, {one.phase + wl.stride}, ...")
    )
    return {
        "start": (
            f"Column (r, s) = ({one.r}, {one.s}) of the lowered matrix: output pixel x needs pixel {reads} of "
            f"image row {one.row} "
            f"(marked). Gathering them one by one would expand every zero.{outside}"
        ),
        "mask": (
            f"The row is stored as a bitmap and {len(one.packed)} packed values, made once for all offsets."
            + (f" With stride {wl.stride} the pixels of each phase are stored apart." if wl.stride > 1 else "")
        ),
        "phase": (
            f"Offset {offset} with stride {wl.stride}: phase {one.phase}, shift {one.shift}. "
            f"{which if wl.stride > 1 else 'With stride 1 all pixels'} "
            "are the word; its bit 0 stands for the first of them."
        ),
        "shift": (
            f"The word is shifted {moved}: one instruction for up to 32 pixels. "
            + (
                "Zeros come in on the left (green): padding, for which nothing had to be stored."
                if one.shift < 0
                else "Bits that leave on the left (orange) belong to no output; zeros come in on the right (green)."
                if one.shift
                else "This column begins where the row does."
            )
        ),
        "cut": f"Only {wl.q} bits stand for outputs; the mask cuts off what lies beyond. This is the column's bitmap.",
        "first": (
            f"Where do its values begin? {one.below} set bit{'s' * (one.below != 1)} of the phase before the shift "
            "mean that the first value is number "
            f"{one.first} of the packed ones: a popcount, not a search."
        ),
        "count": (
            f"How many are there? The column's bitmap has {one.count} bits set: a run of {one.count} packed values, "
            "copied as it is."
        ),
        "column": (
            f"The column with its zeros, as explicit im2col would have written it. Here it takes {wl.q} bits and "
            f"{one.count} values. "
            "Arrow keys: up and down go to other offsets."
        ),
    }  # fmt: skip


def in_words(record: RowLowering) -> str:
    """The picture in one or two sentences."""
    runs = ", ".join(
        f"({one.r}, {one.s}) shift {one.shift}, {one.count} values from {one.first}" for one in record.columns[:3]
    )
    more = ", ..." if len(record.columns) > 3 else ""
    return f"{record.title()}; {record.source}. {runs}{more}."
