"""Registers, local and shared memory of every configuration a space offers, as the compiler reports them.

Three steps, each of which continues where it was interrupted, so that the second can run on another machine:

python tools/resource_table.py --texts DIR      generate the CUDA texts (needs TVM)
python tools/resource_table.py --compile DIR    compile them (needs NVRTC and numpy only; no TVM, no GPU)
python tools/resource_table.py --table DIR      write results/resources/mma.csv.gz, and the configurations that spill
python tools/resource_table.py --check          exit 1 when that table shows local memory or lacks a configuration
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from subbyte.device.arch import ARCHS
from subbyte.errors import BuildFailed, InvalidInput, SubbyteError
from subbyte.families import Space, space
from subbyte.families.mma.config import MmaConfig
from subbyte.families.mma.rules import SPILLS, seen_to_spill

TABLE = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "resources" / "mma.csv.gz"
WORKLOADS = ("resnet50.stage2@8", "resnet50.stage3@8", "resnet50.stage4@8", "resnet50.stage5@8")
COLUMNS = ("workload", "arch", "index", "registers", "stack", "spill", "shared", "blocks_per_sm")
SCHEMA = 1
SHOWN = 5
"""Violations of one kind that are listed; the rest is counted."""
Row = dict[str, Any]
Spills = dict[str, dict[str, list[str]]]
"""Keys of configurations, by workload and architecture."""


# ---- texts ------------------------------------------------------------


def write_texts(folder: Path, spaces: Iterable[Space], workers: int) -> None:
    """One ``<spec>.jsonl.xz`` for each workload: a line for each distinct text with the configurations that have it."""
    by_workload = defaultdict(list)
    for one in spaces:
        by_workload[one.workload.spec].append(one)
    for spec, group in by_workload.items():
        path, mark = folder / f"{spec}.jsonl.xz", {"hashes": {s.arch.name: s.hash for s in group}, "code": generator()}
        if path.exists() and next(_lines(path)) == mark:
            print(f"{spec}: texts are there", file=sys.stderr)
            continue
        jobs: dict[tuple[str, str, str, int], list[tuple[str, int]]] = defaultdict(list)
        for one in group:
            for index in one.valid:
                jobs[spec, one.kind, _family(one, group), index].append((one.arch.name, index))
        uses: dict[str, list[tuple[str, int]]] = defaultdict(list)
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            for job, text in zip(jobs, pool.map(_text, jobs, chunksize=16), strict=True):
                uses[text] += jobs[job]
        partial = path.with_suffix(".partial")
        with lzma.open(partial, "wt", encoding="utf-8", preset=1) as file:
            for line in (mark, *({"text": text, "uses": found} for text, found in uses.items())):
                file.write(json.dumps(line) + "\n")
        os.replace(partial, path)
        print(f"{spec}: {sum(map(len, uses.values()))} configurations, {len(uses)} texts", file=sys.stderr)


def _family(one: Space, group: list[Space]) -> str:
    """First architecture of the group for which the same text is generated: its limits decide what is offered only."""
    return next(s.arch.name for s in group if _generates(s) == _generates(one))


def _generates(one: Space) -> tuple[Any, ...]:
    return one.arch.async_copy, one.arch.default_atom, tuple(one.fixed.items())


def _text(job: tuple[str, str, str, int]) -> str:
    from subbyte.kernel.build import generated_text

    spec, kind, arch, index = job
    planned = space(spec, arch, kind).plan(index)
    return generated_text(planned)


def generator() -> str:
    """Digest of the source files that decide the generated texts."""
    from subbyte.kernel.build import generator_digest

    return generator_digest()[:16]


def _lines(path: Path) -> Iterator[Any]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


# ---- compilation ------------------------------------------------------------


def compile_texts(folder: Path, kind: str, workers: int) -> None:
    """Compile what ``--texts`` wrote; one line for each configuration goes to ``<spec>.resources.jsonl``."""
    for path in sorted(folder.glob("*.jsonl.xz")):
        spec = path.name.removesuffix(".jsonl.xz")
        target = folder / f"{spec}.resources.jsonl"
        done = {(row["text"], row["arch"], row["index"]) for row in read_rows(target)}
        jobs, count = _jobs(path, spec, kind, done), 0
        with target.open("a", encoding="utf-8") as file, ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            for rows in pool.map(_compile, jobs, chunksize=2):
                file.writelines(json.dumps(row) + "\n" for row in rows)
                file.flush()
                count += len(rows)
        print(f"{spec}: {len(done)} were there, {count} compiled", file=sys.stderr)


Job = tuple[str, str, str, str, list[int]]
"""Text, workload, kind of space, architecture, and the configurations that have this text."""


def _jobs(path: Path, spec: str, kind: str, done: set[tuple[str, str, int]]) -> list[Job]:
    jobs: list[Job] = []
    for line in _lines(path):
        by_arch = defaultdict(list)
        for arch, index in line.get("uses", ()):
            if (digest(line["text"]), arch, index) not in done:
                by_arch[arch].append(index)
        jobs += [(line["text"], spec, kind, arch, indices) for arch, indices in by_arch.items()]
    return jobs


def digest(text: str) -> str:
    """Short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _compile(job: Job) -> list[Row]:
    from subbyte.kernel import nvrtc
    from subbyte.kernel.build import machine_code

    text, spec, kind, arch, indices = job
    row: Row = {"text": digest(text), "workload": spec, "arch": arch, "nvrtc": nvrtc.version()}
    planned = space(spec, arch, kind).plan(indices[0])
    try:
        _, found = machine_code(planned, text)
    except BuildFailed as error:
        return [{**row, "index": index, "error": str(error)[:500]} for index in indices]
    row |= {"registers": found.registers, "stack": found.stack_bytes, "shared": found.shared_bytes}
    row |= {"spill": found.spill_store_bytes + found.spill_load_bytes, "blocks_per_sm": found.blocks_per_sm}
    return [{**row, "index": index} for index in indices]


