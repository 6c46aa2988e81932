"""Numbers in the README and in the prose of notebooks hold: each with a unit is printed by its notebook or comes from a
record. A changed digit is refused.

What cells print is compared elsewhere with what they print when they run (``test_notebooks.py``), and tables are
written from their records (``test_documents.py``). Here are the sentences around them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import subbyte
from subbyte import analysis
from subbyte.sparse.networks import DEFAULTS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
UNIT = (
    r"us\b|µs|microseconds?\b|TOPS\b|%(?! \d)|percent\b|images/s|"
    r"times (?:as|faster|slower|larger|fewer|more|the|dense)\b"
)
WITH_UNIT = re.compile(rf"(?<![\w.,-])({NUMBER})((?: (?:to|and|or) [+-]?{NUMBER})*)\s({UNIT})")
TRIES = "warpgroup/tries-third-h100-2026-11-27.json"
GENERATED = re.compile(r"<!-- benchmark:start.*?benchmark:end -->", re.DOTALL)
TAG = re.compile(r"<[^>]*>")


@cache
def record(name: str) -> Any:
    """A record under benchmarks/results."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def paper_speedups() -> str:
    ratios = [row.paper["baseline"] / row.paper["searched"] for row in analysis.read_table_one(RESULTS).rows]
    return f"{min(ratios):.2f} to {max(ratios):.2f} times as fast"


def judged(margin: str) -> str:
    """The interval of ``diverse`` against ``autotvm`` over the judged landscapes, as notebook 06 prints it."""
    names = ["stage4@8.paper", "stage5@8.paper", "stage5@8.extended", "stage2@32.paper", "stage4@32.paper"]
    files = [RESULTS / f"races/resnet50.{name}.sm_90a.json.gz" for name in names]
    races = analysis.Race.join([analysis.Race.load(file) for file in files])
    duel = races.duel("diverse", "autotvm", [one.name for one in races.landscapes], "the judged set")
    low, high = 100 * duel.interval.low, 100 * duel.interval.high
    return margin.format(difference=100 * duel.difference, low=low, high=high)


def tries() -> str:
    one = next(one for one in record(TRIES)["layers"] if one["layer"].endswith("@40"))
    found = re.search(rf"\(({NUMBER}) us on .*first choice before measuring: ({NUMBER}) us", one["reason"])
    assert found
    return (
        f"needed {one['seconds']:.1f} s for the sixteen most promising kernels. The winner took {found[1]} "
        f"us, the first choice {found[2]}"
    )


def lowering(kernel: str, sparsity: Iterable[float] | None = None) -> list[float]:
    """Times of a sparse lowering over those of the dense one, of all layers and the shares of zeros that are named."""
    rows = record("sparse/im2col-h200-2026-11-23.json")["rows"]
    dense = {(row["cell"], row["sparsity"]): row["microseconds"] for row in rows if row["kernel"] == "dense"}
    return sorted(
        row["microseconds"] / dense[row["cell"], row["sparsity"]]
        for row in rows
        if row["kernel"] == kernel and (sparsity is None or row["sparsity"] in sparsity)
    )


def assumed() -> str:
    """The densities that the simulated networks are given where the paper has no numbers."""
    activations, weights = DEFAULTS["convolutional"]
    return f"(activations {100 * activations:.0f} %, weights {100 * weights:.0f} %;"


def beyond_the_lists(name: str = "further-h100-2026-11-27") -> dict[str, tuple[float, float]]:
    """Of each layer our time, and the fastest int8 kernel of cuDNN that was listed or built with knobs of its own."""
    return {
        one["workload"].removeprefix("resnet50."): (
            one["ours"]["hot"]["value"],
            min(side["hot"]["value"] for side in one["opponents"] if "NC/32HW32" not in side["name"]),
        )
        for one in record(f"baselines/{name}.json")["results"]
    }


def best_kernels() -> str:
    best = {layer: f"{them:.2f}" for layer, (_, them) in beyond_the_lists().items()}
    stage2, stage3, stage5 = [best[f"stage2@{n}"] for n in (8, 64, 256)], best["stage3@8"], best["stage5@8"]
    return (
        f"{stage2[0]}, {stage2[1]} and {stage2[2]} us in stage 2 at batch 8, 64 and 256, "
        f"{stage3} us in stage 3 and {stage5} us in stage 5"
    )


def ahead_of_best_kernels() -> str:
    ratios = sorted(them / ours for ours, them in beyond_the_lists().values())
    assert len(ratios) == 11
    return f"{ratios[0]:.2f} to {ratios[-1]:.2f} times as fast as the best of them in all eleven"


def best_kernel_of_stage4() -> str:
    ((_, (ours, them)),) = beyond_the_lists("further-stage4-h200-2026-11-27").items()
    return f"their best takes {them:.2f} us, ours {ours:.2f}"


