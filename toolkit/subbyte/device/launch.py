"""How a built kernel is started: plain data shared by the GPU runner, the emulator and the export."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import Any


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
class Launch:
    """Entry point, grid, block, dynamic shared memory in bytes and the arguments.

    ``cluster``: neighbouring blocks that form a cluster. ``overlap``: the kernel waits by itself for the launch before
    it, so that it may be started before that one has ended (programmatic launch overlap).
    """

    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: int = 1
    overlap: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)
