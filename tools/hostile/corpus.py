"""Inputs that once did harm, kept in ``tests/corpus`` by class: tests and areas read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpus"


def corpus(name: str) -> list[dict[str, Any]]:
    """The entries of ``tests/corpus/NAME.json``."""
    found: list[dict[str, Any]] = json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))
    return found
