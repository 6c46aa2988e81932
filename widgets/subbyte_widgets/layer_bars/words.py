"""The layer bars in words: a sentence for each layer, and what all of them come to."""

from __future__ import annotations

from subbyte.sparse.bars import LayerBars
from subbyte.sparse.networks import LayerCycles


def sentence(record: LayerBars, one: LayerCycles) -> str:
    """What a layer's zeros give, over both bases, and what was measured of it."""
    times = {bar: _both(record, one, bar) for bar in ("weight", "activation", "dual", "2:4")}
    x, w = one.activations, one.weights
    many = f" ({one.count} of them)" if one.count > 1 else ""
    said = (
        f"{one.name}{many}: {x.density:.0%} of the activations ({x.source}) and {w.density:.0%} of the weights "
        f"({w.source}) are not zero. Skipping both gives {times['dual']}; weights alone {times['weight']}; "
        f"activations alone {times['activation']}. 2:4 weights would give {times['2:4']}."
    )
    found = [f"{each.path} {each.speedup:.2f} ({each.layer}, {each.source})" for each in record.of_layer(one)]
    return f"{said} Measured over its dense twin: {', '.join(found)}." if found else said


def _both(record: LayerBars, one: LayerCycles, bar: str) -> str:
    same, core = (record.speedup(one, bar, over) for over in ("same_unit", "dense_core"))
    return f"{same:.2f} times the same unit dense, {core:.2f} the dense core"


def whole(record: LayerBars) -> str:
    """What all layers come to, and how to read them."""
    cycles = record.cycles
    parts = [
        f"{words} {cycles.speedup(mode):.2f} and {cycles.speedup(mode, over='dense_core'):.2f}"
        for mode, words in (("weight", "weights' zeros alone"), ("activation", "activations' alone"), ("dual", "both"))
    ]
    measured = "" if record.measured else " Nothing of this network is measured here."
    note = f" The {cycles.note}." if cycles.note else ""
    return (
        f"The whole network, over the same unit dense and over the dense core: {', '.join(parts)}. No GPU has this "
        f"unit.{note}{measured} Choose a layer with a click or the arrow keys."
    )