def read_rows(path: Path) -> list[Row]:
    """The rows of a resources file; a last line that an interruption cut off is removed."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) != len(data):
        path.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


# ---- table ------------------------------------------------------------


def write_table(folder: Path, kind: str, table: Path) -> int:
    """Collect the compiled rows that belong to the present texts. Returns the number of rows."""
    rows: list[Row] = []
    hashes: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.jsonl.xz")):
        spec = path.name.removesuffix(".jsonl.xz")
        mark, *texts = _lines(path)
        hashes[spec] = mark["hashes"]
        wanted = {(digest(line["text"]), *use) for line in texts for use in map(tuple, line["uses"])}
        compiled = {
            (row["text"], row["arch"], row["index"]): row for row in read_rows(folder / f"{spec}.resources.jsonl")
        }
        missing = wanted - set(compiled)
        if missing:
            raise InvalidInput(f"{spec}: {len(missing)} texts are not compiled yet; run --compile {folder}")
        rows += [compiled[key] for key in wanted]
    failed = [row for row in rows if "error" in row]
    if failed:
        raise BuildFailed(f"{len(failed)} kernels did not compile, first {failed[0]}")
    if not rows:
        raise InvalidInput(f"{folder} holds no texts; run --texts {folder} first")
    rows.sort(key=lambda row: (row["workload"], row["arch"], row["index"]))
    before = {key: seen_to_spill(*key) for key in {(row["workload"], row["arch"]) for row in rows}}
    rows = _kept(rows, kind, SPILLS if table == TABLE else table.with_name(SPILLS.name))
    for (spec, arch), listed in before.items():
        if seen_to_spill(spec, arch) != listed:  # the list changed, and the space with it
            hashes[spec][arch] = space(spec, arch, kind).hash
    head = {"schema": SCHEMA, "kind": kind, "spaces": hashes, "code": mark["code"]}
    head["nvrtc"] = sorted({row["nvrtc"] for row in rows})
    save_table(table, head, rows)
    return len(rows)


def _kept(rows: list[Row], kind: str, target: Path) -> list[Row]:
    """The rows of configurations that are offered. Those that spill go to the space's list, which refuses them."""
    kept, spaces = [], {key: space(*key, kind) for key in {(row["workload"], row["arch"]) for row in rows}}
    spills = outside(target, spaces)
    for row in rows:
        one = spaces[row["workload"], row["arch"]]
        if row["stack"] or row["spill"]:
            spills[row["workload"]][row["arch"]].append(one.config(row["index"]).key)
        elif one.check(row["index"]) is None:
            kept.append(row)
    write_spills(target, spills)
    return kept


