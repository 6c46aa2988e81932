"""Landscape files: damaged at random, and crafted with one field replaced under a right checksum."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostile.crafting import at, damaged, field_values, must, packed, places, replaced, without
from hostile.harness import Case

DAMAGED, CRAFTED = 700, 900
FREE = ("device", "protocol", "clocks", "fixed", "base")
"""Parts that may hold plain data of any type."""


def cases(rng: random.Random) -> Iterator[Case]:
    """Damage first, then what is crafted."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.json.gz"
        lines = _lines()
        whole = _sealed([json.dumps(line, separators=(",", ":")) for line in lines])
        for number in range(DAMAGED):
            inner = bool(number % 2)
            what, data = damaged(whole if inner else packed(whole), rng)
            untouched = data.rstrip(b"\n") == whole.rstrip(b"\n")
            yield _case(path, f"{'inside' if inner else 'packed'}: {what}", packed(data) if inner else data,
                        "either" if untouched or not inner else "refuse")  # fmt: skip
        yield from _crafted(path, lines, rng)
        yield from _large(path, lines)


def _crafted(path: Path, lines: list[dict[str, Any]], rng: random.Random) -> Iterator[Case]:
    wanted = [(line, place, raw) for line in (0, 1, 2, 3) for place in places(lines[line]) for raw in field_values()]
    texts = [json.dumps(line, separators=(",", ":")) for line in lines]
    for line, place in ((0, ("space", name)) for name in ("kind", "arch", "hash", "size", "knobs", "fixed")):
        made = [*texts[:line], without(lines[line], place), *texts[line + 1 :]]
        yield _case(path, f"line {line}, without {place}", packed(_sealed(made)), "refuse")
    for line, place, raw in rng.sample(wanted, CRAFTED):
        made = [*texts[:line], replaced(lines[line], place, raw), *texts[line + 1 :]]
        loose = place[0] in FREE or (len(place) > 1 and place[1] in FREE)
        judged = must(at(lines[line], place), raw, loose)
        if judged == "refuse" and place in (("cold_microseconds",), ("command",), ("versions",)) and raw == "null":
            judged = "either"
        yield _case(path, f"line {line}, {place} = {raw[:60]}", packed(_sealed(made)), judged)


def _large(path: Path, lines: list[dict[str, Any]]) -> Iterator[Case]:
    """Little files that ask for much."""
    yield _case(path, "a line of 32 MiB", packed(b"0" * 2**25), "refuse", 5)
    yield _case(path, "gzip in gzip", packed(packed(b"0" * 2**20)), "refuse", 5)
    for values in ([10**9], list(range(1, 5000)), [1] * 5000, [2**16], list(range(60000))):
        header = json.loads(json.dumps(lines[0]))
        knobs = header["space"]["knobs"]
        for name in list(knobs)[:2]:
            knobs[name] = values
        size = 1
        for held in knobs.values():
            size *= len(held)
        header["space"] |= {"size": size}
        made = [json.dumps(line, separators=(",", ":")) for line in (header, *lines[1:])]
        yield _case(path, f"knobs of {len(values)} values to {values[-1]}", packed(_sealed(made)), "either", 10)


def _case(path: Path, text: str, data: bytes, judged: str, seconds: float = 20.0) -> Case:
    def call() -> object:
        from subbyte.records.exchange import to_text
        from subbyte.records.landscape import Landscape

        path.write_bytes(data)
        found = Landscape.load(path)
        again = found.save(path.with_name("again.json.gz"))
        return found.info().to_dict(), found.rows()[:2], repr(found), found._repr_html_(), to_text(found, "csv"), again

    return Case(text, call, judged, seconds=seconds)


def _sealed(lines: list[str]) -> bytes:
    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    return content + f'{{"sha256":"{hashlib.sha256(content).hexdigest()}"}}\n'.encode()


def _lines() -> list[dict[str, Any]]:
    """Header and entries of a small landscape: measured, failed, shared."""
    from subbyte.families import space
    from subbyte.records.landscape import Landscape
    from subbyte.records.landscape_file import entry_fields
    from subbyte.records.result import Failed, Measured

    made = space("n8h6w6c32k32r3s3p1", "sm_80")
    clocks = {"before": {"sm_mhz": 1410, "throttle": []}}
    one = Measured(5.25, (5.2, 5.25, 5.5), 9.5, True, {}, clocks, {"build": 1.5, "measure": 0.25}, ("a note",))
    first, second, third, fourth = made.valid[:4]
    results = {first: one, second: Failed("build", "a reason", {"build": 0.5}), third: Measured(7.0), fourth: one}
    header = Landscape.from_results(made, results, {"name": "GPU", "uuids": ["a", "b"]}, {"repeats": 3}).header
    lines = [{**header, "schema": 2, "entries": 4}]
    lines += [entry_fields(index, result) for index, result in list(results.items())[:3]]
    lines[1]["gpu"] = 1
    return [*lines, {"index": fourth, "same_as": first}]
