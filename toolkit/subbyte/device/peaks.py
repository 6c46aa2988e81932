"""Measured peaks of a GPU: launching, copying, multiplying.

The numbers are in ``peaks.json`` beside this file, which ``benchmarks/baselines peaks`` writes from the records of
``subbyte bench atoms``. They are measurements of single instructions and plain copies, not data-sheet peaks, so that a
percentage of peak means something.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subbyte.arguments import checked
from subbyte.errors import InvalidInput, did_you_mean

_FILE = Path(__file__).parent / "peaks.json"
DEFAULT_DEVICE = "NVIDIA H200"
_WARPGROUP = "s8.wgmma.m64"
_ONE_BIT = "b1.wgmma.m64"
_SPARSE = "s8.wgmma.sp.m64"


@dataclass(frozen=True)
class MeasuredPeaks:
    """Measured limits of one GPU.

    ``launch_microseconds``: one empty kernel in a CUDA graph; ``copy_terabytes_per_second``: bytes read plus bytes
    written, in 10^12; ``tops``: 10^12 operations per second of each matrix instruction, by atom; ``binary_tops``: the
    same for one-bit instructions (and, xor); ``sparse_tops``: the same for instructions on 2:4 weights that stay in
    registers, counting zeros as operations.
    """

    device: str
    arch: str
    date: str
    provenance: str
    launch_microseconds: float
    stream_launch_microseconds: float
    copy_terabytes_per_second: float
    tops: Mapping[str, float]
    binary_tops: Mapping[str, float] = field(default_factory=dict)
    sparse_tops: Mapping[str, float] = field(default_factory=dict)

    @property
    def warpgroup_atom(self) -> str:
        """The warpgroup atom that was measured; "" on a GPU without such instructions."""
        return next((atom for atom in self.tops if atom.startswith(_WARPGROUP)), "")

    def measured(self, atom: str) -> str:
        """The measured atom that stands for ``atom``: one warpgroup atom stands for all widths, and for 2:4 weights the
        fastest one."""
        name = atom.replace("s8.m64", _WARPGROUP).replace("u8.wgmma.m64", _WARPGROUP)
        if name.startswith(_ONE_BIT):
            return next((known for known in self.binary_tops if known.startswith(_ONE_BIT)), name)
        if name.startswith(_SPARSE):
            return max(self.sparse_tops, key=self.sparse_tops.__getitem__, default=name)
        return self.warpgroup_atom if name.startswith(_WARPGROUP) and self.warpgroup_atom else name

    @checked
    def peak(self, atom: str) -> float:
        """Peak of an atom in 10^12 operations per second. All warpgroup atoms share the peak of the one that was
        measured.

        Raises InvalidInput for an atom that was not measured.
        """
        known = {**self.tops, **self.binary_tops, **self.sparse_tops}
        for name in (atom.replace("s8.m64", _WARPGROUP), self.measured(atom)):
            if name in known:
                return known[name]
        raise InvalidInput(f"no measured peak of {atom!r} on {self.device}: {did_you_mean(atom, known)}")

    def ceiling(self, atom: str) -> float:
        """:meth:`peak` under the name of earlier versions, for one minor version."""
        warnings.warn(
            "ceiling is now peak; the old name goes in the next minor version", DeprecationWarning, stacklevel=2
        )
        return self.peak(atom)


@cache
def _all() -> dict[str, MeasuredPeaks]:
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    return {name: MeasuredPeaks(name, **values) for name, values in data["devices"].items()}


def known_devices() -> tuple[str, ...]:
    """Names of the GPUs whose peaks were measured."""
    return tuple(_all())


@checked
def measured_peaks(device: str = DEFAULT_DEVICE) -> MeasuredPeaks:
    """The measured limits of a GPU, by its name. Raises InvalidInput with the closest names."""
    found = _all().get(str(device))
    if found is None:
        raise InvalidInput(f"no peaks of {device!r} were measured: {did_you_mean(device, known_devices())}")
    return found


def peak_tops(device: str) -> float | None:
    """Measured 10^12 operations per second of ``mma.sync`` int8 on a GPU; None if it was not measured."""
    found = _all().get(device)
    return found.tops.get("s8.m16n8k32") if found else None


def sparse_peak(device: str) -> float | None:
    """Measured 10^12 operations per second of the fastest instruction on 2:4 weights that stay in registers; None if it
    was not measured."""
    found = _all().get(device)
    return max(found.sparse_tops.values()) if found and found.sparse_tops else None


def warpgroup_peak(device: str) -> dict[str, Any] | None:
    """The measured peak of a GPU's warpgroup instruction on int8, as records store it: ``atom`` and ``tops``; None if
    it was not measured."""
    found = _all().get(device)
    atom = found.warpgroup_atom if found else ""
    return {"atom": atom, "tops": found.tops[atom]} if found and atom else None


_OLD_NAMES: dict[str, Any] = {"Ceilings": MeasuredPeaks, "ceilings": measured_peaks}
"""Names of earlier versions, for one minor version."""


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; the old name goes in the next minor version", DeprecationWarning, stacklevel=4)


def former(name: str, module: str) -> object:
    """Today's object for a name that an earlier version of a module had, with a DeprecationWarning. Raises
    AttributeError."""
    if name not in _OLD_NAMES:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(name, _OLD_NAMES[name].__name__)
    return _OLD_NAMES[name]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """The names of earlier versions."""
        return former(name, __name__)
