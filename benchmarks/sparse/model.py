"""Write the tables of the cycle model in notes/sparse.md from the newest record of `subbyte sparse figures --out`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.command import FOLDER, RESULTS, answering, parser_of
from benchmarks.shared.documents import markdown, update
from subbyte.errors import InvalidInput
from subbyte.sparse import Experiment, Figures, read_figures

MARKERS = ("<!-- model:start -->", "<!-- model:end -->")


def newest(folder: Path) -> Path:
    """The newest record of a folder. Raises InvalidInput for none."""
    found = sorted(folder.glob("figures-*.json"))
    if not found:
        raise InvalidInput(f"{folder}: no figures-*.json; `subbyte sparse figures --out FILE` makes one")
    return found[-1]


def tables(path: Path) -> str:
    """All tables of a record, Markdown."""
    found = read_figures(path)
    named = {one.name: one for one in found.experiments}
    parts = [
        f"From `results/sparse/{path.name}`, all of it the model's; - says that no number is published.",
        numbers(found),
        figure_21(named["F1"]), networks(named["F5"]), crossovers(named["F7"]), quoted(named["F8"]),
    ]  # fmt: skip
    return "\n\n".join(parts)


def numbers(found: Figures) -> str:
    """What each experiment comes out with, the published number beside it."""
    rows = [
        (one.name, name.replace("_", " "), _shown(value), _shown(one.published.get(name)))
        for one in found.experiments
        for name, value in one.values.items()
        if one.name not in ("F5", "F7")
    ]
    return markdown("Numbers, the published one beside ours:", ("experiment", "number", "here", "published"), rows, 2)


def figure_21(one: Experiment) -> str:
    """Time relative to dense by the densities of A and B."""
    rows = [tuple(_shown(cell) for cell in row) for row in one.rows]
    return markdown("F1, Figure 21: time relative to dense.", one.columns, rows, 0)


def networks(one: Experiment) -> str:
    """Whole networks."""
    rows = [
        (row[0], row[2], *(f"{cell:.2f}" for cell in row[3:])) for row in one.rows if row[1] == "all"
    ]  # fmt: skip
    heads = (one.columns[0], *one.columns[2:])
    about = one.about.partition("; ")[2]
    return markdown(f"F5, whole networks (each layer is in the record): {about}.", heads, rows, 2)


def crossovers(one: Experiment) -> str:
    """Densities of the weights at which the unit passes 2:4 and vector-wise pruning."""
    rows = [tuple(_shown(cell) for cell in row) for row in one.rows]
    return markdown(f"F7, {one.about}:", one.columns, rows, 0)


def quoted(one: Experiment) -> str:
    """What others published and nothing here computes."""
    rows = [(str(what), str(number)) for what, number in one.rows]
    return markdown(f"F8, {one.about}:", one.columns, rows, 2)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.3f}"
    return "-" if value is None else str(value)


@answering
def main(arguments: Sequence[str]) -> int:
    """Write or compare them."""
    parser = parser_of("sparse model", __doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--note", type=Path, default=FOLDER / "notes" / "sparse.md", help="where they stand")
    parser.add_argument("--results", type=Path, default=RESULTS / "sparse", help="folder of the records")
    args = parser.parse_args(arguments)
    return update(args.note, lambda: tables(newest(args.results)), MARKERS, args.check)
