"""Measure how far off the model is on its first choices for held-out layers: measured time over predicted time.

    python benchmarks/network first RECORD ... [--write]

Takes records of ``times`` (results/warpgroup/first-choices-*.json). Of each layer of ``heldout`` the kernel counts that
the model of today puts first among those that were measured; a layer none of whose kernels could be built says nothing.
``--write`` writes what ships: the ratios alone, without layers and kernels, from which ``subbyte.origin`` takes its
error bar. To be run again after ``train --write``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.network.heldout import held_out
from benchmarks.network.times import FORMAT
from benchmarks.shared.command import answering, parser_of
from subbyte.device.arch import arch
from subbyte.errors import BrokenRecord, InvalidInput
from subbyte.families import config_from_key
from subbyte.families.wgmma import batches, features, first_choices, model
from subbyte.families.wgmma.check import why_not
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.plan import WgmmaPlan
from subbyte.files import write_file
from subbyte.workload import ConvWorkload


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("network first", __doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="write what ships with the model")
    args = parser.parse_args(arguments)
    kernels = [one for path in args.paths for one in _read(path)]
    ratios: dict[str, float] = {}
    for layer in held_out():
        found = judged(layer, [one for one in kernels if one["cell"] == layer.spec])
        if found is None:
            print(f"{layer.spec:34} nothing measured")
            continue
        expected, measured = found
        ratios[layer.spec] = measured / expected
        print(f"{layer.spec:34} expected {expected:7.2f} us, measured {measured:7.2f} us, {measured / expected:.3f}")
    if not ratios:
        raise InvalidInput(f"{', '.join(map(str, args.paths))}: no kernel of a layer that is held out")
    print(f"{len(ratios)} layers: {min(ratios.values()):.2f} to {max(ratios.values()):.2f} times what was expected")
    if args.write:
        data = first_choices.written(ratios, [path.name for path in args.paths])
        write_file(first_choices.FILE, (json.dumps(data) + "\n").encode())
    return 0


def judged(layer: ConvWorkload, kernels: Sequence[dict[str, Any]]) -> tuple[float, float] | None:
    """Expected and measured time of the kernel that the model puts first; None where none was measured."""
    timed = [(config, one["microseconds"]) for one in kernels if "microseconds" in one
             and isinstance(config := config_from_key(one["config"]), WgmmaConfig)]  # fmt: skip
    layer = batches.whole(layer)
    plans = [WgmmaPlan(layer, config, arch("sm_90a")) for config, _ in timed]
    known = [one for plan, one in zip(plans, timed, strict=True) if why_not(plan) is None]
    if not known:
        return None
    rank = model.shipped().rank([features.row(plan) for plan in plans if why_not(plan) is None])
    config, time = known[rank.index(min(rank))]
    return batches.expected(layer, config, arch("sm_90a")), time


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError("another format")
        return list(data["kernels"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenRecord(f"{path}: no record of `times` ({error!r})") from None
