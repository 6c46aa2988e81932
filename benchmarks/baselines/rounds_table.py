"""Print tables of a record of ``rounds``: times and ratios with their 95 % intervals, alone and in a chain.

python benchmarks/baselines rounds-table [RECORD]    print them (default: the newest results/baselines/rounds-*.json)

Shares refer to the peak that the record names. Where the fastest plan of a baseline that was asked for is absent, no
one is said to be ahead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines.short_names import short
from benchmarks.shared.command import RESULTS, answering, parser_of
from benchmarks.shared.documents import markdown
from subbyte.errors import InvalidInput

FOLDER = RESULTS / "baselines"
PATTERN = "rounds-*.json"
STAGES = ("resnet50.stage2@", "resnet50.stage3@", "resnet50.stage4@", "resnet50.stage5@")
HEAD = ("layer", "us", "TOPS", "of peak", "cold L2 us", "best baseline us", "which", "ratio", "verdict",
        "in a chain us", "baseline's chain us", "ratio in a chain", "plans tried of offered")  # fmt: skip


@answering
def main(arguments: Sequence[str]) -> int:
    parser = parser_of("baselines rounds-table", __doc__)
    parser.add_argument("record", type=Path, nargs="?")
    args = parser.parse_args(arguments)
    path = args.record or newest(FOLDER)
    print(tables(path) if path else "Nothing has been recorded yet.")
    return 0


def newest(folder: Path) -> Path | None:
    """The record of a folder that comes last by its name; None of a folder without."""
    return max(folder.glob(PATTERN), default=None)


def tables(path: Path) -> str:
    """The provenance and the table of a record as Markdown. Raises InvalidInput for a file of something else."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return "\n\n".join(part for part in (provenance(record, path.name), table(record), notes(record)) if part)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: no record of `benchmarks/baselines rounds` ({error!r})") from None


def table(record: dict[str, Any]) -> str:
    """One line for each layer that has results."""
    cells = {cell["workload"]: cell for cell in record["cells"]}
    rows = [row(cells[one["workload"]], one, record) for one in record["results"] if "hot" in one["ours"]]
    return markdown("Microseconds, with 95 % intervals.", HEAD, rows) if rows else ""


def stages(path: Path) -> str:
    """The four 3x3 stages of ResNet-50 alone, for the README of the project. Raises InvalidInput as :func:`tables`."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        cells = {cell["workload"]: cell for cell in record["cells"]}
        found = sorted((one for one in record["results"] if one["workload"].startswith(STAGES)), key=stage_order)
        rows = [stage_row(cells[one["workload"]], one, record) for one in found if "hot" in one["ours"]]
        peak = f"of {record['peak']['tops']:,.0f} TOPS"
        verdicts = Counter(one["verdict"] for one in record["results"])
        title = (
            f"The 3x3 stages of ResNet-50 on one {record['gpu']['name']}, in microseconds with 95 % intervals. Ours is "
            "the kernel that `subbyte.compile` takes; the baseline is the fastest plan that our searches of cuDNN "
            "(fp16, bf16, fp8, int8) and of CUTLASS's int8 convolutions found. Sides sampled in turns, two runs, "
            "CUDA-graph replay, tensors in the L2 where they fit, random data, every output compared with the exact "
            f"one. Of the {len(record['results'])} layers measured this way, ours is ahead in {verdicts['ahead']} and "
            f"behind in {verdicts['behind']}."
        )
        head = ("layer", "us", "TOPS", peak, "us in a chain", "best baseline us", "which", "ratio", "verdict")
        name = path.name
        more = (
            "All layers, cold times, how many plans were tried, and what the epilogues do: [baselines](benchmarks/"
            f"baselines/README.md); raw record: [`{name}`](benchmarks/results/baselines/{name})."
        )
        return markdown(title, head, rows) + "\n\n" + more
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path}: no record of `benchmarks/baselines rounds` ({error!r})") from None


def stage_order(one: dict[str, Any]) -> tuple[int, str]:
    """By batch, then by stage."""
    name, _, batch = one["workload"].partition("@")
    return int(batch), name


def stage_row(cell: dict[str, Any], one: dict[str, Any], record: dict[str, Any]) -> tuple[str, ...]:
    """A stage's cells of the README's table."""
    layer, us, tops, peak, _, best, which, ratio, verdict, chain, *_ = row(cell, one, record)
    return layer, us, tops, peak, chain, best, which, ratio, verdict


def row(cell: dict[str, Any], one: dict[str, Any], record: dict[str, Any]) -> tuple[str, ...]:
    """A layer's cells of the table."""
    own, baselines = one["ours"], {line["name"]: line for line in one["opponents"]}
    best, chained = baselines.get(one["best"], {}), baselines.get(one["best_chain"], {})
    tops = cell["operations"] / own["hot"]["value"] / 1e6
    peak = f"{100 * tops / record['peak']['tops']:.0f} %" if record.get("peak") else "-"
    return (
        cell["workload"] + apart(one), with_interval(own.get("hot")), f"{tops:,.0f}", peak,
        with_interval(own.get("cold")), with_interval(best.get("hot")), short(best["side"]) if best else "-",
        between(best.get("ratio_hot")), one["verdict"], with_interval(own.get("chain")),
        with_interval(chained.get("chain")), between(chained.get("ratio_chain")), tried(cell, best),
    )  # fmt: skip


