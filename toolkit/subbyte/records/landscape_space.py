"""A landscape and the space as it is today: constraints change, and a record made under others must not mislead.

The rule: an index means what the file's header says, always. A file whose space was made by :mod:`subbyte.space` (its
header says so by ``index_hash``, an old one by its ``hash``) is compared with today's constraints when it is read:
entries of configurations that are refused now are dropped and named, configurations that are valid now and have no
entry are counted as missing, and the landscape takes the hash of today's space. A knob that is no more is left out of
the header where every kernel was without it: one value has no part in an index. Any other space stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from subbyte.errors import InvalidInput
from subbyte.records.describe import workload_from_dict

if TYPE_CHECKING:
    from subbyte.records.result import Result
    from subbyte.families.mma.space import Space
    from subbyte.families.wgmma.space import WarpgroupSpace


def space_today(header: Mapping[str, Any]) -> Space | WarpgroupSpace | None:
    """The space of a landscape's header under today's constraints; None when it was not made by ``subbyte.space``."""
    from subbyte.device.arch import arch
    from subbyte.families.mma.space import Space
    from subbyte.families.wgmma.space import WarpgroupSpace
    from subbyte.families.wgmma.small_space import WARPGROUP_KINDS

    described = header["space"]
    try:
        knobs = {name: tuple(values) for name, values in described["knobs"].items()}
        fixed, kind = dict(described["fixed"]), described["kind"]
        workload, target = workload_from_dict(header["workload"]), arch(described["arch"])
        space: Space | WarpgroupSpace = (
            WarpgroupSpace(workload, target, knobs, kind, fixed)
            if kind in WARPGROUP_KINDS
            else Space(workload, target, kind, knobs, fixed)
        )
        known = space.index_hash in (described.get("index_hash"), described["hash"])
        if not known and space.hash != described["hash"]:
            return None
        return replace(space, knobs=_still_there(knobs)) if isinstance(space, WarpgroupSpace) else space
    except (InvalidInput, KeyError, TypeError, AttributeError):  # a foreign kernel, another architecture
        return None


def _still_there(knobs: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """Value lists without removed knobs. Raises Unsupported where some kernels had one."""
    from subbyte.families.wgmma.config import without_removed

    held = without_removed({name: values[0] if len(values) == 1 else values for name, values in knobs.items()})
    return {name: knobs[name] for name in held}


def fit(
    header: Mapping[str, Any], results: Mapping[int, Result]
) -> tuple[dict[str, Any], dict[int, Result], dict[int, str]]:
    """Header and results under today's constraints, and the reasons of the entries dropped, by index."""
    space = space_today(header)
    if space is not None and len(space.knobs) < len(header["space"]["knobs"]):
        knobs = {name: list(values) for name, values in space.knobs.items()}
        header = {**header, "space": {**header["space"], "knobs": knobs, "index_hash": space.index_hash}}
    if space is None or _unchanged(header, results, space):
        return dict(header), dict(results), {}
    valid = set(space.valid)
    dropped = {index: str(space.why_not(index)) for index in results if index not in valid}
    described = {**header["space"], "hash": space.hash, "index_hash": space.index_hash}
    return (
        {**header, "space": described},
        {index: result for index, result in results.items() if index in valid},
        dropped,
    )


def _unchanged(header: Mapping[str, Any], results: Mapping[int, Result], space: Space | WarpgroupSpace) -> bool:
    """Whether what was recorded is as valid as it was. Listing a warpgroup space takes half a second: of one only what
    is recorded is looked at, and what else has become valid is found when asked for (:attr:`Landscape.missing`)."""
    from subbyte.families.wgmma.space import WarpgroupSpace

    if isinstance(space, WarpgroupSpace):
        return all(space.why_not(index) is None for index in results)
    return bool(header["space"]["hash"] == space.hash)