def outside(target: Path, spaces: Mapping[tuple[str, str], Space]) -> Spills:
    """The listed configurations that lie in none of ``spaces`` (by workload and architecture): those stay listed."""
    spills: Spills = defaultdict(lambda: defaultdict(list))
    found = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    for spec, by_arch in found.items():
        for arch, keys in by_arch.items():
            one = spaces.get((spec, arch))
            spills[spec][arch] = [key for key in keys if one is None or not _inside(one, key)]
    return spills


def _inside(one: Space, key: str) -> bool:
    try:
        one.index(MmaConfig.from_key(key))
    except InvalidInput:
        return False
    return True


def write_spills(target: Path, spills: Spills) -> None:
    """Write the list of configurations for which the compiler used local memory."""
    named = {spec: {arch: keys for arch, keys in by_arch.items() if keys} for spec, by_arch in spills.items()}
    named = {spec: by_arch for spec, by_arch in named.items() if by_arch}
    target.write_text(json.dumps(named, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    seen_to_spill.cache_clear()


def save_table(table: Path, head: Row, rows: Iterable[Row]) -> None:
    """Compressed CSV behind one comment line that holds ``head`` as JSON."""
    text = io.StringIO()
    text.write(f"# {json.dumps(head)}\n")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    table.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def load_table(table: Path) -> tuple[Row, list[Row]]:
    """Head and rows of a table. Raises InvalidInput when it is damaged."""
    try:
        first, _, rest = gzip.decompress(table.read_bytes()).decode().partition("\n")
        head = json.loads(first.removeprefix("# "))
        numbers = COLUMNS[2:]
        rows = [{**row, **{name: int(row[name]) for name in numbers}} for row in csv.DictReader(io.StringIO(rest))]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{table} is no table of resources: {error}") from error
    if head.get("schema") != SCHEMA:
        raise InvalidInput(f"{table} has schema {head.get('schema')!r}, expected {SCHEMA}")
    return head, rows


def violations(table: Path, spaces: Iterable[Space]) -> list[str]:
    """What is wrong with a table, in sentences: nothing when it has every offered configuration, each in registers."""
    head, rows = load_table(table)
    found = _listed("uses local memory", [_name(row) for row in rows if row["stack"] or row["spill"]])
    found += _listed("fits no multiprocessor", [_name(row) for row in rows if row["blocks_per_sm"] < 1])
    known = defaultdict(set)
    for row in rows:
        known[row["workload"], row["arch"]].add(row["index"])
    for one in spaces:
        spec, arch = one.workload.spec, one.arch.name
        if head["kind"] != one.kind or head["spaces"].get(spec, {}).get(arch) != one.hash:
            found.append(f"{one.workload} on {arch}: the table was made for another space, or has none")
            continue
        missing = [f"{spec} {arch} {index}" for index in one.valid if index not in known[spec, arch]]
        found += _listed("is offered, but not in the table", missing)
    return found


def _name(row: Row) -> str:
    return f"{row['workload']} {row['arch']} {row['index']}"


def _listed(problem: str, names: list[str]) -> list[str]:
    rest = [f"{len(names) - SHOWN} more: {problem}"] if len(names) > SHOWN else []
    return [f"{name} {problem}" for name in names[:SHOWN]] + rest


# ---- command line ------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run one step. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    step = parser.add_mutually_exclusive_group(required=True)
    for name in ("texts", "compile", "table"):
        step.add_argument(f"--{name}", type=Path, metavar="DIR")
    step.add_argument("--check", action="store_true")
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS)
    parser.add_argument("--archs", nargs="+", default=tuple(ARCHS), help="default: all")
    parser.add_argument("--kind", default="paper", help="kind of space")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--file", type=Path, default=TABLE, help=f"the table (default {TABLE.name})")
    args = parser.parse_args(arguments)
    try:
        return _run(args)
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _run(args: argparse.Namespace) -> int:
    if args.compile:
        compile_texts(args.compile, args.kind, args.workers)
        return 0
    if args.table:
        count = write_table(args.table, args.kind, args.file)
        print(f"{count} configurations written to {args.file}", file=sys.stderr)
        return 0
    spaces = [space(workload, arch, args.kind) for workload in args.workloads for arch in args.archs]
    if args.texts:
        args.texts.mkdir(parents=True, exist_ok=True)
        write_texts(args.texts, spaces, args.workers)
        return 0
    found = violations(args.file, spaces)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
