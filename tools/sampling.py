"""Which parameters of a test marked ``sample`` stay in ``make test``: the others are marked ``deep``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest


def one_of_each(cases: Iterable[Mapping[str, Any]], *fields: str) -> tuple[str, ...]:
    """For ``sample``: the names of the first case of each value of each of ``fields``. Of planted faults so one of each
    kind stays, and one in each kernel."""
    kept: dict[tuple[str, str], str] = {}
    for case in cases:
        for field in fields:
            kept.setdefault((field, str(case[field])), case["name"])
    return tuple(dict.fromkeys(kept.values()))


def mark_unsampled(items: list[pytest.Item]) -> None:
    """Mark as deep what is not in the sample of its test.

    ``sample("one", "another")`` keeps the parameters whose names contain one of these; ``sample(3)`` three of them: the
    first, the last and one between, evenly spread. Raises UsageError where nothing would be kept."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, members in families.items():
        if len(members) == 1:  # asked for by its name
            continue
        marker = members[0].get_closest_marker("sample")
        kept = _sampled(members, marker.args if marker else ())
        if not kept:
            raise pytest.UsageError(f"{name}: its sample is none of its parameters")
        for place, item in enumerate(members):
            if place not in kept:
                item.add_marker(pytest.mark.deep)


def _sampled(members: list[pytest.Item], kept: tuple[object, ...]) -> set[int]:
    if isinstance(kept[0], int):
        return {round(place * (len(members) - 1) / max(1, kept[0] - 1)) for place in range(kept[0])}
    names = [member.nodeid.partition("[")[2] for member in members]
    return {place for place, name in enumerate(names) if any(str(part) in name for part in kept)}
