"""How a built kernel is started: plain data shared by the GPU runner, the emulator and the export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from subbyte.errors import InvalidInput
from subbyte.former import FormerFields, written

_BYTES = {"int8": 1, "uint8": 1, "uint16": 2}
"""Bytes per element by dtype; four for those not listed. The narrow ones are values that a conversion reads or
writes."""


@dataclass(frozen=True)
class Argument:
    """One pointer argument, in the kernel's order. ``role`` is ``in`` or ``out``; ``shape`` counts elements.

    ``form`` says how the elements are arranged (see :mod:`subbyte.kernel.operands`): ``nhwc`` or ``nhwcnc`` for
    activations and outputs (``nhwcnc.planes`` where they are stored as bit planes), the vector width for weights,
    ``fixed8``, ``fixed0``, ``float8`` or ``general`` for parameters.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    form: str = ""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return _BYTES.get(self.dtype, 4) * prod(self.shape)


@dataclass(frozen=True)
class Launch(FormerFields, former={"overlap": "dependent_launch"}):
    """Entry point, grid, block, dynamic shared memory in bytes, and the arguments.

    ``cluster``: neighbouring blocks that form a cluster. ``dependent_launch``: the kernel itself waits for the previous
    launch, so that it may start before that one has ended (programmatic dependent launch).

    With ``parts`` it stands for several launches in sequence, on parts of the same arguments, and no function is called
    ``entry``: to start it, start the launches in :attr:`steps`.
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: int = 1
    dependent_launch: bool = False
    parts: tuple[Part, ...] = ()

    @property
    def steps(self) -> tuple[Part, ...]:
        """The launches to start, in order: its parts, or itself on all of its arguments."""
        return self.parts or (Part(self, (0,) * len(self.arguments)),)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON (``dependent_launch`` is called ``overlap``; ``parts`` only if there are any)."""
        found = dict(zip(written(self), asdict(self).values(), strict=True))
        found["parts"] = [{"launch": one.launch.to_dict(), "begins": one.begins} for one in self.parts]
        if not self.parts:
            del found["parts"]
        return found


@dataclass(frozen=True)
class Part:
    """A launch on a part of another launch's arguments, of which it has the same number in the same order: ``begins``
    gives the first byte of each."""

    launch: Launch
    begins: tuple[int, ...]

    def addresses(self, whole: Sequence[int]) -> list[int]:
        """Addresses of its arguments, given the addresses of the whole ones."""
        return [address + begin for address, begin in zip(whole, self.begins, strict=True)]


def launch_from_dict(data: Mapping[str, Any]) -> Launch:
    """The launch whose ``to_dict()`` gave ``data``. Raises InvalidInput when fields are missing or invalid."""
    try:
        arguments = tuple(
            Argument(str(a["name"]), str(a["dtype"]), tuple(int(i) for i in a["shape"]), str(a["role"]), str(a["form"]))
            for a in data["arguments"]
        )
        grid, block = (tuple(int(i) for i in data[name]) for name in ("grid", "block"))
        if len(grid) != 3 or len(block) != 3:
            raise ValueError("grid and block must have three sizes")
        return Launch(
            str(data["entry"]), (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]),
            int(data["shared_bytes"]), arguments, int(data.get("cluster", 1)), bool(data.get("overlap", False)),
            tuple(Part(launch_from_dict(one["launch"]), tuple(map(int, one["begins"])))
                  for one in data.get("parts", ())),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"not the record of a launch: {error}") from None
