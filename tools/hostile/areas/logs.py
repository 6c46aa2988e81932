"""Record logs: damaged at random, and crafted with one field replaced under right checksums."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostile.crafting import at, damaged, field_values, must, places, replaced, without
from hostile.harness import Case

DAMAGED, CRAFTED = 2_100, 2_950
FREE = ("device", "options", "clocks", "fixed", "base", "versions")


def cases(rng: random.Random) -> Iterator[Case]:
    """Damage first, then what is crafted."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.jsonl"
        lines = _lines()
        texts = [json.dumps(line, separators=(",", ":")) for line in lines]
        whole = sealed(texts)
        told = [line["index"] for line in lines[1:]]
        for _ in range(DAMAGED):
            what, data = damaged(whole, rng)
            yield _case(path, what, data, "either", told)
        yield from _crafted(path, lines, texts, rng)


def _crafted(path: Path, lines: list[dict[str, Any]], texts: list[str], rng: random.Random) -> Iterator[Case]:
    for line in (0, 1, 2):
        for key in lines[line]:
            made = [*texts[:line], without(lines[line], (key,)), *texts[line + 1 :]]
            yield _case(path, f"line {line}, without {key}", sealed(made), "either" if key == "versions" else "refuse")
    wanted = [(line, place, raw) for line in (0, 1, 2, 3) for place in places(lines[line]) for raw in field_values()]
    for line, place, raw in rng.sample(wanted, min(CRAFTED, len(wanted))):
        made = [*texts[:line], replaced(lines[line], place, raw), *texts[line + 1 :]]
        loose = bool({*FREE, "config"} & set(map(str, place))) and len(place) > 1
        judged = must(at(lines[line], place), raw, loose)
        if raw == "null" and place[-1] in ("cold_microseconds", "ask", "device"):
            judged = "either"
        yield _case(path, f"line {line}, {place} = {raw[:60]}", sealed(made), judged)


def _case(path: Path, text: str, data: bytes, judged: str, told: list[int] | None = None) -> Case:
    def call() -> object:
        import warnings

        from subbyte.tune.outcome import TuningReport
        from subbyte.tune.record import read_log

        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_log(path)
        report = TuningReport((found,))
        shown = found.summary(), found.rows(), repr(found), found._repr_html_(), report.to_html(), report.rows()
        return [trial.index for trial in found.trials], shown

    return Case(text, call, judged, (lambda got: got[0] == told[: len(got[0])]) if told else None)


def sealed(lines: list[str]) -> bytes:
    """The bytes of a log with these lines and right checksums."""
    checksum, made = 0, []
    for line in lines:
        body = line.encode("utf-8", "surrogatepass")[:-1]
        checksum = zlib.crc32(body, checksum)
        made.append(body + f',"crc":"{checksum:08x}"}}\n'.encode())
    return b"".join(made)


def _lines() -> list[dict[str, Any]]:
    from subbyte.families import space
    from subbyte.records.describe import describe_space, describe_workload
    from subbyte.records.log import Entry
    from subbyte.records.result import Failed, Measured

    made = space("n8h6w6c32k32r3s3p1", "sm_80")
    header: dict[str, Any] = {
        "format": "subbyte-log", "schema": 1, "space": describe_space(made),
        "workload": describe_workload(made.workload), "seed": 3,
        "strategy": {"name": "random", "options": {"temperature": 0.5}}, "device": {"name": "GPU", "arch": "sm_80"},
        "versions": {"python": "3.11.7"}, "created": "2026-11-23T00:00:00.000+00:00",
    }  # fmt: skip
    one = Measured(5.25, (5.2, 5.25, 5.5), 9.5, True, {"name": "GPU"}, {"after": {"sm_mhz": 1410}}, {"build": 1.5},
                   ("a note",))  # fmt: skip
    results = [one, Failed("build", "a reason", {"build": 0.5}), Measured(7.0), one]
    when = "2026-11-23T00:00:01.000+00:00"
    entries = [
        Entry(number, made.valid[number], made.config(made.valid[number]), result, (0, 4, 0), when, when).to_dict()
        for number, result in enumerate(results)
    ]
    return [header, *entries]
