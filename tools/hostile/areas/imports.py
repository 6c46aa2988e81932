"""Kernel Tuner's caches, T4 and CSV from others: damaged, with one field replaced, and tables cell by cell."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostile.crafting import at, corpus, damaged, field_values, must, packed, places, replaced, without
from hostile.harness import Case

DAMAGED, CRAFTED, CELLS = 2_700, 4_400, 1_400
CELL_VALUES = (
    "", " ", "no", "yes", "1", "0", "-1", "-3.5", "nan", "inf", "-inf", "1e999", "1e20", "true", "FALSE", "abc", "None",
    "null", "[]", "1,5", "1_000", "\u0663", "0x10", "../../victim", "/etc/passwd", "<img src=q onerror=alert(1)>",
    "a\nb", 'a"b', "\ufeff1", "\x00", "9" * 6000, "x" * 131_073, "123456789012345678901234567890", "=1+1",
)  # fmt: skip
TIMES = ("microseconds", "cold_microseconds")


def cases(rng: random.Random) -> Iterator[Case]:
    """The formats in turn."""
    with TemporaryDirectory() as folder:
        for name, data in (("kernel-tuner", cache()), ("t4", t4())):
            path = Path(folder) / f"{name}.json"
            whole = json.dumps(data).encode()
            for number in range(DAMAGED // 3):
                what, changed = damaged(whole, rng)
                yield _case(path, f"{name}: {what}", packed(changed) if number % 2 else changed, "either")
            yield _case(path, f"{name}: a byte-order mark", b"\xef\xbb\xbf" + whole, "refuse")
            yield _case(path, f"{name}: unpacks to 300 MiB", packed(b"[" * (300 * 2**20)), "refuse", 15)
            yield from _crafted(path, name, data, rng)
        yield from _tables(Path(folder) / "table.csv", rng)


def _crafted(path: Path, name: str, data: dict[str, Any], rng: random.Random) -> Iterator[Case]:
    every = list(places(data))
    for place in every:
        yield _case(path, f"{name}: without {place}", without(data, place).encode(), "either")
    wanted = [(place, raw) for place in every for raw in field_values()]
    for place, raw in rng.sample(wanted, min(CRAFTED // 2, len(wanted))):
        text = replaced(data, place, raw).encode("utf-8", "surrogatepass")
        for statistic in ("time", "median")[: 1 + (place[-2:-1] == ("times",))]:
            judged = _judged(place, at(data, place), raw)
            yield _case(path, f"{name}: {place} = {raw[:60]} ({statistic})", text, judged, statistic=statistic)


def _judged(place: tuple[Any, ...], old: Any, raw: str) -> str:
    if "not_read" in place or "performance" in place:
        return "either"
    times = {"time", "times", "runtimes", "value", "compile_time", "compilation"} & set(map(str, place))
    if times and raw in ("true", "false", "NaN", "Infinity", "-Infinity", "-3.5", '"abc"', '"5"', '[1, "a", {}]'):
        return "refuse"
    unread = "1e999" in raw or raw in ("NaN", "Infinity", "-Infinity")  # others write them where nobody looks
    return "either" if unread else must(old, raw, True)


def _tables(path: Path, rng: random.Random) -> Iterator[Case]:
    known = corpus("tables")
    for judged in ("refuse", "answer"):
        for text in known[judged]:
            yield _case(path, f"table {text[:60]!r}", text.encode(), judged)
    rows = [["knob", "other", "microseconds", "cold_microseconds", "verified", "failure", "reason"],
            ["1", "a", "2.5", "3.5", "true", "", ""], ["2", "b", "", "", "", "build", "a reason"],
            ["2", "a", "4.5", "", "", "", ""]]  # fmt: skip
    whole = _csv(rows)
    for _ in range(DAMAGED // 3):
        what, changed = damaged(whole, rng)
        yield _case(path, f"csv: {what}", changed, "either")
    wanted = [(r, c, value) for r in range(4) for c in range(7) for value in CELL_VALUES]
    for row, column, value in rng.sample(wanted, min(CELLS, len(wanted))):
        made = [list(line) for line in rows]
        made[row][column] = value
        bad = row and rows[0][column] in TIMES and rows[row][column] and value in ("abc", "nan", "inf", "-1", "true")
        bad = bad or (row and rows[0][column] == "verified" and value in ("no", "yes", "1", "0", "abc", "-1"))
        yield _case(path, f"csv: {row}, {column} = {value[:40]!r}", _csv(made), "refuse" if bad else "either")


def _csv(rows: list[list[str]]) -> bytes:
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue().encode()


def _case(path: Path, text: str, data: bytes, judged: str, seconds: float = 20.0, statistic: str = "time") -> Case:
    def call() -> object:
        from subbyte.records.exchange import import_landscape, to_text
        from subbyte.records.landscape import Landscape

        path.write_bytes(data)
        made = import_landscape(path, statistic=statistic)
        saved = made.save(path.with_name("made.json.gz"))  # what is accepted can be written and read again
        again = Landscape.load(saved)
        return again.info().to_dict(), again.rows(), again._repr_html_(), to_text(again, "t4"), made.name

    def safe(answer: object) -> bool:
        name = answer[-1]  # type: ignore[index]
        return bool(name) and Path(f"{name}.json.gz").name == f"{name}.json.gz" and not name.startswith((".", "-"))

    return Case(text, call, judged, safe, seconds)


def cache() -> dict[str, Any]:
    """A Kernel Tuner cache with a time, a failure and a sentinel."""
    more = {"compile_time": 300.5, "verification_time": 0, "benchmark_time": 10.25, "not_read": {"GFLOP/s": 5.5}}
    entries = [
        {"bx": 1, "by": "a", "time": 0.5, "times": [0.75, 0.5, 0.25], **more},
        {"bx": 2, "by": "a", "time": "CompilationFailedConfig", "times": [], **more},
        {"bx": 2, "by": "b", "time": 1e20, **more},
    ]
    return {
        "device_name": "A GPU", "kernel_name": "a_kernel", "problem_size": [4096, 16], "tune_params_keys": ["bx", "by"],
        "tune_params": {"bx": [1, 2], "by": ["a", "b"]}, "objective": "time",
        "cache": {f"{entry['bx']},{entry['by']}": entry for entry in entries},
    }  # fmt: skip


def t4() -> dict[str, Any]:
    """A T4 file with a time and a failure."""
    times = {"compilation": 300.5, "validation": 0, "benchmark": 10.25, "runtimes": [0.75, 0.5, 0.25]}
    return {
        "schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"},
        "results": [
            {"configuration": {"bx": 1, "by": "a"}, "times": times, "invalidity": "correct", "objectives": ["time"],
             "measurements": [{"name": "time", "value": 0.5, "unit": "ms"}], "timestamp": "2026"},
            {"configuration": {"bx": 2, "by": "a"}, "times": {**times, "runtimes": []}, "invalidity": "compile",
             "objectives": ["time"], "measurements": []},
        ],
    }  # fmt: skip
