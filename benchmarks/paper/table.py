"""Write the tables of benchmarks/paper/README.md from the landscapes and the raw records.

python benchmarks/paper table            rewrite the tables between the markers
python benchmarks/paper table --check    change nothing; exit 1 when one of them is stale
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.paper.race_table import tables as race_tables
from benchmarks.shared.command import FOLDER, RESULTS, answering, parser_of
from benchmarks.shared.documents import markdown, update
from subbyte.analysis import (
    Ablation,
    Mechanism,
    Retuned,
    TableOne,
    UnpackingControl,
    ablation,
    read_mechanism,
    read_retuned,
    read_table_one,
    read_unpacking,
)
from subbyte.analysis.contributions import ALL_OFF, ALL_ON, name_of
from subbyte.errors import InvalidInput
from subbyte.records.result import Measured
from subbyte.records.table import in_tops
from subbyte.tune import Landscape, shipped

LANDSCAPES = "<!-- landscapes:start -->", "<!-- landscapes:end -->"
RACE = "<!-- race:start -->", "<!-- race:end -->"
EVIDENCE = "<!-- evidence:start -->", "<!-- evidence:end -->"
CLOSE = 1.05
"""How far from the optimum a configuration still counts as close to it."""


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("paper table", __doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--readme", type=Path, default=FOLDER / "paper" / "README.md", help="where the tables stand")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the records")
    args = parser.parse_args(arguments)
    return max(
        update(args.readme, landscapes, LANDSCAPES, args.check),
        update(args.readme, lambda: evidence(args.results), EVIDENCE, args.check),
        update(args.readme, lambda: race_tables(args.results / "races"), RACE, args.check),
    )


def landscapes() -> str:
    """The shipped landscapes as Markdown: size, optimum, quartiles, how many are close to the optimum."""
    lines = [
        "| landscape | configurations | programs | optimum us | TOPS | quartiles us | within 5 % of optimum |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*lines, *(landscape_line(Landscape.load(path)) for path in shipped().values())])


def landscape_line(one: Landscape) -> str:
    """One landscape's row."""
    times = [result.microseconds for result in one.results.values() if isinstance(result, Measured)]
    best, tops = min(times), in_tops(one.workload, min(times))
    programs = sum(isinstance(result, Measured) and index not in one.same for index, result in one.results.items())
    close = sum(time <= CLOSE * best for time in times)
    quartiles = ", ".join(f"{time:.2f}" for time in statistics.quantiles(times, n=4, method="inclusive"))
    share = f"{close} ({100 * close / len(times):.1f} %)"
    cells = (one.name, f"{len(one):,}", f"{programs:,}", f"{best:.2f}", f"{tops:.0f}", quartiles, share)
    return "| " + " | ".join(cells) + " |"


def evidence(folder: Path) -> str:
    """The tables behind Table 1 and Figures 15 and 16 of the paper, as far as their records are there."""
    stages = range(2, 6)

    def read(name: str, reader: Callable[[Path], Any]) -> list[Any]:
        files = [folder / name.format(stage) for stage in stages]
        return [reader(file) for file in files if file.is_file()]

    tuned = read("tuned/stage{}-finals.json", read_retuned)
    same = same_schedules(folder / "ablation", [f"stage{stage}" for stage in stages])
    wide = [f"stage{stage}-b{batch}" for batch in (8, 256) for stage in stages]
    parts = [
        table_one(read_table_one(folder)) if tuned else "",
        contributions([*same, *tuned]) if same or tuned else "",
        warpgroup(same_schedules(folder / "warpgroup" / "ablation", wide)),
        unpacking(read("unpacking/stage{}.json.gz", read_unpacking)),
        mechanism(read("mechanism/stage{}.json", read_mechanism)),
    ]
    return "\n\n".join(part for part in parts if part) or "Nothing has been recorded yet."


def same_schedules(folder: Path, names: Iterable[str]) -> list[Ablation]:
    """The ablations under these names (of a stage, or of a stage and batch), where enough schedules were measured."""
    groups = [sorted(folder.glob(f"{name}-*.json.gz")) for name in names]
    found = []
    for files in filter(None, groups):
        with suppress(InvalidInput):
            found.append(ablation(Landscape.load(file) for file in files))
    return found


def table_one(record: TableOne) -> str:
    """The paper's Table 1 on this GPU, with the paper's own numbers behind it."""

    def number(value: float | None, digits: int = 2) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    rows = [
        (
            str(row.stage), number(row.hwnc_s4, 1), number(row.hwnc_s8), number(row.all_off), number(row.exhaustive),
            number(row.searched), *(number(row.speed_up(name)) for name in ("hwnc_s8", "all_off")),
            *(number(row.paper[name]) for name in ("baseline", "exhaustive", "searched")), number(row.paper_speed_up),
        )
        for row in record.rows
    ]  # fmt: skip
    head = (
        "stage", "TVM HWNC s4", "TVM HWNC s8", "all off", "exhaustive", "searched", "over HWNC s8", "over all off",
        "T4 baseline", "T4 exhaustive", "T4 searched", "T4 speed-up",
    )  # fmt: skip
    fewest = [trials for row in record.rows for trials in row.hwnc_trials.values()]
    theirs = f" (TVM's schedule: {min(fewest)} to {max(fewest)})" if fewest and min(fewest) < record.trials else ""
    title = (
        f"**Table 1**: microseconds on {record.device}, every baseline and the search tuned by `{record.strategy}` "
        f"with {record.trials} trials{theirs}; on the right the paper's own times, on a T4."
    )
    return markdown(title, head, rows)


