"""The tables of the judging race: every number is computed from the records in ``results/races`` alone, those of
others' kernels from its folder ``foreign``; ``notes/searching.md`` says which landscapes count and what was fixed
before."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from subbyte.analysis import Comparison, LandscapeFacts, Race, Standing
from subbyte.records.foreign import FOREIGN

SEEN = {("resnet50.stage2@8", "paper"), ("resnet50.stage3@8", "paper"), ("resnet50.stage2@8", "extended")}
"""Landscapes that were looked at during development; they are reported and not counted."""
SEEN_OF_OTHERS = {"convolution_milo-a100", "convolution_milo-a4000", "convolution_milo-mi250x"}
MARKS = (25, 50, 100, 200)
DEFAULT, PLAIN = "auto", "auto:prior=off"
"""The default search, and the same without what it knows of a plan's cycles."""
BASELINES = ("random", "autotvm", "kernel_tuner:genetic_algorithm", "kernel_tuner:simulated_annealing",
             "kernel_tuner:pso", "kernel_tuner:adaptive_tabu_greywolf", "optuna:tpe")  # fmt: skip
CONTROLS = ("diverse:scope=parent:measure=random", "diverse:measure=score", "autotvm:filter=3")


def tables(folder: Path) -> str:
    """All tables, or one line when there is no record."""
    own, foreign = (_races(where) for where in (folder, folder / "foreign"))
    if own is None:
        return "No race has been recorded yet: `python benchmarks/paper race`."
    parts = [provenance(own, "results/races/"), default_table(own, DEFAULT)]
    if PLAIN in own.participants:
        parts.append(default_table(own, PLAIN))
    if foreign is not None:
        parts += [provenance(foreign, "results/races/foreign/"), default_table(foreign, DEFAULT)]
    parts += [claim_table(own), standings_table(own)]
    return "\n\n".join(parts + ([standings_table(foreign)] if foreign is not None else []))


def _races(folder: Path) -> Race | None:
    """The races in a folder as one; None where there is none."""
    files = sorted(folder.glob("*.json.gz"))
    return Race.join([Race.load(file) for file in files]) if files else None


def judged(race: Race, kind: str | None = None) -> list[LandscapeFacts]:
    """The landscapes that count, of one kind of space."""
    return [f for f in race.landscapes if (f.workload, f.kind) not in SEEN and kind in (None, f.kind)]


def provenance(race: Race, where: str) -> str:
    """What ran where, with which versions."""
    software = ", ".join(f"{name} {version}" for name, version in sorted(race.versions.items()))
    seeds = max(standing.runs for standing in race.standings)
    return (
        f"{len(race.landscapes)} landscapes, {len(race.participants)} participants, at most {seeds} seeds, "
        f"{race.trials} trials, {race.created[:10]}; {software}. Records: `{where}`, made by "
        "`python benchmarks/paper race`."
    )


def default_table(race: Race, search: str) -> str:
    """A search against each baseline, by the fraction of the optimum at given trials."""
    without = " It starts without the estimate of a plan's cycles." if search == PLAIN else ""
    text = (
        f"`{search}`: its fraction of the optimum after the given number of trials, then the difference "
        "from others,\nrelative to theirs, paired by seed, with 95 % intervals. "
        "**Beaten**: the interval lies above 0; *ahead*: it lies\n"
        f"below; (seen): used in development.{without}"
    )
    baselines = [other for other in BASELINES if other in race.participants]
    heads = ("landscape", "trials", f"`{search}`", *baselines)
    lines = [text, "", _line(*heads), "| --- | ---: | ---: |" + " --- |" * len(baselines)]
    for facts in race.landscapes:
        for mark in MARKS:
            own = f"{race.fractions(facts.name, search)[:, mark - 1].mean():.3f}"
            cells = [_beaten(race.duel(search, other, [facts.name], at=mark)) for other in baselines]
            lines.append(_line(_where(facts), str(mark), own, *cells))
    for kind in dict.fromkeys(facts.kind for facts in race.landscapes if facts.kind != FOREIGN):
        names = [facts.name for facts in judged(race, kind)]
        for mark in MARKS if len(names) > 1 else ():
            own = f"{np.mean([race.fractions(name, search)[:, mark - 1].mean() for name in names]):.3f}"
            cells = [_beaten(race.duel(search, other, names, at=mark)) for other in baselines]
            lines.append(_line(f"{len(names)} judged of the {kind} space", str(mark), own, *cells))
    return "\n".join(lines)


