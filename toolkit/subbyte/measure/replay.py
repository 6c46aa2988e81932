"""A runner without a GPU: looks results up in a recorded landscape."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from subbyte.errors import InvalidInput
from subbyte.measure.runner import RunnerBase
from subbyte.records.result import Measured, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

if TYPE_CHECKING:
    from subbyte.records.describe import SpaceLike
    from subbyte.records.landscape import Landscape


class ReplayRunner(RunnerBase):
    """Replays ``landscape`` (a Landscape, a file, a shipped name). Raises InvalidInput, BrokenRecord.

    Failures that were recorded are replayed too. A workload or configuration that the landscape does not hold raises
    InvalidInput: made-up times would be worse than none.
    """

    def __init__(self, landscape: Landscape | str | os.PathLike[str]) -> None:
        from subbyte.records.landscape import Landscape

        self.landscape = landscape if isinstance(landscape, Landscape) else Landscape.load(landscape)
        self.device: Mapping[str, Any] = {
            **self.landscape.device, "runner": "replay", "landscape": self.landscape.name,
            "name": str(self.landscape.device.get("name", "unknown")),
        }  # fmt: skip

    def check(self, space: SpaceLike) -> None:
        """Raise InvalidInput unless the landscape was recorded for this space, or this is the landscape's own space."""
        from subbyte.records.recorded_space import space_of

        self._check_workload(space.workload)
        if space.hash not in (self.landscape.space_hash, space_of(self.landscape).hash):
            raise InvalidInput(
                f"landscape {self.landscape.name} was recorded for another space ({self.landscape.kind}, "
                f"{self.landscape.arch}, hash {self.landscape.space_hash[:12]}; asked: {space.kind}, hash "
                f"{space.hash[:12]}); record it again with `subbyte landscape record`"
            )

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """The recorded results, in order."""
        self._check_workload(workload)
        return [self._look_up(config) for config in configs]

    def rematch(self, workload: ConvWorkload, configs: Sequence[Configuration], rounds: int) -> list[list[float]]:
        """The recorded samples instead of new rounds: at most ``rounds``, as many as every configuration has."""
        found = [result for result in self.run(workload, configs) if isinstance(result, Measured)]
        samples = [list(result.samples or (result.microseconds,)) for result in found]
        common = min(rounds, *(len(one) for one in samples))
        return [one[:common] for one in samples]

    def _check_workload(self, workload: ConvWorkload) -> None:
        if workload != self.landscape.workload:
            raise InvalidInput(
                f"landscape {self.landscape.name} is of {self.landscape.workload.spec}, not of {workload.spec}; "
                "choose another landscape (`subbyte landscape list`)"
            )

    def _look_up(self, config: Configuration) -> Result:
        index = self.landscape.by_config.get(config)
        if index is None:
            raise InvalidInput(f"landscape {self.landscape.name} holds no result of configuration {config.key}")
        result = self.landscape.results[index]
        return replace(result, device=self.device) if isinstance(result, Measured) else result
