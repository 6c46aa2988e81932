"""A runner without a GPU and without a landscape: made-up times that behave like real ones, for tests and experiments.

The times come from a smooth function of the knobs plus seeded noise. They say nothing about a GPU, and the device
of every result is called ``fake``.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.families.registry import family_of
from subbyte.measure.runner import RunnerBase
from subbyte.records.result import FAILURE_KINDS, Failed, Measured, Result
from subbyte.spaces.configuration import Configuration
from subbyte.workload import ConvWorkload

Failures = Mapping[str, float] | Callable[[Configuration], Failed | None]
_PEAK_TOPS = 400.0
_LAUNCH_MICROSECONDS = 2.0
_SAMPLES = 5


class FakeRunner(RunnerBase):
    """Deterministic times: the same seed, workload and configuration always give the same result.

    ``noise`` is the relative spread of the samples. ``failures`` is the fraction of configurations that fail, by kind
    (``{"timeout": 0.05}``), or a function of the configuration. Each configuration sleeps ``delay`` seconds.
    Raises InvalidInput for an unknown kind of failure or fractions that add up to more than 1.
    """

    def __init__(
        self, seed: int = 0, noise: float = 0.01, failures: Failures | None = None, delay: float = 0.0
    ) -> None:
        self.device: Mapping[str, Any] = {"runner": "fake", "name": "fake", "seed": seed}
        self._seed = seed
        self._noise = noise
        self._delay = delay
        self._failures: Failures = failures if failures is not None else {}
        if isinstance(self._failures, Mapping):
            for kind in self._failures:
                if kind not in FAILURE_KINDS:
                    raise InvalidInput(f"failure kind {kind!r}: {did_you_mean(str(kind), FAILURE_KINDS)}")
            if not 0 <= sum(self._failures.values()) <= 1:
                raise InvalidInput(f"failures={dict(self._failures)}: the shares must add up to at most 1")

    def run(self, workload: ConvWorkload, configs: Sequence[Configuration]) -> list[Result]:
        """One made-up result per configuration, in order."""
        return [self._evaluate(workload, config) for config in configs]

    def rematch(self, workload: ConvWorkload, configs: Sequence[Configuration], rounds: int) -> list[list[float]]:
        """Made-up times of interleaved rounds: microseconds by configuration and round."""
        return [self._rounds(workload, config, rounds) for config in configs]

    def _rounds(self, workload: ConvWorkload, config: Configuration, rounds: int) -> list[float]:
        chance = self._chances(workload, config)
        base = _LAUNCH_MICROSECONDS + workload.operations / (1e6 * _PEAK_TOPS * efficiency(workload, config))
        drawn = [next(chance) for _ in range(1 + _SAMPLES + rounds)][1 + _SAMPLES :]
        return [base * (1 + self._noise * (2 * value - 1)) for value in drawn]

    def _evaluate(self, workload: ConvWorkload, config: Configuration) -> Result:
        if self._delay:
            time.sleep(self._delay)
        chance = self._chances(workload, config)
        failed = self._failure(config, next(chance))
        if failed is not None:
            return failed
        base = _LAUNCH_MICROSECONDS + workload.operations / (1e6 * _PEAK_TOPS * efficiency(workload, config))
        samples = tuple(base * (1 + self._noise * (2 * next(chance) - 1)) for _ in range(_SAMPLES))
        return Measured(
            statistics.median(samples), samples, cold_microseconds=1.1 * base + 1.0, verified=False, device=self.device
        )

    def _failure(self, config: Configuration, chance: float) -> Failed | None:
        if not isinstance(self._failures, Mapping):
            return self._failures(config)
        for kind, share in self._failures.items():
            if chance < share:
                return Failed(kind, f"made up by the fake runner ({config.key})")
            chance -= share
        return None

    def _chances(self, workload: ConvWorkload, config: Configuration) -> Any:
        """An endless sequence of uniform numbers in [0, 1) that depend only on seed, workload and configuration."""
        counter = 0
        while True:
            text = f"{self._seed}/{workload.spec}/{config}/{counter}".encode()
            digest = hashlib.blake2b(text, digest_size=64).digest()
            for place in range(0, 64, 8):
                yield int.from_bytes(digest[place : place + 8], "little") / 2**64
            counter += 1


def efficiency(workload: ConvWorkload, config: Configuration) -> float:
    """The made-up fraction of peak, in (0, 1), as the configuration's family defines it."""
    return family_of(config).made_up_share(workload, config)
