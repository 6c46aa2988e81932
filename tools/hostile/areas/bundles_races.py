"""Bundles, results files, races, traces and bench records: damaged, and crafted with one field replaced."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hostile.crafting import at, damaged, field_values, must, packed, places, replaced, without
from hostile.harness import Case

DAMAGED, CRAFTED = 150, 520
FREE = (
    "device",
    "protocol",
    "clocks",
    "fixed",
    "base",
    "launch",
    "config",
    "resources",
    "tool",
    "copy",
    "gpu",
    "versions",
)
OPTIONAL = ("cold_microseconds", "share_of_peak", "spearman", "sm_mhz", "tool", "config", "missing", "command")
Call = Callable[[Path], object]


def cases(rng: random.Random) -> Iterator[Case]:
    """Each kind of file in turn."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cubins").mkdir()
        (folder / "cubins" / "a.cubin").write_bytes(b"cubin")
        manifest, results = _bundle()
        yield from _lines(folder / "manifest.jsonl", manifest, _manifest, rng)
        _write(folder / "manifest.jsonl", [json.dumps(line) for line in manifest])
        yield from _lines(folder / "results.jsonl", results, _results, rng)
        yield from _documents(folder / "race.json.gz", _race(), _load_race, rng)
        yield from _documents(folder / "traces.json", _traces(), _load_traces, rng)
        yield from _documents(folder / "bench.json", _bench(), _load_bench, rng)
        yield from _documents(folder / "atoms.json", _atoms(), _load_bench, rng)


def _lines(path: Path, lines: list[dict[str, Any]], call: Call, rng: random.Random) -> Iterator[Case]:
    texts = [json.dumps(line, separators=(",", ":")) for line in lines]
    whole = "".join(f"{text}\n" for text in texts).encode()
    for _ in range(DAMAGED):
        what, data = damaged(whole, rng)
        yield _case(path, what, data, "either", call)
    yield _case(path, "an empty header", b"\n" + whole, "refuse", call)
    wanted = [(n, place, raw) for n, line in enumerate(lines) for place in places(line) for raw in field_values()]
    for n, place, raw in rng.sample(wanted, min(CRAFTED, len(wanted))):
        made = [*texts[:n], replaced(lines[n], place, raw), *texts[n + 1 :]]
        data = "".join(f"{text}\n" for text in made).encode("utf-8", "surrogatepass")
        yield _case(path, f"line {n}, {place} = {raw[:60]}", data, _judged(lines[n], place, raw), call)


def _documents(path: Path, data: dict[str, Any], call: Call, rng: random.Random) -> Iterator[Case]:
    press = packed if path.suffix == ".gz" else bytes
    whole = json.dumps(data, separators=(",", ":")).encode()
    for number in range(DAMAGED):
        what, changed = damaged(whole, rng) if number % 2 else damaged(press(whole), rng)
        yield _case(path, what, press(changed) if number % 2 else changed, "either", call)
    every = list(places(data))
    for place in every:
        yield _case(path, f"without {place}", press(without(data, place).encode()), "either", call)
    wanted = [(place, raw) for place in every for raw in field_values()]
    for place, raw in rng.sample(wanted, min(CRAFTED, len(wanted))):
        text = replaced(data, place, raw).encode("utf-8", "surrogatepass")
        yield _case(path, f"{place} = {raw[:60]}", press(text), _judged(data, place, raw), call)


def _judged(data: Any, place: tuple[Any, ...], raw: str) -> str:
    loose = bool({*FREE} & set(map(str, place))) and not (len(place) == 1 and raw[:1] not in "{n")
    if raw in ("null", "0", "1", "-1", "1000000000") and {*OPTIONAL, "batches", "fits"} & set(map(str, place)):
        loose = True
    loose = loose or at(data, place) is None  # nothing there says what could be
    return must(at(data, place), raw, loose)


def _case(path: Path, text: str, data: bytes, judged: str, call: Call) -> Case:
    def attempt() -> object:
        path.write_bytes(data)
        return call(path)

    return Case(f"{path.name}: {text}", attempt, judged)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


# ---- readers -----------------------------------------------------------------------------------------------------


def _manifest(path: Path) -> object:
    from subbyte.measure.arrivals import Share
    from subbyte.measure.sidebyside import from_bundles

    return list(Share().entries(path.parent)), from_bundles([path.parent])


def _results(path: Path) -> object:
    from subbyte.tune.recording import assemble

    made = assemble(path, path.parent)
    return made.info().to_dict(), made.rows(), made.name


def _load_race(path: Path) -> object:
    from subbyte.analysis import Race

    found = Race.load(path)
    return found.text(), found.to_dict(), found._repr_html_(), found.save(path.with_name("again.json.gz"))


def _load_traces(path: Path) -> object:
    from subbyte.analysis.traces import read_traces

    found = read_traces(path)
    return found.participant, [sum(indices) for indices in found.visits.values()], dict(found.tool)


def _load_bench(path: Path) -> object:
    from hostile.harness import command
    from subbyte.analysis.recorded import SideBySide

    text = command("bench", "--from", str(path))
    if path.name == "bench.json":
        found = SideBySide.load(path)
        return text, found.title(), found.table()
    return text


# ---- files -------------------------------------------------------------------------------------------------------


