"""Every element of an output is compared with the reference: no sampling, no tolerance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subbyte.errors import InvalidInput, WrongResult

DTYPES = ("int8", "uint8", "int16", "int32")
"""Dtypes of values of 1 to 8 bits, and of sums."""


@dataclass(frozen=True)
class CheckReport:
    """``elements`` compared, ``wrong`` of them different. The first difference (in memory order) is at ``first``
    = (n, p, q, k), where the kernel computed ``actual`` and the reference ``expected``; None when all are equal."""

    elements: int
    wrong: int
    first: tuple[int, ...] | None = None
    actual: int | None = None
    expected: int | None = None
    largest_error: int = 0

    @property
    def ok(self) -> bool:
        """Whether every element is right."""
        return self.wrong == 0

    def require(self, what: str = "the kernel") -> None:
        """Raise WrongResult, naming ``what`` ran, unless every element is right."""
        if not self.ok:
            raise WrongResult(f"{what}: {self}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = asdict(self)
        return {"ok": self.ok, **data, "first": None if self.first is None else list(self.first)}

    def __str__(self) -> str:
        if self.ok:
            return f"all {self.elements} elements equal the reference"
        where = ", ".join(f"{axis}={index}" for axis, index in zip("npqk", self.first or (), strict=False))
        return (
            f"{self.wrong} of {self.elements} elements differ from the reference (by up to {self.largest_error}); "
            f"the first at ({where}): {self.actual}, expected {self.expected}"
        )


def compare(actual: NDArray[Any], expected: NDArray[Any]) -> CheckReport:
    """Compare an output [N,P,Q,K] with the reference, element by element.

    Both must have the output type's dtype (int4: int8), or both int32. Raises InvalidInput when shape or dtype differ,
    when the output is not an integer array or when it is empty: an output of the wrong form is rejected, never
    broadcast or converted.
    """
    given: tuple[tuple[str, Any], ...] = (("actual", actual), ("expected", expected))
    for name, array in given:
        if not isinstance(array, np.ndarray) or array.dtype.name not in DTYPES:
            shown = f"{array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
            raise InvalidInput(f"{name} output is {shown}: must be a numpy array of int8 (int4 values), int32 or of "
                               "the dtype of another output type")  # fmt: skip
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise InvalidInput(
            f"output is {actual.dtype}{list(actual.shape)}, the reference {expected.dtype}{list(expected.shape)}: "
            "shape and dtype must be equal"
        )
    if actual.size == 0:
        raise InvalidInput("output has no elements: nothing would be compared")
    differs = actual != expected
    wrong = int(np.count_nonzero(differs))
    if not wrong:
        return CheckReport(actual.size, 0)
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(differs)), actual.shape))
    error = np.abs(actual.astype(np.int64) - expected.astype(np.int64))
    return CheckReport(actual.size, wrong, first, int(actual[first]), int(expected[first]), int(error.max()))
