"""The tables of the judging race: every number is computed from the records in ``results/races`` alone;
``notes/searching.md`` says which landscapes count and what was fixed before."""

from __future__ import annotations

from pathlib import Path

from subbyte.analysis import Comparison, LandscapeFacts, Race, Standing

SEEN = {("resnet50.stage2@8", "paper"), ("resnet50.stage3@8", "paper"), ("resnet50.stage2@8", "extended")}
"""Landscapes that were looked at during development; they are reported and not counted."""
MARKS = {"paper": (25, 50, 100), "extended": (50, 100, 200)}
BASELINES = ("random", "autotvm", "kernel_tuner:genetic_algorithm", "optuna:tpe")
CONTROLS = ("diverse:scope=parent:measure=random", "diverse:measure=score", "autotvm:filter=3")


def tables(folder: Path) -> str:
    """All tables, or one line when there is no record."""
    files = sorted(folder.glob("*.json.gz"))
    if not files:
        return "No race has been recorded yet: `python benchmarks/paper race`."
    race = Race.join([Race.load(file) for file in files])
    return "\n\n".join([provenance(race), default_table(race), claim_table(race), standings_table(race)])


def judged(race: Race, kind: str | None = None) -> list[LandscapeFacts]:
    """The landscapes that count, of one kind of space."""
    return [f for f in race.landscapes if (f.workload, f.kind) not in SEEN and kind in (None, f.kind)]


def provenance(race: Race) -> str:
    """What ran where, with which versions."""
    software = ", ".join(f"{name} {version}" for name, version in sorted(race.versions.items()))
    seeds = max(standing.runs for standing in race.standings)
    return (
        f"{len(race.landscapes)} landscapes, {len(race.participants)} participants, {seeds} seeds, {race.trials} "
        f"trials, {race.created[:10]}; {software}. Records: `results/races/`, made by `python benchmarks/paper race`."
    )


def default_table(race: Race) -> str:
    """The default strategy against each baseline, by the fraction of the optimum at given trials."""
    text = (
        "`auto` against others: difference of the fraction of the optimum after so many trials, as a share of the\n"
        "other's, paired by seed, with 95 % intervals. **Beaten**: the interval lies above 0. (seen): looked at in\n"
        "development."
    )
    lines = [text, "", _line("landscape", "trials", *BASELINES), "| --- | ---: |" + " --- |" * len(BASELINES)]
    for facts in race.landscapes:
        for mark in MARKS[facts.kind]:
            cells = [_beaten(race.duel("auto", other, [facts.name], at=mark)) for other in BASELINES]
            seen = " (seen)" if (facts.workload, facts.kind) in SEEN else ""
            lines.append(_line(f"{facts.workload}, {facts.kind}{seen}", str(mark), *cells))
    for kind, marks in MARKS.items():
        names = [facts.name for facts in judged(race, kind)]
        for mark in marks if len(names) > 1 else ():
            cells = [_beaten(race.duel("auto", other, names, at=mark)) for other in BASELINES]
            lines.append(_line(f"{len(names)} judged of the {kind} space", str(mark), *cells))
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
        seen = " (seen)" if (facts.workload, facts.kind) in SEEN else ""
        made = race.duel("diverse", "autotvm", [facts.name])
        lines.append(_claim("diverse", f"{facts.workload}, {facts.kind}{seen}", made))
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
        "@t: mean fraction of the optimum after t trials; to p %: median trials and share of runs that got there;\n"
        "distinct: share of knobs in which two of 32 differ; ranks: correlation (Spearman) of the model with what\n"
        "was measured next, recall: share of the ten fastest of that among its ten best (`auto` is fitted after every\n"
        "eight: there it says nothing); both also on 256 held-out configurations (recall: of the fastest tenth)."
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
    where = f"{facts.workload}, {facts.kind}"
    cells = [where, f"`{s.participant}`", f"{s.area:.4f} ({s.area_error:.4f})", *numbers, *reach, *models]
    return _line(*cells)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _beaten(made: Comparison) -> str:
    assert made.interval is not None
    text = f"{_percent(made.difference)} ({_percent(made.interval.low)} to {_percent(made.interval.high)})"
    return f"**{text}**" if made.interval.low > 0 else text


def _claim(name: str, where: str, made: Comparison) -> str:
    assert made.interval is not None
    interval = f"{_percent(made.interval.low)} to {_percent(made.interval.high)}"
    return _line(name, where, _percent(made.difference), interval, made.outcome)


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"
