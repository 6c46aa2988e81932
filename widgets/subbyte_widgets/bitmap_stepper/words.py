"""The bitmap stepper in words: a sentence for each step, with {names} that a place fills, and the whole."""

from __future__ import annotations

from subbyte.sparse.stepping import OhmmaSlot, TileSteps

SENTENCES = ("{start}", "{level1}", "{level2}", "{condensed}", "{popc}", "{ohmma}", "{bohmma}", "{gather}", "{add}",
             "{scatter}", "{whole}")  # fmt: skip
NOTHING = "Nothing happens here: {why}"


def why_short(record: TileSteps, slot: OhmmaSlot) -> str:
    """Why an OHMMA is skipped, in a few words."""
    if slot.skipped is None:
        return ""
    side = slot.skipped[0].upper()
    words = {
        "tile_empty": f"level 1: the warp tile of {side} is empty",
        "vector_empty": f"level 2: k = {slot.k} of {side} is all zeros",
    }
    return words.get(slot.skipped[2:], f"condensed: no value of {side} is left here")


def place_words(record: TileSteps, slot: OhmmaSlot) -> dict[str, str]:
    """What the sentences say of one OHMMA, by step."""
    one, k = record.geometry, slot.k
    a, b = record.count("a", k), record.count("b", k)
    own = [other for other in record.slots if other.k == k]
    runs, number = sum(other.skipped is None for other in own), own.index(slot)
    live = {side: record.level1(side)[k // one.slice] for side in "ab"}
    said = {
        "start": (
            f"An outer product takes one k at a time: column {k} of A times row {k} of B, added to all "
            f"accumulators. Dense, "
            f"each k is {len(own)} OHMMA, {record.dense} in all. Arrow keys: right and left step, up and down go "
            f"to other OHMMA."
        ),
        "level1": (
            f"Level 1 has one bit for each warp tile, {one.positions} positions by {one.slice} values of k: is "
            f"there anything in "
            f"it? Of k = {k} it says {int(live['a'])} for A and {int(live['b'])} for B. "
            + ("Both are live." if all(live.values()) else "All OHMMA of this tile are skipped at once.")
        ),
        "level2": (
            f"Level 2 has one word of {one.positions} bits for each k of a live tile: where column {k} of A "
            f"(blue) and row {k} of B "
            f"(orange) are not zero."
        ),
        "condensed": (
            f"Zeros are gone: the {a} values of A and the {b} of B of k = {k} stand packed, in groups of "
            f"{one.rows} and of "
            f"{one.columns}. Only whole groups are saved."
        ),
        "popc": _popc(record, slot, a, b, runs),
    }  # fmt: skip
    if slot.skipped is not None:
        why = NOTHING.format(why=record.why(slot.skipped))
        said |= dict.fromkeys(
            ("ohmma", "bohmma", "gather", "add", "scatter"), f"OHMMA {number} of k = {k} is skipped. {why}."
        )
        if slot.skipped.endswith("condensed"):
            said["bohmma"] = (
                f"BOHMMA makes the bitmap of k = {k} all the same: {a * b} positions, those of the other OHMMA."
            )
    else:
        size = f"{len(slot.a)} x {len(slot.b)}"
        said |= {
            "ohmma": (
                f"OHMMA {number} of k = {k}: {size} products of condensed values, in one cycle. Where they belong "
                f"is not in the "
                f"values: their positions were taken away with the zeros."
            ),
            "bohmma": (
                f"BOHMMA puts the positions back: level 2 of A and of B as a one-bit outer product. Its {a * b} "
                f"set bits (light) are "
                f"the accumulators of k = {k}; those of this OHMMA are dark."
            ),
            "gather": (
                f"Gather: the {len(slot.a) * len(slot.b)} accumulators at those positions lie all over the tile; they "
                "are brought together."
            ),
            "add": "Add: each gathered accumulator and its product.",
            "scatter": "Scatter: the sums go back to where they came from. No other accumulator has moved.",
        }  # fmt: skip
    return said | {"whole": _whole(record)}


def _popc(record: TileSteps, slot: OhmmaSlot, a: int, b: int, runs: int) -> str:
    one, k = record.geometry, slot.k
    if slot.skipped is not None and slot.skipped.endswith("tile_empty"):
        return (
            f"POPC does not even run: level 1 has left out the tile of k = {k}, {record.dense // one.depth} OHMMA "
            "for each k."
        )
    return (
        f"POPC counts the words' bits: a = {a} and b = {b}, so \u2308{a}/{one.rows}\u2309 x "
        f"\u2308{b}/{one.columns}\u2309 = {runs} of "
        f"{record.dense // one.depth} OHMMA run. The others are predicated off; they are the ghosts below."
    )


def _whole(record: TileSteps) -> str:
    head = f"All k done: {record.issued} of {record.dense} OHMMA have run. "
    if record.cycles is None:
        return head + "The toy has the real unit's four groups of A and two of B; choose the real tile above."
    own, same, core = record.cycles
    return head + (
        f"The model gives {own:.1f} cycles: {same / own:.2f} times as fast as the same unit dense, "
        f"{core / own:.2f} times the dense core "
        f"(without zeros: 1 and {core / same:.2f}). Merging and bitmaps cost cycles too."
    )


def in_words(record: TileSteps) -> str:
    """The picture in one or two sentences."""
    parts = ", ".join(f"{count} because {record.why(reason)}" for reason, count in record.reasons.items() if count)
    return f"{record.title()}. Skipped: {parts or 'none'}."
