"""How a built kernel is started: plain data shared by the GPU runner, the emulator and the export."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from subbyte.former import FormerFields, written


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
        """Size in bytes; every dtype in use is four bytes wide."""
        return 4 * prod(self.shape)


@dataclass(frozen=True)
class Launch(FormerFields, former={"overlap": "dependent_launch"}):
    """Entry point, grid, block, dynamic shared memory in bytes and the arguments.

    ``cluster``: neighbouring blocks that form a cluster. ``dependent_launch``: the kernel waits by itself for the
    launch before it, so that it may be started before that one has ended (programmatic dependent launch).
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: int = 1
    dependent_launch: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON (``dependent_launch`` as ``overlap``)."""
        return dict(zip(written(self), asdict(self).values(), strict=True))
