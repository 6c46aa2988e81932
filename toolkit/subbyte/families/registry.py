"""The registry of families: one line each. Everything else asks here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from subbyte.device.arch import Arch
from subbyte.errors import InvalidInput, Unsupported, did_you_mean, shown
from subbyte.families.base import ADDED, Family
from subbyte.families.topic import Record, Topic
from subbyte.info_record import InfoRecord
from subbyte.numerics.fusion import Fusion
from subbyte.spaces.configuration import Configuration, named_once
from subbyte.workload.conv import ConvWorkload

_LINES: dict[str, str] = {
    "mma": "subbyte.families.mma.family:MMA",
    "wgmma": "subbyte.families.wgmma.family:WGMMA",
    "bits": "subbyte.families.bits.family:BITS",
    "bmma": "subbyte.families.bmma.family:BMMA",
    "popc": "subbyte.families.popc.family:POPC",
    "condense": "subbyte.families.condense.family:CONDENSE",
    "stem": "subbyte.families.stem.family:STEM",
    "image": "subbyte.families.image.family:IMAGE",
}
"""Name -> location of its object. The order is used in lists and when families are asked in turn."""


_OWN = frozenset(_LINES)


def registered() -> dict[str, str]:
    """The families registered by code outside the library, with their locations: to pass to worker processes."""
    return {name: place for name, place in _LINES.items() if name not in _OWN}


def register_all(lines: Mapping[str, str]) -> None:
    """Register several families and import them, including everything their modules register."""
    for name, place in lines.items():
        register(name, place)
        _object(place)


def register(name: str, place: str) -> None:
    """Register a family: ``place`` is ``module:OBJECT``, imported on first use. Raises InvalidInput for a
    name that is already taken."""
    if _LINES.get(name, place) != place:
        raise InvalidInput(f"family {name!r} is {_LINES[name]} already; choose another name")
    _LINES[name] = place


def unregister(name: str) -> None:
    """Remove a family; for tests."""
    _LINES.pop(name, None)


@cache
def _object(place: str) -> Family:
    module, _, name = place.partition(":")
    found: Family = getattr(import_module(module), name)
    return found


def families() -> dict[str, Family]:
    """All families by name."""
    return {name: _object(place) for name, place in _LINES.items()}


def family_names() -> tuple[str, ...]:
    """The names of all families."""
    return tuple(_LINES)


def family_named(name: str) -> Family:
    """The family with this name, current or from an earlier version. Raises InvalidInput that suggests the closest
    names."""
    wanted = str(name).lower()
    for family in families().values():
        if wanted in (family.name, *family.aliases):
            return family
    raise InvalidInput(f"family={shown(name)}: {did_you_mean(wanted, family_names())}")


def finding_zeros(family: str = "auto") -> Family:
    """The family whose kernels find zeros anywhere at run time. Raises InvalidInput if ``family`` names another one."""
    asked = [one for one in asked_families(family) if one.finds_zeros]
    if not asked:
        able = [one.name for one in families().values() if one.finds_zeros]
        raise InvalidInput(f"family={shown(family)}: its kernels find no zeros; those of {' or '.join(able)} do")
    return asked[0]


def space_of_zeros(sparsity: str) -> str | None:
    """The kind of space with kernels that skip such zeros; None if there is none."""
    names = sparsity, sparsity.partition(":")[0]
    return next(
        (one.zero_spaces[name] for one in families().values() for name in names if name in one.zero_spaces), None
    )


def asked_families(family: str = "auto") -> list[Family]:
    """The requested families: one, or all with ``auto``. Raises InvalidInput that suggests the closest names."""
    if str(family).lower() == "auto":
        return list(families().values())
    try:
        return [family_named(family)]
    except InvalidInput:
        raise InvalidInput(f"family={shown(family)}: {did_you_mean(family, ('auto', *family_names()))}") from None


def newest_first(family: str = "auto") -> list[Family]:
    """The requested families, newest instruction first. Raises InvalidInput that suggests the closest names."""
    return sorted(asked_families(family), key=lambda one: -one.rank)


def tried_in_order(workload: ConvWorkload, arch: Arch, family: str = "auto") -> list[Family]:
    """The requested families in the order in which their kernels are tried: those that lead, then by newest
    instruction; for layers unlike any that was measured, by the estimated cycles of their first kernels."""
    found = sorted(newest_first(family), key=lambda one: not one.leads(workload, arch))
    if len(found) == 1:
        return found
    cycles = {one.name: one.first_estimate(workload, arch) for one in found}
    ranked = iter(sorted((one for one in found if cycles[one.name]), key=lambda one: cycles[one.name] or 0.0))
    return [next(ranked) if cycles[one.name] else one for one in found]


def family_of(config: object) -> Family:
    """The family of a configuration. Raises InvalidInput for anything else."""
    for family in families().values():
        if family.owns(config):
            return family
    examples = " or a ".join(f"{kind.__name__}" for one in families().values() for kind in one.configurations)
    raise InvalidInput(f"config is {type(config).__name__}: expected an {examples}")


def is_configuration(config: object) -> bool:
    """Whether ``config`` is a configuration of some family."""
    return any(family.owns(config) for family in families().values())


def config_from_key(key: str) -> Configuration:
    """The configuration, of any family, that a key names. Raises InvalidInput for an unknown part."""
    text = str(key).lower().strip()
    for family in families().values() if key == str(key) else ():
        found = family.from_key(text)
        if found is not None:
            return found
    return usual().configurations[0].from_key(key)


def config_from_dict(values: Mapping[str, Any]) -> Configuration:
    """The configuration, of any family, with these fields. Raises InvalidInput for unknown or impossible ones."""
    named = named_once(values)
    for family in families().values():
        found = family.decode(named)
        if found is not None:
            return found
    return usual().configurations[0].from_dict(named)


def family_of_fields(values: Mapping[str, Any]) -> tuple[Family, Configuration | None]:
    """The family of recorded fields and their configuration; None for a kernel with a removed knob.

    Raises InvalidInput for fields that belong to no family."""
    named = named_once(values)
    for family in families().values():
        try:
            found = family.decode(named)
        except Unsupported:
            return family, None
        if found is not None:
            return family, found
    return usual(), usual().configurations[0].from_dict(named)


def kinds() -> dict[str, Family]:
    """Kind of space -> its family."""
    return {kind: family for family in families().values() for kind in family.kinds}


def kind_named(kind: str) -> tuple[str, Family]:
    """A kind of space, given by its current or former name, and its family. Raises InvalidInput."""
    given: object = kind
    for family in families().values() if isinstance(given, str) else ():
        today = family.old_kinds.get(kind, kind)
        if today in family.kinds:
            return today, family
    raise InvalidInput(f"unknown kind of space {shown(kind)}: {did_you_mean(kind, kinds())}")


def family_of_kind(kind: str) -> Family | None:
    """The family of a kind of space, including kinds from earlier versions; None for a foreign one."""
    found = (family for family in families().values() if kind in family.kinds or kind in family.old_kinds)
    return next(found, None)


def usual() -> Family:
    """The default family: the first, whose kernels run on every architecture."""
    return next(iter(families().values()))


def topics() -> dict[str, dict[str, Topic[InfoRecord]]]:
    """Every topic's name, with the families that have it, by name."""
    found: dict[str, dict[str, Topic[InfoRecord]]] = {}
    for family in families().values():
        for name, topic in family.topics.items():
            found.setdefault(name, {})[family.name] = topic
    return found


