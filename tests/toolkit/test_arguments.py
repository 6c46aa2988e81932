"""What Python callers give: one sentence for anything of another type, and nothing taken for what it is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hostile.areas.python_arguments import VALUES

from subbyte.arguments import checked, flag, number, one_of, text, whole
from subbyte.errors import BuildFailed, InvalidInput, SubbyteError, did_you_mean, shown
from subbyte.numerics import Requantization, check_int4, quantize
from subbyte.workload import ConvWorkload


@checked
def sample(
    a: int,
    b: float = 1.0,
    *,
    c: bool = False,
    d: str | None = None,
    e: Sequence[int] = (),
    f: Mapping[str, Any] | None = None,
    g: tuple[int, int] = (0, 0),
    h: Callable[[], Any] | None = None,
    i: ConvWorkload | str = "x",
    j: Any = None,
) -> int:
    """Something with an argument of every kind."""
    return a


def test_what_the_annotations_allow_passes():
    layer = ConvWorkload(1, 4, 4, 8, 8, 1, 1)
    found = sample(np.int8(3), 2, c=np.bool_(True), d="x", e=[1, 2], f={}, g=[0, 1], h=lambda: 1, i=layer, j=object())
    assert found == 3
    assert type(found) is int  # numpy's would wrap around


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": 1.0}, "a=1.0: expected an integer"),
        ({"a": True}, "a=True: expected an integer"),
        ({"a": 10**5000}, "a=an integer of 16,610 bits: expected an integer"),
        ({"b": "1"}, "b='1': expected a number"),
        ({"c": 0}, "c=0: expected True or False"),
        ({"d": b"x"}, "d=b'x': expected text or None"),
        ({"e": "12"}, "e='12': expected a list, each an integer"),
        ({"e": [1, 2.5]}, r"e=\[1, 2.5\]: expected a list, each an integer"),
        ({"f": []}, r"f=\[\]: expected a mapping or None"),
        ({"g": (1, 2, 3)}, r"g=\(1, 2, 3\): expected 2 values, each an integer"),
        ({"g": {1, 2}}, "g=.*: expected 2 values"),
        ({"h": 1}, "h=1: expected a function or None"),
        ({"i": 5}, "i=5: expected a ConvWorkload or text"),
    ],
)
def test_a_wrong_argument_is_named(given, said):
    with pytest.raises(InvalidInput, match=said):
        sample(**{"a": 1, **given})


@pytest.mark.parametrize("check", [whole, number, flag, text, lambda value, name: one_of(value, name, ("a", "b"))])
def test_checks_let_no_other_error_through(check):
    for value in VALUES:
        with contextlib.suppress(InvalidInput):
            check(value, "value")


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(np.ones(8, np.int8), [True] + 7 * [False])
    for call in (
        lambda: check_int4(masked, "x"),
        lambda: quantize(masked, 1.0),
        lambda: Requantization.per_tensor(8, 1, 1, masked),
    ):
        with pytest.raises(InvalidInput, match="masked array: its mask would be ignored"):
            call()


def test_messages_repeat_no_more_than_a_part_of_a_long_input():
    error = InvalidInput("many words " * 10_000 + "the end")
    assert len(str(error)) == SubbyteError.longest
    assert "(110,007 characters)" in str(error)
    assert str(error).endswith("the end")
    assert len(str(BuildFailed("a word " * 2_000))) == BuildFailed.longest
    assert str(InvalidInput("short")) == "short"
    assert len(shown("x" * 10**6)) <= 160
    assert shown(np.zeros((3, 4))) == "a ndarray of float64 [3, 4]"
    assert did_you_mean("x" * 10**6, ("warp", "warpgroup")) == "allowed: warp, warpgroup"


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown(Silent()) == "a Silent"