def apart(one: dict[str, Any]) -> str:
    """What is said of a layer of which no two runs agree."""
    return "" if one["agree"] else " (runs differ)"


def with_interval(value: dict[str, Any] | None) -> str:
    """``3.49 ± 0.02``: half of the interval; only the value where there was one run."""
    if value is None:
        return "-"
    half = "" if value["low"] is None else f" ± {(value['high'] - value['low']) / 2:.2f}"
    return f"{value['value']:.2f}{half}"


def between(value: dict[str, Any] | None) -> str:
    """``1.83 (1.80 to 1.86)``."""
    if value is None:
        return "-"
    bounds = "" if value["low"] is None else f" ({value['low']:.2f} to {value['high']:.2f})"
    return f"{value['value']:.2f}{bounds}"


def tried(cell: dict[str, Any], best: dict[str, Any]) -> str:
    """How many plans the search of the best baseline tried, of how many that are offered, and what it cut off."""
    if not best:
        return "-"
    line = next(one for one in cell["asked"] if one["side"] == best["side"])
    about = next(side for run in cell["runs"] for side in run["sides"] if side["name"] == best["name"])
    counts = line["counts"] or {"tried": line["searched_plans"], "distinct": about["counts"]["distinct"]}
    cut = counts.get("cut")
    return f"{counts['tried']} of {counts['distinct']}" + (f", {cut} cut off" if cut else "")


def provenance(record: dict[str, Any], name: str) -> str:
    """What was measured, on what, how."""
    gpu, how = record["gpu"], record["protocol"]
    runs = [run for cell in record["cells"] for run in cell["runs"]]
    clocks = sorted({mhz for run in runs for mhz in run["clocks"].get("sm_mhz", []) if mhz is not None})
    clock = f"{clocks[0]} to {clocks[-1]} MHz" if clocks else "unknown"
    software = ", ".join(f"{key} {value}" for key, value in sorted(record["versions"].items()))
    third = sum(len(cell["runs"]) > 2 for cell in record["cells"])
    peak = record.get("peak")
    differ = f"{100 * record['tolerance']:g} %"
    text = (
        f"{gpu['name']}, driver {gpu['driver_version'] or 'unknown'}, SM clock {clock}, {runs[0]['date'][:10]}; "
        f"{software}. Every side sampled once in each of {how['rounds']} rounds in an order drawn anew, CUDA-graph "
        f"replay, two runs in processes of their own ({third} layers: three, because two differed by more than "
        f"{differ}). Ours is the kernel that `subbyte.compile` takes; beside it the plans that the searches found "
        "fastest of two baselines; every answer compared with the exact one. *Cold*: the L2 overwritten before every "
        "launch. *In a chain*: one of four such layers; ours a true chain whose launches overlap where the kernel can, "
        "the baselines' back to back, because their APIs have no programmatic launch. *Ratio*: baseline over ours, "
        "round by round; *ahead* and *behind* only where the interval excludes 1. *Plans*: tried by the search, of "
        "those that the library offers (each name once)."
    )
    against = f" Peak: {peak['tops']:,.0f} TOPS ({peak['atom']})." if peak else ""
    return f"{text}{against} Raw record: [`{name}`](../results/baselines/{name})."


def notes(record: dict[str, Any]) -> str:
    """What is absent, and which baselines' tensors do not fit the L2 where ours do."""
    lines = [f"Absent: {one['workload']}, {line['side']}, {line['plan']}: {line['reason'][:120]}."
             for one in record["results"] for line in one["absent"]]  # fmt: skip
    for cell in record["cells"]:
        larger = sorted({short(side["side"]) for run in cell["runs"] for side in run["sides"] if not side["fits_l2"]})
        if larger:
            lines.append(f"Larger than the L2, so never hot: {cell['workload']}, {', '.join(larger)}.")
    return "\n".join(lines)


def lines_of(record: dict[str, Any]) -> list[str]:
    """The results as lines of text."""
    found = []
    for one in record["results"]:
        best = one["opponents"][0] if one["opponents"] else {}
        found.append(
            f"{one['workload']:32} {with_interval(one['ours'].get('hot'))} us, chain "
            f"{with_interval(one['ours'].get('chain'))}; best {with_interval(best.get('hot'))} "
            f"{short(best.get('side', 'none'))}, x{between(best.get('ratio_hot'))} {one['verdict']}"
            f"{apart(one)}"
        )
    return found