def _bundle() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines of a manifest and of a results file."""
    from subbyte.device.launch import Argument, Launch
    from subbyte.families import space
    from subbyte.records.describe import describe_space, describe_workload
    from subbyte.records.landscape_file import make_header

    made = space("n8h6w6c32k32r3s3p1", "sm_80")
    workload, described = describe_workload(made.workload), describe_space(made)
    launch = Launch("conv", (1, 1, 1), (32, 1, 1), 0, (Argument("Out", "int32", (8,), "out"),)).to_dict()
    first, second, third = made.valid[:3]
    manifest: list[dict[str, Any]] = [
        {"format": "subbyte-bundle", "schema": 1, "workload": workload, "space": described,
         "versions": {"python": "3.11"}, "created": "2026-11-23"},
        {"index": first, "config": made.config(first).to_dict(), "cubin": "cubins/a.cubin", "program": "p",
         "launch": launch, "resources": {"registers": 64}, "seconds": 0.5},
        {"index": second, "config": made.config(second).to_dict(),
         "failed": {"ok": False, "kind": "build", "reason": "a reason"}},
        {"index": third, "config": made.config(third).to_dict(), "cubin": "cubins/a.cubin", "program": "p",
         "launch": launch, "resources": {"registers": 64}, "seconds": 0.5},
    ]  # fmt: skip
    header = {**make_header(workload, described, {"name": "GPU", "uuid": "u"}, {"repeats": 3}),
              "format": "subbyte-measurements", "schema": 1}  # fmt: skip
    results = [
        header,
        {"index": first, "ok": True, "microseconds": 5.25, "verified": True, "cold_microseconds": 9.5,
         "samples": [5.25, 5.5], "notes": ["a note"], "clocks": {"after": {"sm_mhz": 1410}}, "seconds": {"build": 0.5},
         "program": "p"},
        {"index": second, "ok": False, "kind": "build", "reason": "a reason", "seconds": {"build": 0.5}},
        {"index": third, "same_as": first},
    ]  # fmt: skip
    return manifest, results


def _race() -> dict[str, Any]:
    runs = [
        {"landscape": "one", "participant": name, "seed": seed, "evaluated": 4, "failed": 1, "seconds": 0.5,
         "fits": [[0.5, None]], "trials": 4, "improvements": [[1, 9.5], [3, 8.5 + seed / 4]],
         "batches": [[4, 0.5, None, 0.25, 0.125, 0.5, 0.25]]}
        for name in ("random", "genetic") for seed in (0, 1)
    ]  # fmt: skip
    facts = {"name": "one", "workload": "w", "spec": "n8h6w6c32k32r3s3p1", "device": "GPU", "arch": "sm_80",
             "kind": "paper", "space_hash": "0123", "size": 8, "failed": 1, "optimum_microseconds": 8.25}  # fmt: skip
    return {
        "format": "subbyte-race", "schema": 2, "created": "2026-11-23", "command": "", "versions": {"python": "3.11"},
        "trials": 4, "participants": ["random", "genetic"], "statistics_seed": 0, "seconds": 1.5, "skipped": ["a"],
        "landscapes": [facts], "runs": runs,
    }  # fmt: skip


def _traces() -> dict[str, Any]:
    return {
        "format": "subbyte-traces", "schema": 1, "participant": "other", "tool": {"name": "tool", "options": {"a": 1}},
        "landscape": {"name": "one", "spec": "n8h6w6c32k32r3s3p1", "space_hash": "0123"},
        "runs": [{"seed": 0, "indices": [1, 2, 3]}, {"seed": 1, "indices": [3, 2]}],
    }  # fmt: skip


def _bench() -> dict[str, Any]:
    row = {
        "workload": "w", "spec": "n8h6w6c32k32r3s3p1", "operations": 1000, "side": "subbyte int4", "output": "int4",
        "epilogue": "bias", "plan": "a plan", "plans": 3, "verified": "every element equal", "microseconds": 5.25,
        "cold_microseconds": 9.5, "samples": [5.25, 5.5], "cold_samples": [9.5], "tops": 10.5, "share_of_peak": 0.25,
        "clocks": {"date": "2026-11-23", "after": {"sm_mhz": 1410}}, "config": {"chunk": 1},
    }  # fmt: skip
    return {
        "schema": 1, "benchmark": "side by side with cuDNN", "command": "bench", "date": "2026-11-23",
        "gpu": {"name": "GPU", "sms": 132}, "versions": {"python": "3.11"}, "peak_tops": 100.5,
        "protocol": {"repeats": 3}, "rows": [row], "missing": [{"workload": "w", "side": "cuDNN", "reason": "none"}],
    }  # fmt: skip


def _atoms() -> dict[str, Any]:
    atom = {"atom": "s4.m16n8k32", "title": "int4", "native": True, "tops": 100.5, "microseconds": 5.25,
            "samples": [5.25, 5.5], "clocks": {"after": {"sm_mhz": 1410}}}  # fmt: skip
    return {
        "schema": 1, "kind": "atoms", "command": "bench", "date": "2026-11-23",
        "device": {"name": "GPU", "arch": "sm_80", "sms": 132}, "atoms": [atom],
        "copy": {"terabytes_per_second": 1.5}, "launch": {"graph_microseconds": 1.5, "stream_microseconds": 2.5},
    }  # fmt: skip
