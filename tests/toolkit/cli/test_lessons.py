"""Jupyter's files under ``subbyte lab``: a lesson names the Python that runs, the file on the disk stays as it is."""

from __future__ import annotations

import asyncio
import json
import platform
from pathlib import Path
from typing import Any

import pytest

from subbyte.cli.lab import SETTINGS
from subbyte.cli.lessons import LessonContents

FULL = {"name": "python", "version": "2.0.1", "mimetype": "text/x-python"}


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        (FULL, {**FULL, "version": platform.python_version()}),
        ({"name": "python"}, {"name": "python"}),
        ({"name": "julia", "version": "1"}, {"name": "julia", "version": "1"}),
        (None, None),
    ],
)
def test_a_notebook_names_the_python_that_runs(tmp_path: Path, language: Any, shown: Any) -> None:
    metadata = {} if language is None else {"language_info": language}
    text = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": []})
    (tmp_path / "a.ipynb").write_text(text)
    files = LessonContents(root_dir=str(tmp_path))
    model = asyncio.run(files.get("a.ipynb"))
    assert model["content"]["metadata"].get("language_info") == shown
    assert (tmp_path / "a.ipynb").read_text() == text
    assert asyncio.run(files.get("a.ipynb", content=False))["content"] is None
    assert [one["name"] for one in asyncio.run(files.get(""))["content"]] == ["a.ipynb"]


def test_the_server_of_the_lessons_uses_it() -> None:
    config = json.loads((SETTINGS / "jupyter_server_config.json").read_text())
    assert config["ServerApp"]["contents_manager_class"] == f"{LessonContents.__module__}.{LessonContents.__name__}"
