"""The speed surface in words: a sentence for each pair of densities, and how to read it."""

from __future__ import annotations

from subbyte.sparse.maps import LayerDot, SpeedMap


def sentences(record: SpeedMap) -> list[str]:
    """One for each cell, in the order of the picture: along the weights, densest activations first."""
    where = record.surface
    near: dict[tuple[int, int], list[LayerDot]] = {}
    for dot in record.layers:
        key = (_nearest(where.activations, dot.activations), _nearest(where.weights, dot.weights))
        near.setdefault(key, []).append(dot)
    return [
        _sentence(record, i, j, near.get((i, j), []))
        for i in range(len(where.activations) - 1, -1, -1)
        for j in range(len(where.weights))
    ]


def _sentence(record: SpeedMap, i: int, j: int, layers: list[LayerDot]) -> str:
    where = record.surface
    side = {"a": "A, skipped by 8", "b": "B, skipped by 16"}[where.sides[i][j]]
    said = (
        f"{where.activations[i]:.0%} of the activations and {where.weights[j]:.0%} of the weights are not zero: "
        f"{where.same_unit[i][j]:.2f} times the same unit dense, {where.dense_core[i][j]:.2f} times the dense core; "
        f"compute alone {where.compute[i][j]:.2f} and {where.compute_dense_core[i][j]:.2f}. Weights stand on {side}."
    )
    if not layers:
        return said
    names = "; ".join(
        f"{one.name} {one.same_unit:.2f} times the same unit dense, {one.dense_core:.2f} times the dense core"
        for one in layers[:2]
    )
    more = f" and {len(layers) - 2} more" if len(layers) > 2 else ""
    return f"{said} Layers of these densities, each with its own shape: {names}{more}."


def _nearest(axis: tuple[float, ...], density: float) -> int:
    return min(range(len(axis)), key=lambda at: abs(axis[at] - density))


def whole(record: SpeedMap) -> str:
    """How to read it, and what is on it."""
    even = min(record.contour("dense_core", 1.0), key=lambda pair: abs(pair[0] - pair[1]), default=None)
    own = "" if even is None else f" With equal densities the dense core is passed at about {sum(even) / 2:.2f}."
    layers = f" Dots are {record.layers_from}." if record.layers else ""
    return (
        f"Sparse is at the lower left. No GPU has this unit: these are its own cycles.{own}{layers} Choose a pair of "
        "densities with a click or the arrow keys."
    )
