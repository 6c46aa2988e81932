"""The units whose cycles are counted, as data: every parameter with its source, all replaceable."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, did_you_mean
from subbyte.info_record import InfoRecord, Table
from subbyte.sparse.bitmap import POSITIONS

SKIPS = ("nothing", "2:4 weights", "condensed vectors", "every zero")
"""Which products a unit skips."""
_PAPER = "Wang et al. 2021 (arXiv 2105.09564), as readers and Uni-STC (HPCA 2026) describe it"
_V100 = "NVIDIA V100 white paper: 80 multiprocessors with 4 sub-cores, 900 GB/s, 1.53 GHz boost"
SOURCES = {
    "macs_per_cycle": f"{_PAPER}: two Tensor Cores of a sub-core, OHMMA 8 x 16 x 1 in one cycle",
    "group_a": f"{_PAPER}: OHMMA takes 8 condensed values of A",
    "group_b": f"{_PAPER}: OHMMA takes 16 condensed values of B",
    "accumulator_words": "the model of this unit in the Sparseloop artefact; calibrated on Figure 21",
    "per_k": "fitted here to the ten points of Figure 21 (bitmap fetch, POPC and BOHMMA of one k)",
    "multiprocessors": _V100,
    "sub_cores": _V100,
    "gigabytes_per_second": _V100,
    "gigahertz": _V100,
    "value_bytes": "fp16 operands, as in the paper",
    "output_bytes": "fp32 results, as in the paper",
}
"""Parameter -> source of its default."""
_UNITS = {
    "macs_per_cycle": "products a cycle and sub-core", "accumulator_words": "words a cycle", "per_k": "cycles",
    "gigabytes_per_second": "GB/s", "gigahertz": "GHz", "value_bytes": "bytes", "output_bytes": "bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Machine(InfoRecord):
    """One unit: what it skips, and what each step costs. Change parameters with :meth:`but`.

    Raises InvalidInput for a parameter that is not a positive number (``per_k`` may be 0) or a group that does not
    divide 32.
    """

    name: str
    skips: str
    """One of :data:`SKIPS`."""
    macs_per_cycle: int = 128
    group_a: int = 8
    group_b: int = 16
    accumulator_words: float = 116.0
    per_k: float = 0.25
    multiprocessors: int = 80
    sub_cores: int = 4
    gigabytes_per_second: float = 900.0
    gigahertz: float = 1.53
    value_bytes: float = 2.0
    output_bytes: float = 4.0

    def __post_init__(self) -> None:
        if self.skips not in SKIPS:
            raise InvalidInput(f"machine skips {self.skips!r}: {did_you_mean(self.skips, SKIPS)}")
        for name in SOURCES:
            value = getattr(self, name)
            least = 0 if name == "per_k" else math.nextafter(0, 1)
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not number or value < least:
                expected = "0 or a positive number" if least == 0 else "a positive number"
                raise InvalidInput(f"machine {name}={value!r}: expected {expected}")
            whole = name in ("macs_per_cycle", "group_a", "group_b", "multiprocessors", "sub_cores")
            if whole and not isinstance(value, int):
                raise InvalidInput(f"machine {name}={value!r}: expected a whole number")
        for name in ("group_a", "group_b"):
            if POSITIONS % getattr(self, name):
                raise InvalidInput(f"machine {name}={getattr(self, name)}: must divide {POSITIONS}")

    def but(self, **parameters: Any) -> Machine:
        """This unit with other parameters. Raises InvalidInput for an unknown parameter or a wrong value."""
        for name in parameters:
            if name not in SOURCES:
                raise InvalidInput(f"machine parameter {name!r}: {did_you_mean(name, SOURCES)}")
        return replace(self, **parameters)

    @property
    def units(self) -> int:
        """Number of sub-cores in the device."""
        return self.multiprocessors * self.sub_cores

    @property
    def bytes_per_cycle(self) -> float:
        """Bytes per cycle that the memory of the whole device moves."""
        return self.gigabytes_per_second / self.gigahertz

    @property
    def dense_k(self) -> float:
        """Cycles of one k of a warp tile without zeros."""
        return float(cost_tables(self).cost[-1, -1]) if self.skips == "condensed vectors" else self.inner_k

    @property
    def inner_k(self) -> float:
        """The same on an inner-product core with as many products per cycle: 8."""
        return POSITIONS * POSITIONS / self.macs_per_cycle

    def title(self) -> str:
        """One line: what it skips, and what a dense k costs."""
        return (
            f"machine {self.name}: skips {self.skips}; {self.dense_k:.3f} cycles for a dense k of a 32 x 32 warp tile"
        )

    def table(self) -> Table:
        """One row for each parameter, with its source; a changed one is marked as the user's."""
        own = MACHINES.get(self.name)
        rows = []
        for field in fields(self):
            if field.name in SOURCES:
                value = getattr(self, field.name)
                given = own is None or getattr(own, field.name) != value
                source = "set by the user" if given else SOURCES[field.name]
                rows.append((field.name, str(value), _UNITS.get(field.name, ""), source))
        return Table(("parameter", "value", "unit", "source"), tuple(rows))


@dataclass(frozen=True, eq=False)
class CostTables:
    """Cycles of one k of a warp tile by the non-zeros of A and B, each [33, 33]."""

    issue: NDArray[np.float64]
    """Cycles of the multipliers."""
    merge: NDArray[np.float64]
    """Cycles of the accumulators' buffer."""
    cost: NDArray[np.float64]
    """Cycles of the k: the larger of the two, plus the overhead of every k."""
    useful: NDArray[np.float64]
    """Products of two non-zeros divided by the products that the multipliers could compute in these cycles, 0 to 1."""


@cache
def cost_tables(machine: Machine) -> CostTables:
    """The tables of a unit. A 2:4 unit is assumed to get weights that fit; the warp tile is 32 x 32."""
    a, b = np.arange(POSITIONS + 1.0)[:, None], np.arange(POSITIONS + 1.0)[None]
    zeros = np.zeros((POSITIONS + 1, POSITIONS + 1))
    if machine.skips == "condensed vectors":
        one = machine.group_a * machine.group_b / machine.macs_per_cycle
        issue = np.ceil(a / machine.group_a) * np.ceil(b / machine.group_b) * one
        merge = a * b / machine.accumulator_words
        cost = np.maximum(issue, merge) + machine.per_k
    else:
        shares: dict[str, Any] = {"nothing": 1.0, "2:4 weights": 0.5, "every zero": a * b / POSITIONS**2}
        issue, merge = zeros + machine.inner_k * shares[machine.skips], zeros
        cost = issue
    useful = np.divide(a * b / machine.macs_per_cycle, cost, out=np.zeros_like(cost), where=cost > 0)
    for table in (issue, merge, cost, useful):
        table.setflags(write=False)
    return CostTables(issue, merge, cost, useful)


MACHINES = {
    machine.name: machine
    for machine in (
        Machine("dense", "nothing"),
        Machine("sparse24", "2:4 weights"),
        Machine("dstc", "condensed vectors"),
        Machine("ideal", "every zero"),
    )
}
"""Name -> unit: the inner-product core, the same with 2:4 weights, the dual-side sparse one, one that skips all
zeros."""


def machine(given: str | Machine) -> Machine:
    """The unit with this name; a Machine is returned as it is. Raises InvalidInput with the closest names."""
    if isinstance(given, Machine):
        return given
    found = MACHINES.get(str(given).strip().lower())
    if found is None:
        raise InvalidInput(f"unknown machine {given!r}: {did_you_mean(given, MACHINES)}")
    return found
