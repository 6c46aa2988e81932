"""Old configurations: by key, by recorded fields, and by an index of a landscape or a space."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from compatibility import library, read, write

INDICES = 200
SPACES = [
    ("n8h56w56c64k64r3s3p1", "sm_90a", "paper", {}), ("n8h56w56c64k64r3s3p1", "sm_80", "paper", {"layout": "nhwc"}),
    ("n8h14w14c256k256r3s3p1", "sm_75", "paper", {"duplicate_aware": "none", "register_packing": False}),
    ("n8h56w56c64k64r3s3p1", "sm_90a", "extended", {}), ("n8h7w7c512k512r3s3p1", "sm_90a", "extended", {}),
    ("n8h56w56c64k64r3s3p1", "sm_90a", "warpgroup", {}), ("n8h7w7c2048k512r1s1p0", "sm_90a", "warpgroup", {}),
    ("n8h7w7c512k512r3s3p1", "sm_90a", "warpgroup", {}), ("n64h14w14c256k256r3s3p1", "sm_90a", "warpgroup", {}),
    ("n64h56w56c128k128r3s3p1u2", "sm_90a", "warpgroup", {"layout": "nhwc"}),
    ("n256h14w14c1024k2048r1s1p0u2", "sm_90a", "warpgroup", {}),
    ("n256h7w7c512k512r3s3p1", "sm_90a", "warpgroup", {"register_packing": False}),
    ("n8h224w224c3k64r7s7p3u2", "sm_90a", "warpgroup", {}), ("n3h9w11c40k72r3s3p1u2", "sm_90a", "warpgroup", {}),
    ("n8h28w28c128k128r3s3p1", "sm_90a", "warpgroup-small", {}),
    ("n8h7w7c512k512r3s3p1", "sm_90a", "warpgroup-small", {"duplicate_aware": "none"}),
]  # fmt: skip
KEYS = [
    "wg-tw8-tr1-gm1-sg7-ri3-ao2", "wg-tw8-tr2-gm2-sg2-ri5-wr6", "wg-tw6-tr1-gm1-sg1-ri6-sw1-la1",
    "wg-tw6-tr1-gm1-sg1-ri6-bl2", "wg-tw8-tr1-gm1-sg7-sp2-ri3-sta0-ao2-bl2-nhwc", "WG-TW28-TR1-GM1-SG8-RI5",
    "tw28-tr1-gm1-sg8-ri5", "brw1-bcw2-wrt4-wct4-ch1-ri0", "BRW2-bcw1-wrt2-wct4-ch2-ri1-st3",
    "brw1-bcw2-wrt4-wct4-ch1-ri0-dup.none-rp0-nhwc-s4.m16n8k64", "wg-tw14-tr1-gm1-sg28-ri3-dup.none-rp0-nhwc",
    "brw9", "wg-tw0-tr1-gm1-sg1-ri1", "wg-zz4", "wg-tw8-tw8", "nonsense", "", "wg-staging4",
]  # fmt: skip
FIELDS: list[dict[str, Any]] = [
    {"chunk": 2}, {"CHUNK": "4", "layout": "NHWC"}, {"groups_m": 2}, {"groups_m": 2, "staging": 0, "share": 1},
    {"groups_m": 1, "tile_width": 14, "at_once": 2, "weight_ring": 8, "swizzle": 1, "blocks": 2},
    {"groups_m": 1, "staging": 4}, {"groups_m": 1, "share": 2}, {"groups_m": 1, "groups_k": 2}, {"unknown": 1},
    {"chunk": 0}, {"groups_m": 1, "layout": "hwnc"}, {"register_packing": "off"},
]  # fmt: skip


def record() -> None:
    """Write what every key and index means."""
    keys = {key: _meaning(library.config_of_key, key) for key in [*KEYS, *single_knobs()]}
    fields = [[one, _meaning(library.config_of_fields, one)] for one in FIELDS]
    held: dict[str, Any] = {}
    for name, header in library.landscapes().items():
        indices = _indices(name, header["space"]["size"], ())
        held[name] = {"header": header, "indices": indices,
                      "keys": [library.landscape_key(header, index) for index in indices]}  # fmt: skip
    spaces = []
    for spec, arch, kind, fixed in SPACES:
        made = library.made_space(spec, arch, kind, fixed)
        valid = made.valid if len(made) <= 50_000 else ()
        indices = _indices(f"{spec}{kind}", len(made), valid)
        found = {"size": len(made), "index_hash": made.index_hash, "knobs": {k: list(v) for k, v in made.knobs.items()},
                 "indices": indices, "keys": [library.space_key(spec, arch, kind, fixed, i) for i in indices],
                 "valid": len(valid) if valid else None}  # fmt: skip
        spaces.append([[spec, arch, kind, fixed], found])
    write("decoding", {"keys": keys, "fields": fields, "landscapes": held, "spaces": spaces})


def single_knobs() -> list[str]:
    """Keys with one knob away from its default: each knob of both families, with several values."""
    found = []
    for usual, values in (("brw1-bcw2-wrt4-wct4-ch1-ri0", (1, 2, 3, 8)), ("wg-tw28-tr1-gm1-sg1-ri4", (0, 1, 2, 7))):
        base = library.config_of_key(usual)
        for name, value in base.to_dict().items():
            for other in values if type(value) is int else ():
                try:
                    found.append(base.with_values({name: other}).key)
                except ValueError:
                    continue
    return sorted(set(found))


def _meaning(read_it: Any, given: Any) -> Any:
    """The fields that are not at their default and the key, or the kind of error."""
    try:
        config = library.before(read_it(given))
    except ValueError as error:
        return type(error).__name__
    usual = type(config)().to_dict()
    return [config.key, {name: value for name, value in config.to_dict().items() if value != usual[name]}]


def _indices(seed: str, size: int, valid: Any) -> list[int]:
    rng = random.Random(seed)
    some = rng.sample(list(valid), min(len(valid), INDICES // 2))
    return sorted({0, size - 1, *some, *(rng.randrange(size) for _ in range(INDICES - 2 - len(some)))})


@cache
def held() -> dict[str, Any]:
    """What was recorded."""
    found: dict[str, Any] = read("decoding")
    return found


def key_problems() -> Iterator[str]:
    """Keys and recorded fields that mean something else now."""
    for read_it, pairs in (
        (library.config_of_key, held()["keys"].items()), (library.config_of_fields, held()["fields"])
    ):  # fmt: skip
        for given, meant in pairs:
            now = _meaning(read_it, given)
            if now != meant:
                yield f"{given!r} means {now}, before {meant}"


def landscape_problems() -> Iterator[str]:
    """Headers and indices of shipped landscapes that mean something else now."""
    today = library.landscapes()
    for name, one in held()["landscapes"].items():
        if name not in today:
            yield f"landscape {name}: is no longer shipped"
            continue
        space, now = one["header"]["space"], today[name]["space"]
        for part in ("kind", "arch", "size", "knobs", "fixed"):
            if space[part] != now[part]:
                yield f"landscape {name}: another {part}"
        for header in (one["header"], today[name]):
            keys = [library.landscape_key(header, index) for index in one["indices"]]
            if keys != [library.key_today(key) for key in one["keys"]]:
                yield f"landscape {name}: indices mean other configurations"


def space_problems() -> Iterator[str]:
    """Indices of spaces that mean something else now."""
    for (spec, arch, kind, fixed), one in held()["spaces"]:
        made = library.made_space(spec, arch, kind, fixed, one["knobs"])
        label = f"{kind} space of {spec} on {arch}"
        knobs = {name: list(values) for name, values in made.knobs.items()}
        if (len(made), knobs) != (one["size"], one["knobs"]):
            yield f"{label}: other knobs or values"
            continue
        if made.index_hash != one["index_hash"]:
            yield f"{label}: another index_hash, by which landscapes know it"
        if [made.config(index).key for index in one["indices"]] != [library.key_today(key) for key in one["keys"]]:
            yield f"{label}: indices mean other configurations"
        elif kind != "warpgroup-small" and one["valid"] is not None and len(made.valid) != one["valid"]:
            yield f"{label}: {len(made.valid)} valid configurations, before {one['valid']}"
