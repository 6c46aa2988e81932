"""From measurements of a bundle to a landscape file.

Bundles are built by :mod:`subbyte.tune.bundle` and measured by :mod:`subbyte.measure.bundle`.
"""

from __future__ import annotations

import os

from subbyte.errors import InvalidInput
from subbyte.tune.bundle import read_manifest
from subbyte.tune.landscape import Landscape


def assemble(measurements: str | os.PathLike[str], bundle: str | os.PathLike[str]) -> Landscape:
    """The landscape of a bundle and the file its measurement wrote, complete or refused.

    Raises InvalidInput when configurations of the bundle have no result, or the results are of another bundle;
    BrokenRecord for a damaged file.
    """
    from subbyte.measure.bundle import to_landscape

    manifest, entries = read_manifest(bundle)
    made = to_landscape(measurements)
    if made.space_hash != manifest["space"]["hash"] or made.workload.spec != manifest["workload"]["spec"]:
        raise InvalidInput(f"{measurements} holds measurements of {made.workload.spec} in another space than {bundle}")
    missing = sorted(set(entries) - set(made.results))
    if missing:
        raise InvalidInput(
            f"{measurements}: {len(missing)} of {len(entries)} configurations have no result (first: {missing[0]}); "
            f"run `subbyte landscape measure {bundle}` again, it goes on where it stopped"
        )
    return made
