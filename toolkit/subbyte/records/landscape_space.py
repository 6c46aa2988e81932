"""A landscape and the space as it is today: constraints change, and a record made under others must not mislead.

The rule: an index means what the file's header says, always. A file whose space was made by a family of ours (its
header says so by ``index_hash``, an old one by its ``hash``) is compared with today's constraints when it is read:
entries of configurations that are refused now are dropped and named, configurations that are valid now and have no
entry are counted as missing, and the landscape takes the hash of today's space. A knob that is no more is left out of
the header where every kernel was without it: one value has no part in an index. What was measured of kernels that had
a knob which was given up later stays, though nobody can build them (``retired``). Any other space stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from subbyte.device.arch import arch
from subbyte.errors import InvalidInput
from subbyte.families.base import RETIRED
from subbyte.families.registry import family_of_kind
from subbyte.records.describe import workload_from_dict
from subbyte.records.result import Measured

if TYPE_CHECKING:
    from subbyte.families.base import Space
    from subbyte.records.result import Result


def space_today(header: Mapping[str, Any]) -> Space | None:
    """The space of a landscape's header under today's constraints; None when no family of ours made it."""
    described = header["space"]
    try:
        knobs = {name: tuple(values) for name, values in described["knobs"].items()}
        fixed, family = dict(described["fixed"]), family_of_kind(described["kind"])
        workload, target = workload_from_dict(header["workload"]), arch(described["arch"])
        if family is None:
            return None
        space = family.recorded_space(workload, target, described["kind"], knobs, fixed)
        known = space.index_hash in (described.get("index_hash"), described["hash"])
        if not known and space.hash != described["hash"]:
            return None
        kept = family.still_there(knobs)
        return family.recorded_space(workload, target, described["kind"], kept, fixed, described["hash"])
    except (InvalidInput, KeyError, TypeError, AttributeError):  # a foreign kernel, another architecture
        return None


def fit(
    header: Mapping[str, Any], results: Mapping[int, Result]
) -> tuple[dict[str, Any], dict[int, Result], dict[int, str]]:
    """Header and results under today's constraints, and the reasons of the entries dropped, by index."""
    space = space_today(header)
    header = _with_knobs_of(space, header)
    if space is None or _unchanged(header, results, space):
        return dict(header), dict(results), {}
    asked = results if _slow(header) else set(results) - set(space.valid)
    reasons = {index: space.check(index) for index in results if index in asked}
    dropped = {index: str(reason) for index, reason in reasons.items() if not _kept(reason)}
    described = {**header["space"], "hash": space.hash, "index_hash": space.index_hash}
    return (
        {**header, "space": described},
        {index: result for index, result in results.items() if index not in dropped},
        dropped,
    )


def fastest(header: Mapping[str, Any], results: Mapping[int, Result]) -> tuple[dict[str, Any], int, Measured] | None:
    """Header under today's constraints, and index and result of the fastest configuration that they leave; None without
    any. What :func:`fit` would drop of the slower ones is not asked: with large spaces that takes seconds."""
    space = space_today(header)
    timed = sorted((one.microseconds, index) for index, one in results.items() if isinstance(one, Measured))
    for _, index in timed:
        result = results[index]
        if isinstance(result, Measured) and (space is None or _kept(space.check(index))):
            return _with_knobs_of(space, header), index, result
    return None


def _with_knobs_of(space: Space | None, header: Mapping[str, Any]) -> dict[str, Any]:
    """The header with the knobs that are still there."""
    if space is None or len(space.knobs) >= len(header["space"]["knobs"]):
        return dict(header)
    knobs = {name: list(values) for name, values in space.knobs.items()}
    return {**header, "space": {**header["space"], "knobs": knobs, "index_hash": space.index_hash}}


def _slow(header: Mapping[str, Any]) -> bool:
    """Whether finding all that is valid in the space takes noticeable time."""
    family = family_of_kind(header["space"]["kind"])
    return family is not None and family.slow_to_list


def _kept(reason: str | None) -> bool:
    """Whether what was recorded stays: it can be built, or could when it was measured."""
    return reason is None or reason.startswith(f"{RETIRED}:")


def _unchanged(header: Mapping[str, Any], results: Mapping[int, Result], space: Space) -> bool:
    """Whether what was recorded is as valid as it was. Where listing a space takes long only what is recorded is looked
    at, and what else has become valid is found when asked for (:attr:`Landscape.missing`)."""
    if _slow(header):
        return all(_kept(space.check(index)) for index in results)
    return bool(header["space"]["hash"] == space.hash)