def topic_giving(gives: type[Record], config: object = None) -> tuple[Family, Topic[Record]]:
    """The family of a configuration (None: the first one with such a topic) and its topic that produces a record.

    Raises InvalidInput for anything but a configuration, Unsupported if only other families have a topic with this
    record.
    """
    own = None if config is None else family_of(config)
    having = [(family, topic) for family in families().values() if (topic := _giving(family, gives)) is not None]
    for family, topic in having:
        if own in (None, family):
            return family, topic
    if own is None:
        raise Unsupported(f"{gives.__name__}: no family has this view")
    raise not_here(config, [family for family, _ in having])


def not_here(config: object, having: Iterable[Family]) -> Unsupported:
    """The message when a topic exists for some families but not for the configuration's."""
    own, key = family_of(config), getattr(config, "key", config)
    return Unsupported(
        f"only kernels of {named(having)} are shown here; {key} is of {named([own])}: see {commands(own)}, and its text"
    )


def named(found: Iterable[Family]) -> str:
    """Families with their instructions, as messages name them."""
    return " or ".join(f"the {family.name} family ({family.instruction})" for family in found) or "no family"


def commands(family: Family, workload: str = "") -> str:
    """The commands that show a family's kernels, for a workload or one that the family computes by default."""
    of = f" {workload}" if workload else ""
    topics = (f"{name}{of if topic.of != 'any' else ''}" for name, topic in family.topics.items())
    own = [f"`subbyte explain {topic} --family {family.name}`" for topic in topics]
    return ", ".join([*own, f"`subbyte explain duplicates{of}`"])


def shows(config: object, record: type[InfoRecord]) -> bool:
    """Whether ``config`` is a configuration of a family with a topic that produces a record."""
    return any(family.owns(config) and _giving(family, record) is not None for family in families().values())


def _giving(family: Family, gives: type[Record]) -> Topic[Record] | None:
    found = next((topic for topic in family.topics.values() if topic.gives is gives), None)
    return cast("Topic[Record] | None", found)


def who_fuses(fusion: Fusion) -> str:
    """Which families have kernels that can fuse this, for messages."""
    able = [family.name for family in families().values() if family.can_fuse(fusion)]
    if not able:
        return f"no kernel fuses {fusion.text}; values are added as {' or '.join(f'+add{one}' for one in ADDED)}"
    return f"only kernels of the {' and '.join(able)} {'family fuse' if len(able) == 1 else 'families fuse'} that"


def settings_text(values: Mapping[str, Any]) -> str:
    """A configuration's fields as ``subbyte build --set`` takes them: those in every key, and those not at their
    defaults; for a foreign kernel every knob."""
    kinds_of = (kind for family in families().values() for kind in family.configurations)
    rows: Mapping[str, Any] = next((kind.rows for kind in kinds_of if set(kind.rows) == set(values)), {})
    shown_ones = (
        name for name in values if name not in rows or rows[name].always or values[name] != rows[name].default
    )
    return " ".join(f"{name}={values[name]}" for name in shown_ones)