def contributions(records: list[Ablation | Retuned]) -> str:
    """The bars of Figures 15 and 16, on the same schedules and at retuned optima."""
    names = ("duplicate_aware", "register_packing", "layout")
    rows = []
    for one in records:
        how = f"{one.schedules} same schedules" if isinstance(one, Ablation) else "retuned"
        parts = [one.accumulated[name] for name in one.order] + [one.marginal[name] for name in names]
        parts += [one.shapley[name] for name in names] + [one.sharing[name] for name in ("shared", "full")]
        rows.append((one.workload, how, *(f"{factor.speed_up:.2f}" for factor in parts)))
    head = (
        "workload", "how", "+ sharing", "+ packing", "+ layout", "- sharing", "- packing", "- layout", "S sharing",
        "S packing", "S layout", "shared only", "shared and registers",
    )  # fmt: skip
    title = (
        "**Figures 15 and 16**: speed-ups. `+`: added one after the other, in the order sharing, packing, layout; "
        "`-`: lost when one of all three is turned off; `S`: Shapley value (the mean over all orders); "
        "the last two columns: the "
        "ways of sharing against none, packing and layout on. Intervals: `python benchmarks/paper ablation`."
    )
    return markdown(title, head, rows, 2)


def warpgroup(records: list[Ablation]) -> str:
    """The bars of Figures 15 and 16 of the wgmma family, which has one way of sharing."""
    names = ("duplicate_aware", "register_packing", "layout")
    rows = []
    for one in records:
        parts = [*(one.accumulated[name] for name in one.order), *(one.marginal[name] for name in names)]
        shares = (f"{one.shapley[name].speed_up:.2f}" for name in names)
        best = (f"{one.fastest[name_of(switches)]:.2f}" for switches in (ALL_ON, ALL_OFF))
        rows.append((one.workload, str(one.schedules), *best, *map(str, parts), *shares))
    head = (
        "workload", "schedules", "all on, us", "all off, us", "+ sharing", "+ packing", "+ layout", "- sharing",
        "- packing", "- layout", "S sharing", "S packing", "S layout",
    )  # fmt: skip
    title = (
        "**The wgmma family**: the same for kernels on wgmma, with 95 % intervals. `sharing` off: the producer "
        "loads, unpacks and stores the pixels again for every tap. On the left, the fastest kernel of the sample."
    )
    return markdown(title, head, rows) if rows else ""


def unpacking(records: list[UnpackingControl]) -> str:
    """Sharing with packed and with byte activations."""
    rows = [
        (
            one.workload, str(one.schedules),
            *(str(one.sharing[stored][name]) for stored in ("s4", "s8") for name in ("shared", "full over shared")),
            str(one.unpacking),
        )
        for one in records
    ]  # fmt: skip
    head = (
        "workload", "schedules", "s4: shared over none", "s4: full over shared", "s8: shared over none",
        "s8: full over shared", "ratio s4 to s8",
    )  # fmt: skip
    title = (
        "**Loads or unpacking**: what sharing gains with packed activations (`s4`, unpacked in registers) and with "
        "the control that stores bytes (`s8`, nothing to unpack); speed-ups with 95 % intervals."
    )
    return markdown(title, head, rows) if rows else ""


def mechanism(records: list[Mechanism]) -> str:
    """Traffic and time of each stage's fastest schedule while the techniques are added."""
    steps = (("none", False, "nhwc"), ("shared", False, "nhwc"), ("full", False, "nhwc"), ("full", True, "nhwc"),
             ("full", True, "nhwcnc"))  # fmt: skip
    rows = []
    for one in records:
        found = {(r.sharing, r.packing, r.layout): r for r in one.rows if r.schedule == one.rows[0].schedule}
        for key, name in zip(steps, ("all off", "shared memory", "+ registers", "+ packing", "+ layout"), strict=True):
            row = found[key]
            counts = (
                row.sectors_read, row.lines_read, row.sectors_written, row.lines_written, row.shared_bytes_read,
                row.shared_bytes_written, row.stores, row.shuffles,
            )  # fmt: skip
            time = "-" if row.microseconds is None else f"{row.microseconds:.2f}"
            rows.append((one.workload, row.schedule, name, time, *(f"{count / 1000:,.1f}" for count in counts)))
    head = (
        "workload", "schedule", "step", "us", "sectors read", "lines read", "sectors written", "lines written",
        "shared bytes read", "shared bytes written", "stores", "shuffles",
    )  # fmt: skip
    title = (
        "**Mechanism**: per launch, in thousands, counted while the kernels run on the CPU, with the techniques "
        "added one after the other on each stage's fastest schedule of the sample. Sectors are counted for each warp "
        "access alone; "
        "`stores` and `shuffles` are warp instructions."
    )
    return markdown(title, head, rows, 3) if rows else ""