def claim_table(race: Race) -> str:
    """The paper's claim and its controls."""
    names = [facts.name for facts in judged(race)]
    main_one = race.duel("diverse", "autotvm", names, "the judged set")
    lines = [
        f"The paper's claim, as fixed in advance: {main_one.verdict}.",
        "",
        "Area under the best-so-far curve against `autotvm`, paired by seed:",
        "",
        "| against `autotvm` | landscapes | difference | 95 % interval | verdict |",
        "| --- | --- | ---: | --- | --- |",
    ]
    for facts in race.landscapes:
        made = race.duel("diverse", "autotvm", [facts.name])
        lines.append(_claim("diverse", _where(facts), made))
    lines.append(_claim("diverse", f"{len(names)} judged together", main_one))
    for control in CONTROLS:
        made = race.duel(control, "autotvm", names, pairs=len(CONTROLS))
        lines.append(_claim(f"`{control}`", f"{len(names)} judged together", made))
    return "\n".join(lines)


def standings_table(race: Race) -> str:
    """Every participant on every landscape."""
    marks = list(race.standings[0].fractions)
    heads = ["landscape", "participant", "area (se)", *(f"@{mark}" for mark in marks), "to 90 %", "to 95 %", "to 99 %",
             "distinct", "ranks next", "recall next", "ranks held out", "recall held out"]  # fmt: skip
    text = (
        "@t: mean fraction of the optimum after t trials; to p %: median trials, and share of runs that reach it;\n"
        "distinct: share of knobs in which two of 32 differ; ranks: correlation (Spearman) of the model with what\n"
        "was measured next, recall: share of the ten fastest of that among its ten best (meaningless for `auto`, "
        "which is\nfitted after every eight); both also on 256 held-out configurations (recall: of the fastest tenth)."
    )
    lines = [text, "", _line(*heads), "| --- | --- |" + " ---: |" * (len(heads) - 2)]
    return "\n".join([*lines, *(_standing(race, standing) for standing in race.standings)])


def _standing(race: Race, s: Standing) -> str:
    facts = next(facts for facts in race.landscapes if facts.name == s.landscape)
    reach = [f"{'>' + str(race.trials) if r.median is None else f'{r.median:.0f}'} ({100 * r.share:.0f} %)"
             for r in s.reach]  # fmt: skip
    numbers = [f"{value:.3f}" for value in s.fractions.values()]
    models = ["-" if value is None else f"{value:.2f}"
              for value in (s.hamming, s.spearman, s.recall, s.holdout, s.found)]  # fmt: skip
    cells = [
        _where(facts, marked=False),
        f"`{s.participant}`",
        f"{s.area:.4f} ({s.area_error:.4f})",
        *numbers,
        *reach,
        *models,
    ]
    return _line(*cells)


def _where(facts: LandscapeFacts, marked: bool = True) -> str:
    """A landscape in a table: its layer and space, or the kernel and device of others; ``marked`` if it was seen."""
    what = facts.name if facts.kind == FOREIGN else f"{facts.workload}, {facts.kind}"
    seen = (facts.workload, facts.kind) in SEEN or facts.name in SEEN_OF_OTHERS
    return f"{what} (seen)" if marked and seen else what


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _beaten(made: Comparison) -> str:
    assert made.interval is not None
    text = f"{_percent(made.difference)} ({_percent(made.interval.low)} to {_percent(made.interval.high)})"
    return f"**{text}**" if made.interval.low > 0 else f"*{text}*" if made.interval.high < 0 else text


def _claim(name: str, where: str, made: Comparison) -> str:
    assert made.interval is not None
    interval = f"{_percent(made.interval.low)} to {_percent(made.interval.high)}"
    return _line(name, where, _percent(made.difference), interval, made.outcome)


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"