CLAIMS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README": {
        "their best takes 4.81 us, ours 3.77": best_kernel_of_stage4,
        (
            "5.63, 22.43 and 85.18 us in stage 2 at batch 8, 64 and 256, 3.87 us in stage 3 and 7.27 us in stage 5"
        ): best_kernels,
        "1.03 to 2.17 times as fast as the best of them in all eleven": ahead_of_best_kernels,
    },
    "05_search": {
        "+0.07 % for `diverse` (95 % interval -0.21 to +0.45 %)": lambda: judged(
            "{difference:+.2f} % for `diverse` (95 % interval {low:+.2f} to {high:+.2f} %)"
        )
    },
    "06_results": {
        "2.80 to 3.85 times as fast": paper_speedups,
        "3.3 times as many multiprocessors (132 against 40)": lambda: (
            f"{record(TRIES)['gpu']['sms'] / 40:.1f} times as many multiprocessors (132 against 40)"
        ),
    },
    "08_on_your_gpu": {
        (
            "needed 10.1 s for the sixteen most promising kernels. The winner took 9.21 us, the first choice 10.43"
        ): tries,
        "fills the GPU by 38 %": lambda: f"fills the GPU by {100 * (1568 / 660 % 1):.0f} %",
        "takes 4.53 us": lambda: f"takes {subbyte.landscape('resnet50.stage2@8').best[1].microseconds:.2f} us",
    },
    "13_dual_side_sparse": {
        "50 of 128 instructions are left, 2.56 times fewer": lambda: (
            f"50 of 128 instructions are left, {128 / 50:.2f} times fewer"
        ),
        "(activations 45 %, weights 20 %;": assumed,
    },
    "14_sparsity_today": {
        "1.15 to 1.34 times as long as dense": lambda: span(lowering("bitmap"), 2) + " times as long as dense",
        "2.4 to 12.8 times as long": lambda: span(lowering("csr_warp"), 1) + " times as long",
        "29.6 times as long without zeros": lambda: (
            f"{lowering('csr_thread', [0.0])[-1]:.1f} times as long without zeros"
        ),
        "only at 99 % zeros (0.49 to 0.81 of its time)": lambda: (
            f"only at 99 % zeros ({span(lowering('csr_thread', [0.99]), 2)} of its time)"
        ),
    },
}
"""Sentences with numbers that their notebook does not print: the words, and what makes them from a record."""


def span(values: list[float], digits: int) -> str:
    return f"{values[0]:.{digits}f} to {values[-1]:.{digits}f}"


def shown(notebook: dict[str, Any]) -> set[str]:
    """The numbers that the cells of a notebook show as text."""
    texts = []
    for cell in notebook["cells"]:
        for one in cell.get("outputs", ()):
            data = one.get("data", {})
            texts += ["".join(one.get("text", "")), "".join(data.get("text/plain", ""))]
            for kind in ("text/html", "image/svg+xml"):
                texts.append(html.unescape(TAG.sub(" ", "".join(data.get(kind, "")))))
    return set(re.findall(NUMBER, " ".join(texts)))


def unsupported(text: str, numbers: set[str], claims: Iterable[str]) -> list[str]:
    """What of a text has a number with a unit that is neither among ``numbers`` nor inside one of the ``claims``."""
    flat = " ".join(text.split())
    covered = [found.span() for claim in claims for found in re.finditer(re.escape(claim), flat)]
    missing = []
    for found in WITH_UNIT.finditer(flat):
        values = [found[1], *re.findall(NUMBER, found[2])]
        inside = any(low <= found.start() and found.end() <= high for low, high in covered)
        if not inside and not set(values) <= numbers:
            missing.append(flat[max(0, found.start() - 60) : found.end() + 20])
    return missing


def prose(notebook: dict[str, Any]) -> str:
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_numbers_in_notebooks_are_printed_there_or_come_from_a_record() -> None:
    wrong = {}
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        wrong[path.stem] = unsupported(prose(notebook), shown(notebook), CLAIMS.get(path.stem, ()))
    assert not {name: sentences for name, sentences in wrong.items() if sentences}


def readme() -> str:
    """The README without its generated table."""
    return GENERATED.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_numbers_in_the_readme_stand_in_its_generated_table_or_come_from_a_record() -> None:
    assert not unsupported(readme(), set(), CLAIMS["README"])


@pytest.mark.parametrize(("document", "words"), [(name, one) for name, claims in CLAIMS.items() for one in claims])
def test_a_claim_is_what_its_record_says(document: str, words: str) -> None:
    assert CLAIMS[document][words]() == words
    texts = {path.stem: path for path in NOTEBOOKS}
    text = readme() if document == "README" else prose(json.loads(texts[document].read_text(encoding="utf-8")))
    text = " ".join(text.split())
    assert words in text, "the sentence is gone or has another number: mend it, or take its claim away"


@pytest.mark.parametrize("changed", ["3.48 us", "1.84 times as long"])
def test_a_changed_digit_is_refused(changed: str) -> None:
    text, claim = "Ours takes 3.49 us, cuDNN 1.83 times as long; 45 % 32 is 13.", "1.83 times as long"
    assert unsupported(text, {"3.49"}, [claim]) == []
    value, unit = changed.split(" ", 1)
    other = re.sub(rf"{NUMBER} {unit}", changed, text, count=1)
    (sentence,) = unsupported(other, {"3.49"}, [claim])
    assert value in sentence


def test_each_number_of_a_range_counts_and_tags_do_not() -> None:
    assert unsupported("from 2 to 3.5 us", {"2"}, []) == ["from 2 to 3.5 us"]
    notebook = {"cells": [{"outputs": [{"data": {"text/html": "<td style='width:7px'>1,945</td>"}}]}]}
    assert shown(notebook) == {"1,945"}
