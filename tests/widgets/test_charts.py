"""Charts against their records: every number drawn is the record's, another record gives another chart, files stand
alone."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

import subbyte
from subbyte.analysis import (
    Ablation,
    Race,
    Roofline,
    SideBySide,
    read_plane_times,
    read_retuned,
    read_stride_times,
    read_table_one,
    read_unpacking,
    recorded_ablation,
    side_by_sides,
)
from subbyte.analysis.landscape_view import landscape_map, landscape_points
from subbyte.analysis.mechanism import Mechanism, MechanismRow
from subbyte.analysis.monitoring import study_state
from subbyte.analysis.spread import spread
from subbyte.errors import BrokenRecord, InvalidInput, MissingDependency
from subbyte.measure.replay import ReplayRunner
from subbyte.records.result import Failed, Measured
from subbyte.tune import Landscape
from subbyte_widgets import ChartChoice, plot
from subbyte_widgets.charts import HOME
from subbyte_widgets.charts.style import CONFIG, MIME, Chart, chart, colour, wrapped

LAYER = "resnet50.stage2@8"
H200 = "NVIDIA H200"


@pytest.fixture(scope="module")
def landscape() -> Landscape:
    return subbyte.landscape(LAYER)


@pytest.fixture(scope="module")
def race(landscape: Landscape) -> Race:
    return subbyte.race([landscape, "resnet50.stage5@8"], ["random", "genetic"], trials=30, seeds=6, workers=1)


@pytest.fixture(scope="module")
def ablations() -> list[Ablation]:
    specs = [subbyte.workload(f"resnet50.stage{stage}@8").spec for stage in (2, 5)]
    found = [recorded_ablation(spec, H200) for spec in specs]
    return [one for one in found if one is not None]


def percent(values: Iterable[float]) -> Any:
    return pytest.approx([100 * value for value in values])


def test_the_curves_of_a_race_are_its_medians_and_quartiles(race: Race) -> None:
    chart = race.plot()
    lines = {trace.name: trace for trace in chart.data if trace.mode == "lines"}
    bands = {trace.legendgroup: trace for trace in chart.data if trace.fill == "toself"}
    assert set(lines) == set(race.participants) == set(bands)
    for curve in race.curves:
        if curve.landscape == H200:
            assert list(lines[curve.participant].x) == list(curve.trials)
            assert list(lines[curve.participant].y) == percent(curve.median)
            band = list(bands[curve.participant].y)
            assert band[: len(curve.low)] == percent(curve.low)
            assert band[len(curve.low) :][::-1] == percent(curve.high)
    assert len({trace.line.dash for trace in lines.values()}) == 2, "told apart without colours"
    alone = [trace for trace in race.plot(only=["genetic"]).data if trace.mode == "lines"]
    assert [trace.y for trace in alone] == [lines["genetic"].y]
    pooled = next(line for line in race.verdict.splitlines() if line.startswith(f"{H200},"))
    assert pooled.partition(": ")[2].rstrip(".").lower() == chart.alternative.lower()


def test_fractions_reach_and_differences_are_those_of_the_race(race: Race) -> None:
    name = race.landscapes[0].name
    bars = {trace.name: trace for trace in race.plot(kind="fractions", scope=name).data}
    for curve in race.curves:
        if curve.landscape == name:
            assert list(bars[curve.participant].y) == percent([curve.median[24], curve.median[29]])
            assert bars[curve.participant].error_y.array[1] == pytest.approx(100 * (curve.high[29] - curve.median[29]))
    reach = {trace.name: trace for trace in race.plot(kind="reach", scope=name, target=0.9).data}
    for standing in race.standings:
        if standing.landscape == name:
            found = next(r for r in standing.reach if r.target == 0.9)
            assert list(reach[standing.participant].x) == [30 if found.median is None else found.median]
            assert f"{100 * found.share:.0f} % of runs" in reach[standing.participant].text[0]
    drawn = race.plot(kind="differences").data[0]
    compared = next(c for c in race.comparisons if c.scope == H200)
    assert list(drawn.x) == percent([compared.difference])
    assert compared.interval is not None
    assert drawn.x[0] + drawn.error_x.array[0] == pytest.approx(100 * compared.interval.high)
    assert drawn.x[0] - drawn.error_x.arrayminus[0] == pytest.approx(100 * compared.interval.low)


def test_a_chart_says_its_axes_and_its_values_in_words(ablations: list[Ablation], landscape: Landscape) -> None:
    said = plot(ablations).spoken()
    assert said.startswith("Bar chart. Horizontal axis: + duplicate-aware load, + register packing, + NHWCnc layout. ")
    assert "Vertical axis: times as fast. " in said
    assert "resnet50.stage5@8: + NHWCnc layout: 1.809 (1.686 to 1.942)" in said
    many = side_by_sides()[-1].plot().spoken()
    assert "time (microseconds, logarithmic), hot L2. Vertical axis: 84 names" in many
    assert "subbyte int4: 84 values from 1.8 to 406.5" in many
    axes = landscape.plot(kind="lines").spoken()
    assert axes.startswith("Lines over parallel axes. ")
    assert "axes: blk_row_warps, " in axes


def test_no_two_series_of_a_chart_look_alike() -> None:
    looks = [(trace.marker.color, trace.marker.symbol) for trace in side_by_sides()[-1].plot().data]
    assert len(looks) == len(set(looks)) == 7


def test_a_landscape_is_drawn_whole(landscape: Landscape) -> None:
    record = spread(landscape)
    drawn = landscape.plot()
    times = [r.microseconds for r in landscape.results.values() if isinstance(r, Measured)]
    half = drawn.data[0].width / 0.9 / 2
    assert sum(drawn.data[0].y) == len(times)
    assert sum(drawn.data[0].y[:10]) == sum(time < drawn.data[0].x[9] + half for time in times)
    assert drawn.alternative == record.finding
    assert record.good[0.9] == sum(time <= record.best / 0.9 for time in record.microseconds)
    lines = landscape.plot(kind="lines").data[0]
    points = landscape_points(landscape)
    timed = sorted(((t, p) for p, t in enumerate(points.microseconds) if t is not None), reverse=True)
    assert list(lines.dimensions[-1]["values"]) == [time for time, _ in timed]
    for column, (name, values) in enumerate(points.knobs.items()):
        assert lines.dimensions[column].label == name
        assert list(lines.dimensions[column].ticktext) == [str(value) for value in values]
        places = [round(value) for value in lines.dimensions[column]["values"]]
        assert places == [points.digits[place][column] for _, place in timed]
    found = landscape_map(landscape, "chunk", "warp_row_tiles")
    for statistic in ("best", "median"):
        cells = landscape.plot(kind="map", x="chunk", y="warp_row_tiles", statistic=statistic)
        assert [list(row) for row in cells.data[0].z] == [[getattr(c, statistic) for c in row] for row in found.cells]
    refused = sum(cell.best is None for row in found.cells for cell in row)
    assert [note.text for note in cells.layout.annotations] == ["refused"] * refused


@pytest.mark.parametrize("kind", ["accumulated", "marginal", "shapley", "sharing"])
def test_the_bars_of_ablations_are_their_factors(ablations: list[Ablation], kind: str) -> None:
    chart = plot(ablations, kind=kind)
    assert [trace.name for trace in chart.data] == [one.workload for one in ablations]
    for trace, one in zip(chart.data, ablations, strict=True):
        factors = list(getattr(one, kind).values())
        assert list(trace.y) == [factor.speed_up for factor in factors]
        tops = [value + up for value, up in zip(trace.y, trace.error_y.array, strict=True)]
        assert tops == pytest.approx([factor.high for factor in factors])
    assert ablations[0].plot(kind=kind).data[0].y == chart.data[0].y
    more = replace(ablations[0], **{kind: {"full": replace(next(iter(ablations[0].shapley.values())), speed_up=9.0)}})
    assert list(more.plot(kind=kind).data[0].y) == [9.0] != list(chart.data[0].y)


def test_speed_roofline_and_both_sides() -> None:
    one = subbyte.speed_of_light(LAYER)
    assert one.measured is not None
    times = [*(floor.microseconds for floor in one.floors), one.floor, one.measured.microseconds]
    assert list(one.plot().data[0].x) == [*times, *(side.microseconds for side in one.others)]
    record = subbyte.roofline()
    traces = {trace.name: trace for trace in record.plot().data}
    ours = [point for point in record.points if point.ours]
    assert list(traces["subbyte"].x) == [point.intensity for point in ours]
    assert list(traces["subbyte"].y) == [point.tops for point in ours]
    assert len(traces["others"].x) == len(record.points) - len(ours)
    for atom, tops in record.roofs.items():
        line = traces[f"roof of {atom}: {tops:,.0f} TOPS"]
        assert max(line.y) == tops
        assert all(left <= right for left, right in pairwise(line.y))
    nothing = Roofline(H200, dict(record.roofs), record.copy_terabytes_per_second, ())
    assert not nothing.plot().data[-1].x
    both = side_by_sides()[0]
    for unit in ("microseconds", "tops"):
        for trace in both.plot(unit=unit).data:
            rows = [row for row in both.rows if row.side == trace.name]
            assert list(trace.x) == [getattr(row, unit) for row in rows]
            assert [f"resnet50.{name}" for name in trace.y] == [row.workload for row in rows]
    other = replace(both, rows=tuple(replace(row, microseconds=2 * row.microseconds) for row in both.rows[:7]))
    assert other.plot().alternative != both.plot().alternative


def test_a_study_shows_its_trials_and_what_was_predicted() -> None:
    study = subbyte.Study(subbyte.space(LAYER, "sm_90a"), "autotvm", seed=1)
    record = study.run(ReplayRunner(LAYER), 64)
    state = study_state(study)
    history = {trace.name: trace for trace in study.plot().data}
    assert list(history["trial"].y) == list(state.microseconds)
    assert list(history["best so far"].y) == list(state.best_microseconds)
    predicted = study.plot(kind="predicted").data
    assert sum(len(trace.x) for trace in predicted) == sum(value is not None for value in state.predicted)
    assert list(record.plot().data[1].y) == list(history["best so far"].y)
    assert "no predictions" in record.plot(kind="predicted").alternative
    broken = subbyte.Study(subbyte.space(LAYER, "sm_90a"), "random", seed=1)
    broken.tell(broken.ask(1)[0], Failed("launch", "no"))
    assert "no configuration was measured" in broken.plot().alternative


def test_the_evidence_is_drawn_as_it_is(repository: Path) -> None:
    results = repository / "benchmarks/results"
    table = read_table_one(results)
    drawn = {trace.name: trace for trace in table.plot().data}
    assert list(drawn["over all techniques off"].y) == [row.speed_up("all_off") for row in table.rows]
    assert list(drawn["the paper, T4, over TVM's HWNC schedule, int4"].y) == [row.paper_speed_up for row in table.rows]
    times = {trace.name: trace for trace in table.plot(kind="times").data}
    assert list(times["searched"].y) == [row.searched for row in table.rows]
    assert list(times["exhaustive"].y) == [row.exhaustive for row in table.rows]
    other = replace(table, rows=tuple(replace(row, searched=row.searched / 2) for row in table.rows))
    assert other.plot().alternative != table.plot().alternative
    control = read_unpacking(results / "unpacking/stage2.json.gz")
    for trace, factors in zip(control.plot().data, control.sharing.values(), strict=True):
        assert list(trace.y) == [factor.speed_up for factor in factors.values()]
    assert f"ratio {control.unpacking.speed_up:.2f}" in control.plot().alternative
    tuned = [read_retuned(path) for path in sorted((results / "tuned").glob("*-finals.json"))]
    for trace, one in zip(plot(tuned, kind="marginal").data, tuned, strict=True):
        assert list(trace.y) == [factor.speed_up for factor in one.marginal.values()]
    named = ("schedule", "index", "sharing", "packing", "layout", "microseconds", "sectors_read")
    counts = {field.name: 5 for field in fields(MechanismRow) if field.name not in named}
    rows = tuple(
        MechanismRow(
            f"s{i}", i, sharing, True, "nhwc", None if i == 3 else 4.0 + i, sectors_read=100 * (i + 1), **counts
        )
        for i, sharing in enumerate(("none", "full", "full", "none"))
    )
    scatter = {trace.name: trace for trace in Mechanism("w", "g", "all blocks", rows).plot().data}
    assert list(scatter["sharing: none"].x) == [100]
    assert list(scatter["sharing: full"].y) == [5.0, 6.0]


def test_wrong_names_are_refused_with_the_closest(race: Race, landscape: Landscape, ablations: list[Ablation]) -> None:
    for wrong, words in (
        (lambda: race.plot(kind="curvs"), "did you mean curves"),
        (lambda: race.plot(scope="T4"), "scope='T4'"),
        (lambda: race.plot(only=("randm",)), "did you mean random"),
        (lambda: race.plot(kind="reach", target=0.5), "target='0.5'"),
        (lambda: race.plot(colour="red"), "unexpected keyword argument 'colour'"),
        (lambda: race.plot(theme="drak"), "did you mean dark"),
        (lambda: landscape.plot(kind="map", x="chnk"), "did you mean chunk"),
        (lambda: landscape.plot(kind="map", statistic="mean"), "statistic='mean'"),
        (lambda: plot([ablations[0], race]), "records of one kind"),
        (lambda: plot([race, race]), "records of one kind"),
        (lambda: plot([]), "records of one kind"),
        (lambda: plot(3), "no chart of int"),
        (lambda: subbyte.duplicates(LAYER, tile=(1, 4)).plot(), "no chart of Duplicates"),
    ):
        with pytest.raises(InvalidInput, match=words):
            wrong()
    with pytest.raises(BrokenRecord):
        SideBySide.of({"rows": []})
    assert {kind.__name__ for kind in HOME} >= {"Race", "Landscape", "Ablation", "Roofline", "Study", "SideBySide"}


def test_charts_of_bits_are_the_recorded_times() -> None:
    results = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "bits"
    for record in read_plane_times(next(results.glob("papers-products-h200-*.json"))):
        drawn = {str(trace.name).partition(":")[0]: trace for trace in plot(record).data}
        for codes, name in ((True, "codes out"), (False, "int32 sums out")):
            rows = [one for one in record.rows if one.codes == codes]
            assert list(drawn[name].x) == [one.pairs for one in rows]
            assert list(drawn[name].y) == [one.microseconds for one in rows]
            assert list(drawn[name].text) == [one.precision for one in rows]
        for name, time in record.others.items():
            assert set(drawn[name].y) == {time}
            assert f"{name} at p*q = {record.crossing(name):.1f}" in plot(record).alternative
    loads = read_stride_times(next(results.glob("strides-h200-*.json")))
    for trace, cycles in zip(plot(loads).data, loads.cycles.values(), strict=True):
        assert list(trace.x) == list(cycles)
        assert list(trace.y) == pytest.approx([one - cycles[128] for one in cycles.values()])


def test_a_chart_stands_alone(ablations: list[Ablation], tmp_path: Path) -> None:
    chart = ablations[0].plot()
    bundle = chart._repr_mimebundle_()
    assert bundle[MIME]["config"] == CONFIG
    assert CONFIG["showSendToCloud"] is False
    assert bundle[MIME]["data"][0]["y"] == [factor.speed_up for factor in ablations[0].accumulated.values()]
    assert f'alt="{chart.alternative}"' in bundle["text/html"]
    page = chart.save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Plotly.newPlot" in page
    assert len(page) > 1_000_000, "plotly.js is inside"
    assert '<script src="http' not in page
    assert '"showSendToCloud": false' in page
    assert "responsive" not in chart._repr_mimebundle_()[MIME]["config"], "JupyterLab sizes it; see CONFIG"
    for theme, ground in (("auto", "rgba(0,0,0,0)"), ("dark", "#111111"), ("light", "#ffffff")):
        assert ablations[0].plot(theme=theme).layout.paper_bgcolor == ground
    with pytest.raises(InvalidInput, match="must end in"):
        chart.save(tmp_path / "a.txt")
    assert colour(0, 0.5) == "rgba(0,114,178,0.5)"


SVG = "{http://www.w3.org/2000/svg}"


def test_the_static_picture_holds_the_numbers(race: Race, landscape: Landscape, ablations: list[Ablation],
                                              tmp_path: Path) -> None:  # fmt: skip
    chart = plot(ablations, kind="marginal")
    root = ElementTree.fromstring(chart.save(tmp_path / "a.svg").read_text(encoding="utf-8"))
    bars = [float(bar.get("data-value", 0)) for bar in root.iter(f"{SVG}rect") if bar.get("data-value")]
    factors = [factor.speed_up for one in ablations for factor in one.marginal.values()]
    assert bars == pytest.approx(factors, rel=1e-5)
    heights = [float(bar.get("height", 0)) for bar in root.iter(f"{SVG}rect") if bar.get("data-value")]
    assert [height / heights[0] for height in heights] == pytest.approx([f / factors[0] for f in factors], rel=1e-3)
    words = [line.text for line in root.iter(f"{SVG}text")]
    assert {f"{factor:.2f}" for factor in factors} | {one.workload for one in ablations} <= set(words)
    assert chart.alternative in " ".join(word for word in words if word)
    assert len([p for p in root.iter(f"{SVG}path") if p.get("class") == "span"]) == len(factors)
    wrong = replace(ablations[0], marginal={"layout": replace(ablations[0].marginal["layout"], speed_up=7.0)})
    assert 'data-value="7"' in wrong.plot(kind="marginal").to_svg()
    cells = ElementTree.fromstring(landscape.plot(kind="map", x="chunk", y="warp_row_tiles").to_svg())
    found = landscape_map(landscape, "chunk", "warp_row_tiles")
    best = [cell.best for row in found.cells for cell in row if cell.best is not None]
    drawn = [float(cell.get("data-value", 0)) for cell in cells.iter(f"{SVG}rect") if cell.get("data-value")]
    assert drawn == pytest.approx(best, rel=1e-5)
    record = subbyte.roofline()
    points = [p.get("data-value") for p in ElementTree.fromstring(record.plot().to_svg()).iter() if p.get("data-value")]
    assert sorted(map(float, points)) == pytest.approx(sorted(point.tops for point in record.points), rel=1e-5)
    for every in (race.plot(), race.plot(kind="reach"), race.plot(kind="differences"), landscape.plot(),
                  subbyte.speed_of_light(LAYER).plot(), side_by_sides()[0].plot()):  # fmt: skip
        assert every.alternative.split()[0] in ElementTree.fromstring(every.to_svg()).findtext(f"{SVG}title", "")
        assert "data:image/svg+xml" in every._repr_mimebundle_()["text/html"]
    lines = landscape.plot(kind="lines")
    assert "<table>" in lines._repr_mimebundle_()["text/html"]
    with pytest.raises(InvalidInput, match="no static picture"):
        lines.save(tmp_path / "b.svg")


def test_a_choice_of_charts_reads_their_values(ablations: list[Ablation], landscape: Landscape) -> None:
    view = ChartChoice({"taken away": plot(ablations, kind="marginal"), "spread": landscape.plot()})
    factors = [factor for one in ablations for factor in one.marginal.values()]
    assert [line.rpartition(": ")[2] for line in view.sentences] == [
        f"{one.speed_up:.4g} ({one.low:.4g} to {one.high:.4g})" for one in factors
    ]
    drawn = ElementTree.fromstring(view.drawn())
    numbered = {int(one.get("data-item", -1)): one.get("data-value") for one in drawn.iter() if one.get("data-item")}
    assert [float(numbered[i] or 0) for i in range(len(factors))] == pytest.approx(
        [f.speed_up for f in factors], rel=1e-5
    )
    view.chosen = 2
    assert view.alternative == f"{view.charts['taken away'].alternative}. {view.sentences[2]}"
    view.variant = "spread"
    assert view.chosen == -1, "its bars are others"
    assert len(view.sentences) == len(spread(landscape).bins)
    assert view.alternative.startswith(landscape.plot().alternative)
    assert "#777777" not in view.drawn(), "all ink is the page's"
    for wrong, words in (
        ({}, "give at least one"), ({"a": 3}, "'a' is a int; give what plot"), (3, "give charts by name"),
        ({"lines": landscape.plot(kind="lines")}, "no static picture"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            ChartChoice(wrong)  # type: ignore[arg-type]


def test_long_titles_take_several_lines_in_both_pictures() -> None:
    words, below = "many words " * 15, "measured so and so; " * 9
    made = chart([go.Scatter(x=[1, 2], y=[3, 4])], words.strip(), below.strip(), x={"title": {"text": "x"}})
    lines = re.sub(r"</?b>", "", made.layout.title.text).split("<br>")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 60, "as wide as a narrow notebook"
    assert max(map(len, made.layout.title.subtitle.text.split("<br>"))) <= 84
    drawn = [text.text for text in ElementTree.fromstring(made.to_svg()).iter(f"{SVG}text")]
    assert drawn[:3] == lines
    assert set(made.layout.title.subtitle.text.split("<br>")) < set(drawn)
    assert wrapped("a b c d e fghij", 10) == ["a b c d", "e fghij"], "no single word in the last line"
    assert wrapped("abcdefghi jklmnopqr", 10) == ["abcdefghi", "jklmnopqr"]
    assert made.layout.margin.t > chart([], "short", "short").layout.margin.t + 50


def test_without_a_package_one_sentence_says_which(ablations: list[Ablation], monkeypatch: pytest.MonkeyPatch,
                                                   tmp_path: Path) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "kaleido", None)
    with pytest.raises(MissingDependency, match="pip install kaleido"):
        ablations[0].plot().save(tmp_path / "a.png")


def test_the_views_load_plotly_for_a_chart_alone_and_say_where_it_is_missing() -> None:
    code = (
        "import sys, subbyte, subbyte_widgets; print('plotly' in sys.modules); sys.modules['plotly'] = None\n"
        "from subbyte.errors import MissingDependency\n"
        "try: subbyte.landscape('resnet50.stage3@8').plot()\nexcept MissingDependency as problem: print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("False\n"), done.stderr
    assert "charts need plotly" in done.stdout, done.stderr


def test_every_chart_is_a_chart(race: Race) -> None:
    assert isinstance(race.plot(), Chart)
    assert "Chart: " in repr(race.plot())
