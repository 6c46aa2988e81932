"""A landscape and today's space: constraints change, and a record made under other constraints must not mislead.

The rule: an index always means what the file's header says. A file whose space was made by a family of ours (its
header says so by ``index_hash``, an old one by its ``hash``) is compared with today's constraints when it is read:
entries of configurations that are rejected now are dropped and named, configurations that are valid now without an
entry are counted as missing, and the landscape takes the hash of today's space. A removed knob is left out of
the header if no kernel used it: a knob with a single value has no part in an index. Measurements of kernels with
a knob that was removed later are kept, though nobody can build these kernels (``retired``). Any other space is taken as
recorded.
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
    """The space of a landscape's header under today's constraints; None if no family of ours made it."""
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
    """Header and results under today's constraints, and the reasons of the dropped entries, by index."""
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
    """Header under today's constraints, and index and result of the fastest configuration that they allow; None without
    any. Slower entries are not checked against them, which takes seconds in large spaces."""
    space = space_today(header)
    timed = sorted((one.microseconds, index) for index, one in results.items() if isinstance(one, Measured))
    for _, index in timed:
        result = results[index]
        if isinstance(result, Measured) and (space is None or _kept(space.check(index))):
            return _with_knobs_of(space, header), index, result
    return None


def _with_knobs_of(space: Space | None, header: Mapping[str, Any]) -> dict[str, Any]:
    """The header with only the knobs that still exist."""
    if space is None or len(space.knobs) >= len(header["space"]["knobs"]):
        return dict(header)
    knobs = {name: list(values) for name, values in space.knobs.items()}
    return {**header, "space": {**header["space"], "knobs": knobs, "index_hash": space.index_hash}}


def _slow(header: Mapping[str, Any]) -> bool:
    """Whether listing the valid configurations of the space takes noticeable time."""
    family = family_of_kind(header["space"]["kind"])
    return family is not None and family.slow_to_list


def _kept(reason: str | None) -> bool:
    """Whether a recorded result is kept: it can be built, or could when it was measured."""
    return reason is None or reason.startswith(f"{RETIRED}:")


def _unchanged(header: Mapping[str, Any], results: Mapping[int, Result], space: Space) -> bool:
    """Whether the recorded configurations are as valid as they were. If listing a space is slow, only they are checked,
    and configurations that have become valid since are found on request (:attr:`Landscape.missing`)."""
    if _slow(header):
        return all(_kept(space.check(index)) for index in results)
    return bool(header["space"]["hash"] == space.hash)
