"""Whole networks on one unit: every layer dense, weight-side, activation-side, dual; explicit and implicit im2col."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.info_record import InfoRecord, Table, columns_text
from subbyte.sparse import machines
from subbyte.sparse.evaluate import IM2COL, MODES, checked
from subbyte.sparse.machines import Machine
from subbyte.sparse.profiles import load_arrays
from subbyte.sparse.shapes import NetworkLayer, network_layers
from subbyte.sparse.simulation import OperandSummary, product_of, references

DEFAULTS = {"convolutional": (0.45, 0.2), "bert": (1.0, 0.2), "lstm": (1.0, 0.2)}
"""Default densities of activations and weights. They are assumed: the papers do not publish theirs as numbers."""


@dataclass(frozen=True)
class LayerCycles:
    """One distinct layer of a network."""

    name: str
    count: int
    activations: OperandSummary
    weights: OperandSummary
    cycles: Mapping[str, Mapping[str, float]]
    """Total cycles of one occurrence, by mode and im2col."""
    dense_core: Mapping[str, float]
    """The same for the inner-product core, by im2col."""
    sparse24: Mapping[str, float]
    """The same with weights pruned to 2:4."""
    weights_side: str
    """The bound in dual mode with implicit im2col."""


@dataclass(frozen=True)
class NetworkCycles(InfoRecord):
    """A network, layer by layer, in cycles of a model; nothing here was measured on hardware."""

    network: str
    machine: Machine
    note: str
    layers: tuple[LayerCycles, ...]

    def total(self, mode: str, im2col: str = "implicit") -> float:
        """Cycles of all layers, multiplied by their occurrences. Raises InvalidInput for an unknown mode or im2col."""
        checked(mode, im2col, "auto")
        return sum(layer.count * layer.cycles[mode][im2col] for layer in self.layers)

    def speedup(self, mode: str, im2col: str = "implicit", over: str = "same_unit") -> float:
        """Speed-up of the network over ``same_unit`` (dense), ``dense_core`` or ``sparse24``, all with the same
        im2col."""
        if over == "same_unit":
            return self.total("dense", im2col) / self.total(mode, im2col)
        if over not in ("dense_core", "sparse24"):
            raise InvalidInput(f"over {over!r}: expected same_unit, dense_core or sparse24")
        base = sum(layer.count * getattr(layer, over)[im2col] for layer in self.layers)
        return base / self.total(mode, im2col)

    def title(self) -> str:
        """One line: the network's speed-up in dual mode over both dense baselines."""
        own, core = self.speedup("dual"), self.speedup("dual", over="dense_core")
        return (
            f"{self.network} on {self.machine.name}, dual, implicit im2col: {own:.3f} times the same unit dense, "
            f"{core:.3f} times the dense core (model)"
        )

    def table(self) -> Table:
        """One row for each layer: densities, and speed-ups over the same unit dense and over the dense core."""
        rows = tuple(self._row(layer) for layer in self.layers)
        heads = ("layer", "count", "activations", "weights", "weight", "activation", "dual", "dual explicit")
        return Table((*heads, "dual over dense core"), rows)

    def text(self) -> str:
        """The table, and the whole network in every mode."""
        kinds = Table(
            ("whole network", "im2col", "cycles", "over the same unit dense", "over the dense core", "over 2:4"),
            tuple(
                (mode, im2col, round(self.total(mode, im2col)), *(
                    f"{self.speedup(mode, im2col, over):.3f}" for over in ("same_unit", "dense_core", "sparse24")
                ))
                for im2col in IM2COL
                for mode in MODES
            ),
        )  # fmt: skip
        text = "speed-ups over the same unit dense with the same im2col; activations and weights: densities"
        sources = {
            f"{name}: {summary.source}"
            for layer in self.layers
            for name, summary in (("activations", layer.activations), ("weights", layer.weights))
        }
        return "\n\n".join(
            [self.title(), columns_text(self.table()), text, columns_text(kinds), "\n".join(sorted(sources)), self.note]
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields, and the whole network's speed-ups by mode and im2col."""
        whole = {
            im2col: {
                mode: {over: self.speedup(mode, im2col, over) for over in ("same_unit", "dense_core", "sparse24")}
                for mode in MODES
            }
            for im2col in IM2COL
        }
        return {**super().to_dict(), "speedups": whole}

    def _row(self, layer: LayerCycles) -> tuple[Any, ...]:
        dense = {im2col: layer.cycles["dense"][im2col] for im2col in IM2COL}
        own = [dense["implicit"] / layer.cycles[mode]["implicit"] for mode in MODES[1:]]
        return (
            layer.name, layer.count, layer.activations.density, layer.weights.density, *own,
            dense["explicit"] / layer.cycles["dual"]["explicit"],
            layer.dense_core["implicit"] / layer.cycles["dual"]["implicit"],
        )  # fmt: skip


def network(
    name: str, *, activations: Any = None, weights: Any = None, machine: str | Machine = "dstc",
    profile: str | None = None, seed: int = 0, progress: Callable[[int, int], None] | None = None,
) -> NetworkCycles:  # fmt: skip
    """Every distinct layer of ``vgg16@8``, ``resnet18``, ``resnet50``, ``alexnet``, ``maskrcnn``, ``bert`` or ``lstm``.

    ``activations`` and ``weights``: a density or source for all layers; the image that enters the first layer has no
    zeros. ``profile``: both at once, ``photos+magnitude80``, or an ``.npz`` with arrays ``LAYER.activations`` and
    ``LAYER.weights`` (masks or tensors; LAYER as in ``resnet50.stage2``) for some layers; the others keep the
    densities. Raises InvalidInput for unknown names, wrong shapes, and a profile that names no layer.
    """
    unit = machines.machine(machine)
    layers = network_layers(name)
    label = str(name).strip().lower().partition("@")[0]
    default = DEFAULTS.get(label, DEFAULTS["convolutional"])
    given: dict[str, Any] = {}
    if profile is not None:
        profile = str(profile)
        if Path(profile).suffix == ".npz":
            given = _for_layers(load_arrays(profile), layers, profile)
        else:
            first, plus, second = profile.partition("+")
            if not plus or activations is not None or weights is not None:
                raise InvalidInput(
                    f"profile {profile!r}: expected ACTIVATIONS+WEIGHTS such as photos+magnitude80, or a .npz; with "
                    "the first, leave out activations and weights"
                )
            activations, weights = first, second
    assumed = " and ".join(side for side, one in (("activations", activations), ("weights", weights)) if one is None)
    activations = default[0] if activations is None else activations
    weights = default[1] if weights is None else weights
    rows = []
    for number, layer in enumerate(layers):
        rows.append(_layer(layer, activations, weights, given, unit, seed))
        if progress is not None:
            progress(number + 1, len(layers))
    note = f"densities of {assumed} are assumed, not published ones" if assumed else ""
    return NetworkCycles(str(name).strip().lower(), unit, note, tuple(rows))


def _layer(
    layer: NetworkLayer, activations: Any, weights: Any, given: Mapping[str, Any], unit: Machine, seed: int
) -> LayerCycles:
    name = layer.shape.label.partition("@")[0]
    x = given.get(f"{name}.activations", "dense" if layer.image else activations)
    product, _ = product_of(layer.shape, x, given.get(f"{name}.weights", weights), seed)
    cycles: dict[str, dict[str, float]] = {}
    core: dict[str, float] = {}
    half: dict[str, float] = {}
    side = ""
    for mode in MODES:
        cycles[mode] = {}
        for im2col in IM2COL:
            one = product.evaluate(unit, mode, im2col, "auto")
            cycles[mode][im2col] = one.cycles.total
            if (mode, im2col) == ("dual", "implicit"):
                side = one.weights_side
    for im2col in IM2COL:
        _, core[im2col], half[im2col] = references(product, unit, im2col)
    both = [
        OperandSummary(one.label, one.density, one.lowered_nonzeros / one.lowered_elements)
        for one in (product.activations, product.weights)
    ]
    if layer.image and f"{name}.activations" not in given:
        both[0] = OperandSummary("the picture itself: no zeros", 1.0, 1.0)
    return LayerCycles(layer.shape.label, layer.count, both[0], both[1], cycles, core, half, side)


def _for_layers(arrays: Mapping[str, Any], layers: tuple[NetworkLayer, ...], file: str) -> dict[str, Any]:
    names = [layer.shape.label.partition("@")[0] for layer in layers]
    allowed = {f"{name}.{side}" for name in names for side in ("activations", "weights")}
    for key in arrays:
        if key not in allowed:
            raise InvalidInput(f"{file}: array {key!r} is of no layer; expected names such as {names[1]}.activations")
    return dict(arrays)
