"""The layers of a network side by side: dense, one side sparse, both, 2:4, and measured software."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subbyte.errors import BrokenRecord, InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse.networks import LayerCycles, NetworkCycles, network

BARS = {
    "dense": "the unit without skipping",
    "weight": "zeros of the weights skipped",
    "activation": "zeros of the activations skipped",
    "dual": "both skipped",
    "2:4": "a core with 2:4 weights at its nominal rate",
}
"""The modelled cases of each layer."""
OVER = ("same_unit", "dense_core")


@dataclass(frozen=True)
class MeasuredLayer:
    """One layer's speed-up on an existing GPU, over its dense counterpart in the same process."""

    layer: str
    """Includes the batch that was measured, ``resnet50.stage3@64``: the model's may be different."""
    path: str
    """Software path: 2:4, blocks, compact or condense."""
    speedup: float
    source: str
    """The record that holds both times."""

    def __post_init__(self) -> None:
        if not self.speedup > 0 or not self.source:
            raise InvalidInput(f"measured {self.layer}: needs a speed-up above 0 and the record that it is from")


@dataclass(frozen=True)
class LayerBars(InfoRecord):
    """A network's layers on the unit (a model in cycles), and measurements if there are records."""

    cycles: NetworkCycles
    measured: tuple[MeasuredLayer, ...]

    def speedup(self, layer: LayerCycles, bar: str, over: str = "same_unit") -> float:
        """Speed-up of one layer with implicit im2col, memory included. Raises InvalidInput for an unknown bar or
        base."""
        if bar not in BARS or over not in OVER:
            wrong, known = (bar, BARS) if bar not in BARS else (over, OVER)
            raise InvalidInput(f"{wrong!r}: {did_you_mean(wrong, known)}")
        own = layer.sparse24["implicit"] if bar == "2:4" else layer.cycles[bar]["implicit"]
        base = layer.cycles["dense"]["implicit"] if over == "same_unit" else layer.dense_core["implicit"]
        return base / own

    def of_layer(self, layer: LayerCycles) -> tuple[MeasuredLayer, ...]:
        """The measurements of a layer, for any batch."""
        return tuple(one for one in self.measured if _plain(one.layer) == _plain(layer.name))

    def title(self) -> str:
        """One line: the network's result, and how many measurements there are."""
        return f"{self.cycles.title()}; {len(self.measured) or 'no'} measurements of software"

    def table(self) -> Table:
        """One row for each layer: over the same unit dense, dual over the dense core too, and the measurements."""
        rows = tuple(
            (
                layer.name, *(self.speedup(layer, bar) for bar in BARS), self.speedup(layer, "dual", "dense_core"),
                ", ".join(f"{one.path} {one.speedup:.2f} ({one.layer})" for one in self.of_layer(layer)) or None,
            )
            for layer in self.cycles.layers
        )  # fmt: skip
        return Table(("layer", *BARS, "dual over dense core", "measured over dense twin"), rows)

    def text(self) -> str:
        """The table, its baseline, and where the measurements are from."""
        sources = "\n".join(dict.fromkeys(one.source for one in self.measured)) or "nothing measured"
        said = "model: speed-ups over the same unit dense, implicit im2col, memory included"
        return "\n\n".join([self.title(), columns_text(self.table()), said, sources])


def layer_bars(of: str | NetworkCycles, measured: Iterable[MeasuredLayer] = (), **options: Any) -> LayerBars:
    """The bars of a network (``options`` are those of :func:`subbyte.sparse.network`) or of an existing record.

    ``measured``: speed-ups from records of benchmarks. Raises InvalidInput for anything else, and for a measurement of
    a layer that the network does not have.
    """
    if isinstance(of, NetworkCycles) and options:
        raise InvalidInput(f"{', '.join(options)}: these go with a network's name; a finished record has its own")
    cycles = of if isinstance(of, NetworkCycles) else network(of, **options)
    found = tuple(measured)
    names = [_plain(layer.name) for layer in cycles.layers]
    for one in found:
        if not isinstance(one, MeasuredLayer):
            raise InvalidInput(f"measured holds {type(one).__name__}: expected sparse.MeasuredLayer")
        if _plain(one.layer) not in names:
            raise InvalidInput(
                f"measured layer {one.layer!r} of {cycles.network}: {did_you_mean(_plain(one.layer), names)}"
            )
    return LayerBars(cycles, found)


def read_measured(path: str | os.PathLike[str]) -> tuple[MeasuredLayer, ...]:
    """For each layer in a record of ``benchmarks/sparse measure``, the speed-up of the fastest exact 2:4 kernel over
    dense.

    Both were timed in turns; the speed-up is the median of the turns' ratios. Raises InvalidInput if there is no file,
    BrokenRecord if it is something else.
    """
    try:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        wrong = {(one["cell"], one["config"]) for one in stored["kernels"] if one["wrong"] != 0}
        where = f"{Path(path).name}, {stored['gpus'][0]['name']}"
        best: dict[str, float] = {}
        for one in stored["rounds"]:
            if not one["dense"] and ":" not in one["cell"] and (one["cell"], one["config"]) not in wrong:
                best[one["cell"]] = max(best.get(one["cell"], 0.0), float(one["ratio"]))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}; give a record of `benchmarks/sparse measure`") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise BrokenRecord(f"{path}: no record of `benchmarks/sparse measure`, or a damaged one") from None
    return tuple(MeasuredLayer(cell, "2:4", ratio, where) for cell, ratio in best.items())


def _plain(layer: str) -> str:
    """A layer's name without its batch."""
    return layer.partition("@")[0]
