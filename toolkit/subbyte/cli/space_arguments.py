"""``--space`` and ``--set`` combined: the switches that hold for a whole space."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from subbyte.cli.arguments import asked_settings
from subbyte.errors import InvalidInput
from subbyte.workload import ConvWorkload


def switches(args: argparse.Namespace, given: str | ConvWorkload | Sequence[str | ConvWorkload]) -> dict[str, Any]:
    """The values of ``--set``, which sets switches here; the knobs are searched. Raises InvalidInput for a knob, an
    unknown name or value, and for layers whose spaces are of several kinds."""
    from subbyte.families.registry import kind_named

    asked = {name.lower().replace("-", "_"): value for name, value in asked_settings(args).items()}
    if not asked:
        return {}
    family = kind_named(_usual_kind(args.arch, given) if args.space is None else args.space)[1]
    held = family.held({})
    for name in asked:
        if name in family.names and name not in held:
            allowed = f"switches to hold: {', '.join(held)}" if held else "this space has no switches"
            raise InvalidInput(f"--set {name}: a knob, which the search chooses; {allowed}")
    chosen = family.plain.with_values(asked)
    return {name: getattr(chosen, name) for name in asked}


def _usual_kind(arch: str | None, given: str | ConvWorkload | Sequence[str | ConvWorkload]) -> str:
    """The common kind of space of all layers. Raises InvalidInput if they have several."""
    from subbyte.device.arch import arch as arch_named
    from subbyte.families import usual_kind
    from subbyte.tune.sources import DEFAULT_ARCH
    from subbyte.workload import workloads

    target = arch_named(arch or DEFAULT_ARCH)
    found = sorted({usual_kind(layer, target) for layer in workloads(given)})
    if len(found) > 1:
        raise InvalidInput(f"--set: these layers have spaces of several kinds, {' and '.join(found)}: give --space")
    return found[0]
