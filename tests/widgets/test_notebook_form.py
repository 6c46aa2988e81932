"""The normal form of committed notebooks: everything shown is kept, everything of one machine is gone."""

from __future__ import annotations

import copy
import html
import json
import re
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import get_kernel_dict
from notebooks import CHART, FOLDER, METADATA, NAMED, WIDGET_VIEW, normal_form, with_svg

from subbyte_widgets import FragmentExplorer
from subbyte_widgets._base import picture_in
from subbyte_widgets.charts.style import chart

NOTEBOOK: dict[str, Any] = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"widgets": {"state": {}}, "kernelspec": {"name": "my-env", "display_name": "My env"}},
    "cells": [
        {"cell_type": "markdown", "id": "x1", "metadata": {}, "source": "# A"},
        {
            "cell_type": "code", "id": "x2", "source": "view", "execution_count": 1,
            "metadata": {"execution": {"iopub.execute_input": "2026-01-01"}, "tags": ["t"]},
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "a\n"},
                {"output_type": "stream", "name": "stdout", "text": "b\n"},
                {"output_type": "display_data", "transient": {"display_id": "7"}, "metadata": {},
                 "data": {WIDGET_VIEW: {"model_id": "1"}, "image/svg+xml": "<svg/>", "text/plain": "<A>"}},
                {"output_type": "display_data", "metadata": {}, "data": {WIDGET_VIEW: {"model_id": "2"}}},
            ],
        },
    ],
}  # fmt: skip


def test_what_is_shown_is_kept_and_the_rest_is_gone() -> None:
    given = copy.deepcopy(NOTEBOOK)
    normal = normal_form(given)
    assert given == NOTEBOOK
    assert "widgets" not in normal["metadata"]
    assert normal["metadata"]["kernelspec"]["name"] == "python3"
    code = normal["cells"][1]
    assert code["metadata"] == {"tags": ["t"]}
    assert code["id"] == "cell-01"
    stream, picture, alone = code["outputs"]
    assert stream["text"] == "a\nb\n"
    assert picture["data"] == {"image/svg+xml": "<svg/>", "text/plain": "<A>"}
    assert "transient" not in picture
    assert alone["data"] == {WIDGET_VIEW: {"model_id": "2"}}


def test_jupyterlab_has_nothing_to_add_when_the_kernel_has_started() -> None:
    language: dict[str, Any] = {**IPythonKernel.language_info}
    assert language.pop("version")  # `subbyte lab` shows the one that runs: tests/toolkit/cli/test_lessons.py
    assert {**METADATA["language_info"], "version": ""} == {**language, "version": ""}
    kernel = get_kernel_dict()
    assert METADATA["kernelspec"] == {"name": "python3", **{key: kernel[key] for key in ("display_name", "language")}}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_opens_as_saved(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"] == METADATA
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)


def test_the_normal_form_is_its_own() -> None:
    once = normal_form(NOTEBOOK)
    assert normal_form(once) == once
    assert normal_form(NOTEBOOK) != NOTEBOOK


def test_a_chart_that_is_opened_but_not_run_has_a_name_before_it() -> None:
    made = chart([go.Scatter(x=[1, 2], y=[3, 4])], "two points", x={"title": {"text": "time (us)"}})
    output = {"output_type": "display_data", "metadata": {}, "data": made._repr_mimebundle_()}
    cells = [{**NOTEBOOK["cells"][1], "outputs": [output]}]
    normal = normal_form({**NOTEBOOK, "cells": cells})
    name, drawn = normal["cells"][0]["outputs"]
    assert CHART in drawn["data"]
    said = html.unescape(re.findall(r'<img class="sb-named" alt="([^"]*)"', name["data"]["text/html"])[0])
    assert said == f"{made.alternative}. {made.spoken()}"
    assert normal_form(normal) == normal
    nameless = {**normal, "cells": [{**normal["cells"][0], "outputs": [drawn]}]}
    assert normal_form(nameless) == normal, "so the check of the committed notebooks finds one without a name"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_committed_chart_is_without_a_name(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        kinds = [one.get("data", {}) for one in cell.get("outputs", ())]
        charts = [place for place, data in enumerate(kinds) if CHART in data]
        assert all(place and NAMED in "".join(kinds[place - 1].get("text/html", "")) for place in charts)


def test_a_picture_inside_html_is_kept_as_svg_too() -> None:
    shown = FragmentExplorer().static()
    assert set(shown) == {"text/html"}, "sent once with each display"
    kept = with_svg(shown)
    assert kept["text/html"] == shown["text/html"]
    assert kept["image/svg+xml"] == picture_in(shown)
    assert kept["image/svg+xml"].startswith("<svg")
    assert "data-w=" not in kept["image/svg+xml"], "a saved picture needs no data for the page"
    assert with_svg(kept) == kept
    assert with_svg({"text/html": "<b>a table</b>"}) == {"text/html": "<b>a table</b>"}
