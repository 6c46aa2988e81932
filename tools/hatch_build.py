"""Build hook: the wheel carries the raw results that records of speed read; in a checkout they are read in place."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Results(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``benchmarks/results`` to a wheel as ``subbyte/results``, but not to an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds ``version`` ("standard" or "editable")."""
        if version == "standard":
            build_data["force_include"]["benchmarks/results"] = "subbyte/results"
