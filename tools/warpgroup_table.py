"""What the compiler made of each offered kernel of the wgmma family.

    python tools/warpgroup_table.py --build PART.csv.gz [--what chosen sampled] [--missing]   # needs TVM, no GPU
    python tools/warpgroup_table.py --join PART.csv.gz ... [--file TABLE]
    python tools/warpgroup_table.py --check [--file TABLE]

Whatever is built is checked on the spot (``subbyte.families.wgmma.faults``), so that nobody is handed a kernel
without wgmma, with local memory, serialized wgmma or a comparison the compiler got wrong. The table says how often
that happens: *chosen* are the recorded configurations, and for every other layer of ResNet-18, ResNet-50 and VGG-16
those that ``subbyte.compile`` may take without a record; *sampled* are random valid configurations of the spaces of
all these layers, drawn so that every value of every knob comes about as often as any other. A row says how many wgmma
instructions the machine code holds, how much local memory it touches, or why ``subbyte.build`` refuses it.
``--check`` compares the table with what is chosen today; it needs neither TVM nor a GPU.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from subbyte.device.arch import arch
from subbyte.errors import BuildFailed, InvalidInput, SubbyteError
from subbyte.families.registry import config_from_dict, config_from_key
from subbyte.families.wgmma.config import WgmmaConfig
from subbyte.families.wgmma.estimate import candidates
from subbyte.families.wgmma.space import WGMMA, WgmmaSpace, kernel_of, own_values, wgmma_space
from subbyte.kernel.choose import TRIES, recorded_best
from subbyte.workload import ConvWorkload, workload
from subbyte.workload.networks import NETWORKS
from subbyte.workload.precision import INT4

TABLE = Path(__file__).resolve().parents[1] / "benchmarks" / "results" / "resources" / "wgmma.csv.gz"
SCHEMA = 1
COLUMNS = ("what", "workload", "key", "igmma", "merged", "registers", "local", "shared", "refused")
CHOSEN, SAMPLED = "chosen", "sampled"
SAMPLE = 600
"""Configurations drawn."""
DRAWS = 600
"""How often a configuration with a certain value of a knob is drawn until one is valid."""
DRAWN_AGAIN = range(20)
"""As often again for a layer that had none."""
BATCHES = {"resnet18": (8,), "resnet50": (8, 64, 256), "vgg16": (8,)}
SHOWN = 5
Row = dict[str, Any]
Job = tuple[str, str, dict[str, Any]]
"""What it is offered as, workload, configuration."""


def layers() -> list[ConvWorkload]:
    """The layers of three networks, at the batches that matter."""
    return [layer.workload(batch) for name, batches in BATCHES.items() for layer in NETWORKS[name] for batch in batches]


def offered(what: Iterable[str], workloads: Iterable[ConvWorkload] | None = None) -> Iterator[Job]:
    """Every configuration that is offered, each once for what it is offered as; ``workloads`` instead of all layers."""
    for kind in what:
        seen = set()
        for found, config in _chosen(workloads or layers()) if kind == CHOSEN else sample(workloads or layers()):
            if (found.spec, config.key) not in seen:
                seen.add((found.spec, config.key))
                yield kind, found.spec, config.to_dict()


def _chosen(workloads: Iterable[ConvWorkload]) -> Iterator[tuple[ConvWorkload, WgmmaConfig]]:
    for spec, entry in recorded_best().items():
        config = config_from_dict(entry["config"])
        if isinstance(config, WgmmaConfig) and workload(spec).precision == INT4:  # of others there is no table
            yield workload(spec), config
    for found in (one for one in workloads if one.spec not in recorded_best()):
        for config in candidates(found, arch("sm_90a"))[:TRIES]:
            yield found, config


def sample(
    workloads: Iterable[ConvWorkload], count: int = SAMPLE, seed: int = 5
) -> Iterator[tuple[ConvWorkload, WgmmaConfig]]:
    """Valid configurations of the workloads' spaces in turns, each with the value of a knob that came least so far;
    then any one of each workload that had none."""
    rng = random.Random(seed)
    spaces = [wgmma_space(one, arch("sm_90a"), WGMMA) for one in dict.fromkeys(workloads)]
    seen: Counter[tuple[str, int]] = Counter()
    drawn: Counter[str] = Counter()
    turn = 0
    while drawn.total() < count:
        space, turn = spaces[turn % len(spaces)], turn + 1
        listed = [(name, value) for name, values in space.knobs.items() for value in values if len(values) > 1]
        name, value = min(rng.sample(listed, len(listed)), key=lambda pair: seen[pair])
        seen[name, value] += 1  # also where it is never valid: others have their turn then
        found = _drawn(space, {name: (value,)}, rng)
        if found is not None:
            seen.update((name, value) for name, value in found.to_dict().items() if name in space.knobs)
            drawn[space.workload.spec] += 1
            yield space.workload, found
    for space in (one for one in spaces if not drawn[one.workload.spec]):
        tries = (_drawn(space, {}, rng) for _ in DRAWN_AGAIN)
        found = next((config for config in tries if config is not None), None)
        if found is not None:
            yield space.workload, found


def _drawn(space: WgmmaSpace, held: dict[str, tuple[int, ...]], rng: random.Random) -> WgmmaConfig | None:
    knobs = {**space.knobs, **held}
    for _ in range(DRAWS):
        drawn = {name: rng.choice(values) for name, values in knobs.items()}
        own = own_values(drawn)
        config = kernel_of(drawn)(**own, **space.fixed)
        if set(held) <= set(own) and space.check(config) is None:
            return config
    return None


# ---- building --------------------------------------------------------------------------------------------------------


def build_row(job: Job) -> Row:
    """Build one kernel, and say what came of it."""
    from subbyte.families.wgmma.faults import counts
    from subbyte.kernel.build import generated_text, machine_code, make_plan

    what, spec, values = job
    config = config_from_dict(values)
    row: Row = {"what": what, "workload": spec, "key": config.key, "refused": ""}
    plan = make_plan(workload(spec), config, "sm_90a", "int4", (-8, 7), "fixed")
    try:
        cubin, resources = machine_code(plan, generated_text(plan))
    except BuildFailed as error:
        reason = str(error).partition(f"{config.key}: ")[2] or str(error)
        return row | {
            "igmma": 0,
            "merged": 0,
            "registers": 0,
            "local": 0,
            "shared": plan.shared_bytes,
            "refused": reason[:120],
        }
    found = counts(cubin)
    local = resources.local_bytes + found["LDL"] + found["STL"]
    row |= {"igmma": found["IGMMA"], "merged": found["merged"], "local": local}
    return row | {"registers": resources.registers, "shared": resources.shared_bytes}


def build_all(target: Path, what: Iterable[str], workers: int, known: Path | None) -> int:
    """Build what is offered and not in the table ``known``; how many rows were written."""
    import subbyte.tirx.lower  # noqa: F401 - loads TVM once; the processes are forked with it
    from subbyte.kernel import nvrtc
    from subbyte.kernel.build import generator_digest

    there = {_name(row) for row in load(known)[1]} if known else set()
    jobs = [job for job in offered(what) if (*job[:2], config_from_dict(job[2]).key) not in there]
    rows: list[Row] = []
    head = {"schema": SCHEMA, "generator": generator_digest()[:16], "nvrtc": [nvrtc.version()]}
    with ProcessPoolExecutor(workers, get_context("fork")) as pool:
        for row in pool.map(build_row, jobs, chunksize=4):
            rows.append(row)
            if len(rows) % 100 == 0:
                save(target, head, rows)  # an interruption costs little: --join, then --build with --missing
                print(f"{len(rows)} of {len(jobs)}", file=sys.stderr, flush=True)
    save(target, head, rows)
    return len(rows)


# ---- table -----------------------------------------------------------------------------------------------------------


def save(target: Path, head: Row, rows: Iterable[Row]) -> None:
    """Compressed CSV behind one comment line that holds ``head`` as JSON."""
    text = io.StringIO()
    text.write(f"# {json.dumps(head)}\n")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: (row["what"], row["workload"], row["key"])))
    target.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def load(table: Path) -> tuple[Row, list[Row]]:
    """Head and rows of a table. Raises InvalidInput when it is damaged."""
    try:
        first, _, rest = gzip.decompress(table.read_bytes()).decode().partition("\n")
        head = json.loads(first.removeprefix("# "))
        numbers = ("igmma", "merged", "registers", "local", "shared")
        rows = [{**row, **{name: int(row[name]) for name in numbers}} for row in csv.DictReader(io.StringIO(rest))]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{table} is no table of the wgmma family: {error}") from error
    if head.get("schema") != SCHEMA:
        raise InvalidInput(f"{table} has schema {head.get('schema')!r}, expected {SCHEMA}")
    return head, rows


def join(parts: Iterable[Path], table: Path) -> int:
    """Put tables that one generator made together; later ones win. Raises InvalidInput when they are of several."""
    heads, lists = zip(*map(load, parts), strict=True)
    generators = {head["generator"] for head in heads}
    if len(generators) > 1:
        raise InvalidInput(f"the parts were built by different generators: {', '.join(sorted(generators))}")
    joined = {_name(row): row for rows in lists for row in rows}
    save(table, heads[0] | {"nvrtc": sorted({version for head in heads for version in head["nvrtc"]})}, joined.values())
    return len(joined)


def _name(row: Row) -> tuple[str, str, str]:
    return row["what"], row["workload"], key_today(row["key"])


def key_today(key: str) -> str:
    """What the key of a row is called today; the table was made by an earlier version."""
    try:
        return config_from_key(key).key
    except InvalidInput:
        return key


def violations(rows: Iterable[Row], wanted: Iterable[Job]) -> list[str]:
    """What is wrong with a table, in sentences: nothing when every offered configuration is in it and either refused
    by name or made of wgmma, without local memory."""
    known = {_name(row): row for row in rows}
    lists: dict[str, list[str]] = {}
    for (_, spec, key), row in known.items():
        if row["refused"]:
            continue
        if not row["igmma"]:
            lists.setdefault("has no wgmma in its machine code", []).append(f"{spec} {key}")
        if row["merged"]:
            lists.setdefault("has a comparison merged with a minimum", []).append(f"{spec} {key}")
        if row["local"]:
            lists.setdefault("uses local memory and is not refused", []).append(f"{spec} {key}")
    working: dict[str, int] = {}
    for what, spec, values in wanted:
        key = config_from_dict(values).key
        row = known.get((what, spec, key))
        if row is None:
            lists.setdefault("is offered, but not in the table", []).append(f"{spec} {key}")
        elif what == CHOSEN:
            working[spec] = working.get(spec, 0) + (not row["refused"])
    none = [spec for spec, count in working.items() if not count]
    if none:
        lists["has no configuration that compile can take"] = none
    return [f"{name} {problem}" for problem, names in lists.items() for name in names[:SHOWN]] + [
        f"{len(names) - SHOWN} more: {problem}" for problem, names in lists.items() if len(names) > SHOWN
    ]


# ---- command line ----------------------------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run one step. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    step = parser.add_mutually_exclusive_group(required=True)
    step.add_argument("--build", type=Path, metavar="PART")
    step.add_argument("--join", type=Path, nargs="+", metavar="PART")
    step.add_argument("--check", action="store_true")
    parser.add_argument("--what", nargs="+", choices=(CHOSEN, SAMPLED), default=(CHOSEN,))
    parser.add_argument("--missing", action="store_true", help="build only what the table does not have")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--file", type=Path, default=TABLE, help=f"the table (default {TABLE.name})")
    args = parser.parse_args(arguments)
    try:
        if args.build:
            print(
                f"{build_all(args.build, args.what, args.workers, args.file if args.missing else None)} rows",
                file=sys.stderr,
            )
            return 0
        if args.join:
            print(f"{join(args.join, args.file)} rows", file=sys.stderr)
            return 0
        found = violations(load(args.file)[1], offered(args.what))
    except SubbyteError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
